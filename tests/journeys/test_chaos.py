"""`genlock chaos` passes on the real product, and its evaluation finds every kind of broken guarantee."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from random import Random
from time import time
from typing import Any

import pytest

from genlock.app.databases import open_store
from genlock.cli import app
from genlock.domain.money import EntryKind
from genlock.log import Silent
from genlock.sandbox.chaos import users as users_module
from genlock.sandbox.chaos.chaos import ChaosRun, report, run_orders, running_chaos
from genlock.sandbox.chaos.command import run
from genlock.sandbox.chaos.disrupted_run import Plan
from genlock.sandbox.chaos.users import ChaosUsers
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.processes import guarded_folder
from genlock.sandbox.records import Order, Records, is_failure_text, is_notice
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.simulator import running_telegram

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


def chaos(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run the command in this process, so that its services are forked: each is started several times."""
    status = app(["chaos", "--json", *arguments], standalone_mode=False)
    printed = capsys.readouterr()
    return int(status), json.loads(printed.out), printed.err


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--store", "sqlite", "--kill-every", "4", "--polling"),
        ("--store", "postgres", "--instances", "2", "--kill-every", "3", "--restart-db", "--pause", "--faults"),
    ],
    ids=lambda arguments: arguments[1],
)
def test_every_order_ends_once_despite_kills_pauses_and_faults(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, result, error = chaos(capsys, "--jobs", "12", *arguments)
    assert status == 0, (result, error)
    assert result.keys() >= KEYS
    assert result["jobs"] == 12
    assert result["delivered_once"] + result["failed_told"] == 12
    assert result["kills"] > 0


def test_several_instances_on_sqlite_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "genlock", "chaos", "--store", "sqlite", "--instances", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "SQLite serves one process" in done.stderr


# the evaluation


@pytest.fixture
async def chaos_run() -> AsyncIterator[ChaosRun]:
    """A finished run with four orders: one failed at the provider, three delivered."""
    with guarded_folder() as folder:
        async with running_chaos(Plan(jobs=4), folder, None) as chaos_run:
            chaos_run.fleet.kie.faults.order(Fault.TASK_FAIL)
            await run_orders(chaos_run)
            yield chaos_run


def delivered_order(chaos_run: ChaosRun, place: int = 0) -> Order:
    """One of the delivered orders."""
    return [order for order in chaos_run.users.orders if chaos_run.records.results(order)][place]


def post_again(chaos_run: ChaosRun, message: Message, chat: int | None = None) -> Message:
    there = chaos_run.fleet.telegram.state
    return there.post(there.chats[chat or message.chat], there.bot_id, deepcopy(message.content), markup=message.markup)


@contextmanager
def shown_twice(chaos_run: ChaosRun) -> Iterator[str]:
    [shown] = chaos_run.records.results(delivered_order(chaos_run))
    again = post_again(chaos_run, shown)
    yield "duplicates"
    chaos_run.fleet.telegram.state.remove(again)


@contextmanager
def notified_twice(chaos_run: ChaosRun) -> Iterator[str]:
    notice = next(
        message for message in chaos_run.records.bot_messages(delivered_order(chaos_run).user) if is_notice(message)
    )
    again = post_again(chaos_run, notice)
    yield "duplicates"
    chaos_run.fleet.telegram.state.remove(again)


@contextmanager
def submitted_twice(chaos_run: ChaosRun) -> Iterator[str]:
    [task] = chaos_run.records.tasks()[delivered_order(chaos_run).prompt]
    chaos_run.fleet.kie.service.tasks["another"] = replace(task, id="another")
    yield "double_submits"
    del chaos_run.fleet.kie.service.tasks["another"]


@contextmanager
def shown_to_another_user(chaos_run: ChaosRun) -> Iterator[str]:
    [shown] = chaos_run.records.results(delivered_order(chaos_run))
    other_user = chaos_run.fleet.telegram.add_user("Eve")
    chaos_run.users.users.append(other_user)
    post_again(chaos_run, shown, other_user.id)
    yield "astray"
    chaos_run.users.users.remove(other_user)


@contextmanager
def shown_another_picture(chaos_run: ChaosRun) -> Iterator[str]:
    """The caption is right, but the image belongs to another order."""
    [shown] = chaos_run.records.results(delivered_order(chaos_run))
    [other] = chaos_run.records.results(delivered_order(chaos_run, 1))
    content, shown.content = shown.content, shown.content | {"photo": other.content["photo"]}
    yield "astray"
    shown.content = content


@contextmanager
def removed(chaos_run: ChaosRun, messages: list[Message]) -> Iterator[None]:
    for message in messages:
        chaos_run.fleet.telegram.state.remove(message)
    yield
    for message in messages:
        chaos_run.fleet.telegram.state.chats[message.chat].messages[message.id] = message


@contextmanager
def result_lost(chaos_run: ChaosRun) -> Iterator[str]:
    with removed(chaos_run, chaos_run.records.results(delivered_order(chaos_run))):
        yield "lost"


@contextmanager
def failure_without_a_message(chaos_run: ChaosRun) -> Iterator[str]:
    with removed(
        chaos_run,
        [
            message
            for account_id in chaos_run.users.users
            for message in chaos_run.records.bot_messages(account_id)
            if is_failure_text(message)
        ],
    ):
        yield "failed_silent"


DEFECTS = [
    shown_twice,
    notified_twice,
    submitted_twice,
    shown_to_another_user,
    shown_another_picture,
    result_lost,
    failure_without_a_message,
]


@pytest.mark.timeout(120)
async def test_the_evaluation_reports_every_broken_guarantee(chaos_run: ChaosRun) -> None:
    """All defects are tried on one run, and each is undone afterwards."""
    result, _ = await report(chaos_run)
    assert result["ok"], result
    assert (result["delivered_once"], result["failed_told"]) == (3, 1)
    for defect in DEFECTS:
        with defect(chaos_run) as broken:
            result, histories = await report(chaos_run)
            assert not result["ok"], defect
            assert result[broken] == 1, (defect, result)
            assert histories
    result, _ = await report(chaos_run)
    assert result["ok"], result
    await check_that_wrong_balances_are_found(chaos_run)


async def check_that_wrong_balances_are_found(chaos_run: ChaosRun) -> None:
    store = await open_store(chaos_run.database_url, observer=Silent())
    account_id = (await store.jobs(limit=1))[0].account_id
    await store.transfer(account_id, EntryKind.GRANT, 1, "unexplained grant")
    await store.close()
    result, _ = await report(chaos_run)
    assert not result["ok"]
    assert not result["ledger_ok"]


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("sends_twice")
def test_chaos_exits_with_1_if_the_channel_sends_messages_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Plan(jobs=1), as_json=True) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["delivered_once"], result["duplicates"]) == (1, 1)


