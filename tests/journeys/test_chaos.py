"""`genlock chaos`: it holds where the product holds, and it fails where the promise is broken."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from genlock.app import open_store
from genlock.domain.money import Kind
from genlock.sandbox.chaos import Plan, Teller, World, let_people_order, report, running_world
from genlock.sandbox.databases import Silent
from genlock.sandbox.processes import guarded_folder

KEYS = {
    "jobs",
    "delivered_once",
    "duplicates",
    "lost",
    "failed_told",
    "failed_silent",
    "double_submits",
    "ledger_ok",
    "takeover_seconds_max",
}


def chaos(*arguments: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "genlock", "chaos", "--json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--store", "sqlite", "--kill-every", "3"),
        ("--store", "postgres", "--instances", "2", "--kill-every", "2", "--restart-db", "--pause", "--faults"),
    ],
    ids=lambda arguments: arguments[1],
)
def test_everything_comes_to_one_end_whatever_happens(arguments: tuple[str, ...]) -> None:
    status, told, error = chaos("--jobs", "16", *arguments)
    assert status == 0, (told, error)
    assert told.keys() >= KEYS
    assert told["jobs"] == 16
    assert told["delivered_once"] + told["failed_told"] == 16
    assert told["kills"] > 0


def test_what_cannot_be_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "genlock", "chaos", "--store", "sqlite", "--instances", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "SQLite serves one process" in done.stderr


# the verdict itself


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Four orders that went well, and the books of it."""
    with guarded_folder() as folder:
        async with running_world(Plan(jobs=4), Path(folder), None) as world:
            await let_people_order(world, Teller())
            yield world


def show_again(world: World) -> None:
    """A second message with the same result."""
    chat = world.fleet.telegram.world
    [shown] = world.books.results(world.people.orders[0])
    chat.post(chat.chats[shown.chat], chat.bot_id, deepcopy(shown.content), markup=shown.markup)


def notify_again(world: World) -> None:
    chat = world.fleet.telegram.world
    order = world.people.orders[0]
    notice = next(message for message in world.books.said(order.person) if message.text.startswith("✅"))
    chat.post(chat.chats[notice.chat], chat.bot_id, dict(notice.content), markup=notice.markup)


def lose(world: World) -> None:
    [shown] = world.books.results(world.people.orders[0])
    world.fleet.telegram.world.remove(shown)


def submit_twice(world: World) -> None:
    [task] = world.books.tasks()[world.people.orders[0].prompt]
    again = deepcopy(task.__dict__) | {"id": "another", "model": task.model}
    world.fleet.kie.shop.tasks["another"] = type(task)(**again)


def send_astray(world: World) -> None:
    """A result of somebody else."""
    chat = world.fleet.telegram.world
    [shown] = world.books.results(world.people.orders[0])
    stranger = world.fleet.telegram.person("Eve")
    world.people.people.append(stranger)
    chat.post(chat.chats[stranger.id], chat.bot_id, deepcopy(shown.content), markup=shown.markup)


@pytest.mark.timeout(120)
async def test_the_verdict_fails_for_every_broken_promise(world: World) -> None:
    """One after the other, each on the same good run."""
    told, _ = await report(world)
    assert told["ok"]
    assert told["delivered_once"] == 4

    found = {
        "duplicates": await spoilt(world, show_again),
        "notices": await spoilt(world, notify_again),
        "double_submits": await spoilt(world, submit_twice),
        "astray": await spoilt(world, send_astray),
        "lost": await spoilt(world, lose),
    }
    assert found["duplicates"]["duplicates"] == 1
    assert found["notices"]["duplicates"] == 2
    assert found["double_submits"]["double_submits"] == 1
    assert found["astray"]["astray"] == 1
    assert (found["lost"]["lost"], found["lost"]["wrongly_charged"], found["lost"]["ledger_ok"]) == (0, 0, True)
    await check_money_is_missed(world)


async def spoilt(world: World, spoil: Callable[[World], None]) -> dict[str, Any]:
    spoil(world)
    told, stories = await report(world)
    assert not told["ok"]
    assert stories
    return told


async def check_money_is_missed(world: World) -> None:
    store = await open_store(world.database_url, observer=Silent())
    person = (await store.jobs(limit=1))[0].person_id
    await store.transfer(person, Kind.GRANT, 1, "nobody knows why")
    await store.close()
    told, _ = await report(world)
    assert not told["ledger_ok"]


@asynccontextmanager
async def repeating(url: str) -> AsyncIterator[str]:
    """A proxy before Telegram that makes every sendMessage twice, as a client that retries blindly does."""

    async def pass_on(request: web.Request) -> web.Response:
        body = await request.read()
        headers = {"Content-Type": request.headers.get("Content-Type", "")}
        times = 2 if request.path.endswith("/sendMessage") else 1
        async with aiohttp.ClientSession() as session:
            for _ in range(times):
                async with session.request(
                    request.method, f"{url}{request.path_qs}", data=body, headers=headers
                ) as one:
                    said, status = await one.read(), one.status
        return web.Response(body=said, status=status, content_type="application/json")

    app = web.Application(client_max_size=10**8)
    app.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
