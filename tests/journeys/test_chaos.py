"""`genlock chaos`: it holds where the product holds, and it fails where the promise is broken."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from genlock.app import open_store
from genlock.domain.money import EntryKind
from genlock.log import Silent
from genlock.sandbox.chaos.chaos import Plan, Teller, World, let_people_order, report, run, running_world
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.processes import guarded_folder
from genlock.sandbox.records import Order, is_notice, is_sorry
from genlock.sandbox.telegram.world import Message

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
        timeout=220,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--store", "sqlite", "--kill-every", "4", "--polling"),
        ("--store", "postgres", "--instances", "2", "--kill-every", "3", "--restart-db", "--pause", "--faults"),
    ],
    ids=lambda arguments: arguments[1],
)
def test_everything_comes_to_one_end_whatever_happens(arguments: tuple[str, ...]) -> None:
    status, told, error = chaos("--jobs", "12", *arguments)
    assert status == 0, (told, error)
    assert told.keys() >= KEYS
    assert told["jobs"] == 12
    assert told["delivered_once"] + told["failed_told"] == 12
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
    """Four orders: one that the provider fails, three that go well."""
    with guarded_folder() as folder:
        async with running_world(Plan(jobs=4), folder, None) as world:
            world.fleet.kie.faults.order(Fault.TASK_FAIL)
            await let_people_order(world, Teller())
            yield world


def good(world: World, place: int = 0) -> Order:
    """One of those that went well."""
    return [order for order in world.people.orders if world.records.results(order)][place]


def post_again(world: World, message: Message, chat: int | None = None) -> Message:
    there = world.fleet.telegram.world
    return there.post(there.chats[chat or message.chat], there.bot_id, deepcopy(message.content), markup=message.markup)


@contextmanager
def shown_twice(world: World) -> Iterator[str]:
    [shown] = world.records.results(good(world))
    again = post_again(world, shown)
    yield "duplicates"
    world.fleet.telegram.world.remove(again)


@contextmanager
def told_twice(world: World) -> Iterator[str]:
    notice = next(message for message in world.records.said(good(world).person) if is_notice(message))
    again = post_again(world, notice)
    yield "duplicates"
    world.fleet.telegram.world.remove(again)


@contextmanager
def submitted_twice(world: World) -> Iterator[str]:
    [task] = world.records.tasks()[good(world).prompt]
    world.fleet.kie.shop.tasks["another"] = replace(task, id="another")
    yield "double_submits"
    del world.fleet.kie.shop.tasks["another"]


@contextmanager
def shown_to_a_stranger(world: World) -> Iterator[str]:
    [shown] = world.records.results(good(world))
    stranger = world.fleet.telegram.person("Eve")
    world.people.people.append(stranger)
    post_again(world, shown, stranger.id)
    yield "astray"
    world.people.people.remove(stranger)


@contextmanager
def shown_another_picture(world: World) -> Iterator[str]:
    """The words under it are right, the picture is that of somebody else."""
    [shown] = world.records.results(good(world))
    [other] = world.records.results(good(world, 1))
    content, shown.content = shown.content, shown.content | {"photo": other.content["photo"]}
    yield "astray"
    shown.content = content


@contextmanager
def gone(world: World, messages: list[Message]) -> Iterator[None]:
    for message in messages:
        world.fleet.telegram.world.remove(message)
    yield
    for message in messages:
        world.fleet.telegram.world.chats[message.chat].messages[message.id] = message


@contextmanager
def result_lost(world: World) -> Iterator[str]:
    with gone(world, world.records.results(good(world))):
        yield "lost"


@contextmanager
def failure_kept_silent(world: World) -> Iterator[str]:
    with gone(
        world,
        [message for person in world.people.people for message in world.records.said(person) if is_sorry(message)],
    ):
        yield "failed_silent"


SPOILS = [
    shown_twice,
    told_twice,
    submitted_twice,
    shown_to_a_stranger,
    shown_another_picture,
    result_lost,
    failure_kept_silent,
]


@pytest.mark.timeout(120)
async def test_the_verdict_fails_for_every_broken_promise(world: World) -> None:
    """One after the other, each on the same good run."""
    told, _ = await report(world)
    assert told["ok"], told
    assert (told["delivered_once"], told["failed_told"]) == (3, 1)
    for spoil in SPOILS:
        with spoil(world) as broken:
            told, stories = await report(world)
            assert not told["ok"], spoil
            assert told[broken] == 1, (spoil, told)
            assert stories
    told, _ = await report(world)
    assert told["ok"], told
    await check_that_money_is_missed(world)


async def check_that_money_is_missed(world: World) -> None:
    store = await open_store(world.database_url, observer=Silent())
    person = (await store.jobs(limit=1))[0].account_id
    await store.transfer(person, EntryKind.GRANT, 1, "nobody knows why")
    await store.close()
    told, _ = await report(world)
    assert not told["ok"]
    assert not told["ledger_ok"]


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("sends_twice")
def test_a_channel_that_repeats_what_is_sent_makes_it_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Plan(jobs=1), as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["delivered_once"], told["duplicates"]) == (1, 1)
