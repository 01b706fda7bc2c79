"""Saves the state of the Telegram simulator to a folder and loads it, so that chats survive a restart."""

import asyncio
import json
from pathlib import Path
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments
from genlock.sandbox.telegram.chats import Chat, Message, Notification, Topic, User
from genlock.sandbox.telegram.stars import Charge, Invoice
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.updates import Update

FILE = "telegram.json"
SAVE_SECONDS = 1.0


def dump(state: TelegramState) -> dict[str, Any]:
    webhook = state.updates.webhook
    return {
        "users": list(state.users.values()),
        "chats": list(state.chats.values()),
        "notifications": state.notifications,
        "profile": state.profile,
        "sticker_sets": state.sticker_sets,
        "last_id": state.last_id,
        "invoices": state.stars_ledger.invoices,
        "paid": state.stars_ledger.paid,
        "charges": state.stars_ledger.charges,
        "files": state.files.dump(),
        "update_id": state.updates.last_id,
        "pending": list(state.updates.pending.values()),
        "allowed": state.updates.allowed,
        "webhook": {"url": webhook.url, "secret_token": webhook.secret} if webhook else None,
    }


async def save(state: TelegramState, folder: Path) -> None:
    """Write the state atomically."""
    text = json.dumps(dump(state), default=_plain, ensure_ascii=False)
    await asyncio.to_thread(_write, folder / FILE, text)


def _plain(value: Any) -> Any:
    """Sets as lists and objects as their fields, without copies: this blocks the event loop."""
    return sorted(value) if isinstance(value, set) else vars(value)


def _write(file: Path, text: str) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(file)


async def save_periodically(state: TelegramState, folder: Path) -> None:
    saved = state.events.last
    while True:
        await asyncio.sleep(SAVE_SECONDS)
        if state.events.last != saved:
            saved = state.events.last
            await save(state, folder)


async def load(state: TelegramState, folder: Path) -> None:
    """Load the saved state, if there is one."""
    file = folder / FILE
    if not await asyncio.to_thread(file.exists):
        return
    saved = json.loads(await asyncio.to_thread(file.read_text))
    state.users = {user["id"]: User(**user) for user in saved["users"]}
    state.chats = {chat["id"]: _chat(chat) for chat in saved["chats"]}
    state.notifications = [Notification(**notification) for notification in saved["notifications"]]
    state.profile = saved["profile"]
    state.sticker_sets = saved.get("sticker_sets", {})
    state.last_id = saved["last_id"]
    state.stars_ledger.invoices = {key: Invoice(**invoice) for key, invoice in saved["invoices"].items()}
    state.stars_ledger.paid = set(saved["paid"])
    state.stars_ledger.charges = [Charge(**charge) for charge in saved["charges"]]
    state.files.load(saved["files"])
    state.updates.last_id = saved["update_id"]
    state.updates.pending = {update["id"]: Update(**update) for update in saved["pending"]}
    state.updates.allowed = saved["allowed"]
    if saved["webhook"]:
        await state.updates.set_webhook(CallArguments(saved["webhook"]))


def _chat(saved: dict[str, Any]) -> Chat:
    messages = {
        message["id"]: Message(
            **message | {"hidden_from": set(message["hidden_from"]), "reactions": _numbered(message["reactions"])}
        )
        for message in saved["messages"].values()
    }
    topics = {int(number): Topic(**topic) for number, topic in saved["topics"].items()}
    sets = {name: set(saved.get(name, ())) for name in ("members", "forbidden", "denied")}
    forum = saved.get("forum", bool(topics))  # saved since groups without topics ignore them
    general = {"general": Topic(**saved["general"])} if "general" in saved else {}
    users = {name: _numbered(saved.get(name, {})) for name in ("banned", "restricted")}
    return Chat(**saved | sets | general | users | {"messages": messages, "topics": topics, "forum": forum})


def _numbered(saved: dict[str, Any]) -> dict[int, Any]:
    """Convert JSON's text keys back to numbers."""
    return {int(number): value for number, value in saved.items()}
