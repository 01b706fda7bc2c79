"""The simulated Telegram's memory in a folder, so that a chat goes on after a restart."""

import asyncio
import json
from pathlib import Path
from typing import Any

from genlock.sandbox.telegram.till import Charge, Invoice
from genlock.sandbox.telegram.updates import Update
from genlock.sandbox.telegram.wire import Given
from genlock.sandbox.telegram.world import Chat, Message, Notification, Topic, User, World

FILE = "telegram.json"
SAVE_SECONDS = 1.0


def dumped(world: World) -> dict[str, Any]:
    webhook = world.updates.webhook
    return {
        "users": list(world.users.values()),
        "chats": list(world.chats.values()),
        "notifications": world.notifications,
        "profile": world.profile,
        "last_id": world.last_id,
        "invoices": world.till.invoices,
        "paid": world.till.paid,
        "charges": world.till.charges,
        "files": world.files.dumped(),
        "update_id": world.updates.last_id,
        "pending": list(world.updates.pending.values()),
        "allowed": world.updates.allowed,
        "webhook": {"url": webhook.url, "secret_token": webhook.secret} if webhook else None,
    }


async def save(world: World, folder: Path) -> None:
    """Whole or not at all."""
    text = json.dumps(dumped(world), default=_plain, ensure_ascii=False)
    await asyncio.to_thread(_write, folder / FILE, text)


def _plain(value: Any) -> Any:
    """Sets as lists, and our own things by their fields: without copies, for this holds up everything else."""
    return sorted(value) if isinstance(value, set) else vars(value)


def _write(file: Path, text: str) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(text)
    beside.replace(file)


async def keep_saving(world: World, folder: Path) -> None:
    saved = world.events.last
    while True:
        await asyncio.sleep(SAVE_SECONDS)
        if world.events.last != saved:
            saved = world.events.last
            await save(world, folder)


async def load(world: World, folder: Path) -> None:
    """What was saved; nothing if nothing was."""
    file = folder / FILE
    if not await asyncio.to_thread(file.exists):
        return
    said = json.loads(await asyncio.to_thread(file.read_text))
    world.users = {one["id"]: User(**one) for one in said["users"]}
    world.chats = {one["id"]: _chat(one) for one in said["chats"]}
    world.notifications = [Notification(**one) for one in said["notifications"]]
    world.profile = said["profile"]
    world.last_id = said["last_id"]
    world.till.invoices = {key: Invoice(**one) for key, one in said["invoices"].items()}
    world.till.paid = set(said["paid"])
    world.till.charges = [Charge(**one) for one in said["charges"]]
    world.files.load(said["files"])
    world.updates.last_id = said["update_id"]
    world.updates.pending = {one["id"]: Update(**one) for one in said["pending"]}
    world.updates.allowed = said["allowed"]
    if said["webhook"]:
        await world.updates.set_webhook(Given(said["webhook"]))


def _chat(said: dict[str, Any]) -> Chat:
    messages = {
        one["id"]: Message(**one | {"hidden_from": set(one["hidden_from"]), "reactions": _numbered(one["reactions"])})
        for one in said["messages"].values()
    }
    topics = {int(number): Topic(**one) for number, one in said["topics"].items()}
    sets = {name: set(said[name]) for name in ("members", "forbidden")}
    return Chat(**said | sets | {"messages": messages, "topics": topics})


def _numbered(said: dict[str, Any]) -> dict[int, Any]:
    """JSON has no numbers for keys."""
    return {int(number): one for number, one in said.items()}
