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
from genlock.sandbox.chaos.chaos import ChaosRun, Plan, ProgressPrinter, report, run, run_orders, running_chaos
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.processes import guarded_folder
from genlock.sandbox.records import Order, is_failure_text, is_notice
from genlock.sandbox.telegram.state import Message

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
async def chaos_run() -> AsyncIterator[ChaosRun]:
    """Four orders: one that the provider fails, three that go well."""
    with guarded_folder() as folder:
        async with running_chaos(Plan(jobs=4), folder, None) as chaos_run:
            chaos_run.fleet.kie.faults.order(Fault.TASK_FAIL)
            await run_orders(chaos_run, ProgressPrinter())
            yield chaos_run


def good(chaos_run: ChaosRun, place: int = 0) -> Order:
    """One of those that went well."""
    return [order for order in chaos_run.users.orders if chaos_run.records.results(order)][place]


def post_again(chaos_run: ChaosRun, message: Message, chat: int | None = None) -> Message:
    there = chaos_run.fleet.telegram.state
    return there.post(there.chats[chat or message.chat], there.bot_id, deepcopy(message.content), markup=message.markup)


@contextmanager
def shown_twice(chaos_run: ChaosRun) -> Iterator[str]:
    [shown] = chaos_run.records.results(good(chaos_run))
    again = post_again(chaos_run, shown)
    yield "duplicates"
    chaos_run.fleet.telegram.state.remove(again)


@contextmanager
def told_twice(chaos_run: ChaosRun) -> Iterator[str]:
    notice = next(message for message in chaos_run.records.bot_messages(good(chaos_run).user) if is_notice(message))
    again = post_again(chaos_run, notice)
    yield "duplicates"
    chaos_run.fleet.telegram.state.remove(again)


@contextmanager
def submitted_twice(chaos_run: ChaosRun) -> Iterator[str]:
    [task] = chaos_run.records.tasks()[good(chaos_run).prompt]
    chaos_run.fleet.kie.service.tasks["another"] = replace(task, id="another")
    yield "double_submits"
    del chaos_run.fleet.kie.service.tasks["another"]


@contextmanager
def shown_to_a_stranger(chaos_run: ChaosRun) -> Iterator[str]:
    [shown] = chaos_run.records.results(good(chaos_run))
    stranger = chaos_run.fleet.telegram.add_user("Eve")
    chaos_run.users.users.append(stranger)
    post_again(chaos_run, shown, stranger.id)
    yield "astray"
    chaos_run.users.users.remove(stranger)


@contextmanager
def shown_another_picture(chaos_run: ChaosRun) -> Iterator[str]:
    """The words under it are right, the picture is that of somebody else."""
    [shown] = chaos_run.records.results(good(chaos_run))
    [other] = chaos_run.records.results(good(chaos_run, 1))
    content, shown.content = shown.content, shown.content | {"photo": other.content["photo"]}
    yield "astray"
    shown.content = content


@contextmanager
def gone(chaos_run: ChaosRun, messages: list[Message]) -> Iterator[None]:
    for message in messages:
        chaos_run.fleet.telegram.state.remove(message)
    yield
    for message in messages:
        chaos_run.fleet.telegram.state.chats[message.chat].messages[message.id] = message


@contextmanager
def result_lost(chaos_run: ChaosRun) -> Iterator[str]:
    with gone(chaos_run, chaos_run.records.results(good(chaos_run))):
        yield "lost"


@contextmanager
def failure_kept_silent(chaos_run: ChaosRun) -> Iterator[str]:
    with gone(
        chaos_run,
        [
            message
            for person in chaos_run.users.users
            for message in chaos_run.records.bot_messages(person)
            if is_failure_text(message)
        ],
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
async def test_the_verdict_fails_for_every_broken_promise(chaos_run: ChaosRun) -> None:
    """One after the other, each on the same good run."""
    told, _ = await report(chaos_run)
    assert told["ok"], told
    assert (told["delivered_once"], told["failed_told"]) == (3, 1)
    for spoil in SPOILS:
        with spoil(chaos_run) as broken:
            told, histories = await report(chaos_run)
            assert not told["ok"], spoil
            assert told[broken] == 1, (spoil, told)
            assert histories
    told, _ = await report(chaos_run)
    assert told["ok"], told
    await check_that_money_is_missed(chaos_run)


async def check_that_money_is_missed(chaos_run: ChaosRun) -> None:
    store = await open_store(chaos_run.database_url, observer=Silent())
    person = (await store.jobs(limit=1))[0].account_id
    await store.transfer(person, EntryKind.GRANT, 1, "nobody knows why")
    await store.close()
    told, _ = await report(chaos_run)
    assert not told["ok"]
    assert not told["ledger_ok"]


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("sends_twice")
def test_a_channel_that_repeats_what_is_sent_makes_it_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Plan(jobs=1), as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["delivered_once"], told["duplicates"]) == (1, 1)