# the users


async def test_users_wait_while_orders_of_others_end_and_press_again_what_telegram_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(users_module, "PRESS_AGAIN_SECONDS", 0.01)
    async with running_telegram() as telegram, running_kie() as kie:
        users = ChaosUsers(telegram, Records(telegram, kie), rng=Random(1), deadline=time() + 60.0)
        ann = telegram.add_user("Ann", language="en")
        order, pressed, checked = Order(user=ann, prompt="a fox", message=0, asked_at=0.0), [], 0

        async def press(one: Order) -> None:
            pressed.append(one)

        def holds() -> bool:
            nonlocal checked
            checked, users._deadline = checked + 1, time() + 60.0  # the order of another user has ended
            return checked == 2

        monkeypatch.setattr(users, "_confirm", press)
        monkeypatch.setattr(users._records, "has_ended", lambda _: len(pressed) == 2)
        assert await users._until_ended(order)
        assert pressed == [order, order]
        monkeypatch.setattr(users._records, "has_ended", lambda _: False)
        users._deadline = time()
        assert not await users._until_ended(order), "at the deadline the run goes on to its verdict"
        waiting = asyncio.create_task(users._until(ann, holds))
        await asyncio.sleep(0)
        users._changed[ann.id].set()
        assert await waiting, "the deadline that was over has moved"
