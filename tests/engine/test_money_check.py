"""The money check: small steps, continued by the next leader, and every corruption found."""

import json
from typing import Any

import pytest

from genlock.domain.job import State
from genlock.engine import money_check
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.money_check import COUNT, POSITION, MoneyCheck
from genlock.stores.database import SqlDatabase
from genlock.stores.rows import message_params
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder
from tests.engine.world import RULES
from tests.stores.builders import account_with, delivered, running


async def a_leader(store: SqlDatabase, name: str = "me") -> MoneyCheck:
    ctx = EngineContext(
        store=store, providers={}, channels={}, observer=Recorder(), instance=name, limits=RateLimiter(store, {}),
        rules=RULES,
    )  # fmt: skip
    engine = Engine(ctx)
    await engine.leader.elect()
    return MoneyCheck(ctx, engine.leader, store)


async def found(store: SqlDatabase) -> int:
    entry = await store.kv_get(COUNT)
    assert entry is not None
    return int(entry.value)


async def test_only_the_leader_checks(store: SqlDatabase) -> None:
    check = await a_leader(store)
    await check.leader.resign()
    await check.round()
    assert await store.kv_get(POSITION) is None


async def test_a_wrong_balance_is_reported_until_it_is_repaired(store: SqlDatabase) -> None:
    check = await a_leader(store)
    account_id = await account_with(store, 5)
    await check.round()
    assert await found(store) == 0
    # `transfer` changes `available` only, so that an entry between `available` and `held` makes the balance wrong.
    entry: dict[str, Any] = {"account_id": account_id, "kind": "x", "amount": 1, "reason": "", "repays": False}
    entry |= message_params(None)
    await store.session.one("transfer", key="wrong", debit="available", credit="held", **entry)

    await check.round()
    await check.round()  # the pass begins with the first account again
    assert await found(store) == 1
    await check.round()
    assert await found(store) == 1

    await store.session.one("transfer", key="repaired", debit="held", credit="available", **entry)
    await check.round()
    assert await found(store) == 0


async def test_each_job_is_checked_once_an_hour_after_its_order(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(money_check, "ROLLING_JOBS", 1)
    monkeypatch.setattr(money_check, "ROLLING_ACCOUNTS", 1)
    monkeypatch.setattr(money_check, "PAUSE_SECONDS", 0.0)
    check = await a_leader(store)
    await check.round()
    jobs = [await delivered(store, State.SUCCEEDED) for _ in range(5)]
    await check.round()
    assert json.loads(await _entry(store))["aged_job"] < jobs[0].id

    clock.advance(money_check.AGED_SECONDS + 1)
    await check.leader.elect()
    young = await running(store)
    await check.round()

    assert json.loads(await _entry(store))["aged_job"] == jobs[-1].id < young.id


async def test_a_busy_account_gets_a_checkpoint_before_the_rolling_pass_reaches_it(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each check of its aged jobs reads all entries since the last pass, which was hours ago."""
    monkeypatch.setattr(money_check, "ROLLING_ACCOUNTS", 1)
    monkeypatch.setattr(money_check, "PAUSE_SECONDS", 0.0)
    quiet, busy = await account_with(store), await account_with(store)
    check = await a_leader(store)
    await check.round()
    for account_id in (quiet, busy, busy):
        await delivered(store, State.SUCCEEDED, account_id=account_id)
    clock.advance(money_check.AGED_SECONDS + 1)
    await check.leader.elect()
    saved, save = [], store.save_ledger_checkpoints

    async def record(after: int, until: int) -> None:
        saved.append(until)
        await save(after, until)

    monkeypatch.setattr(store, "save_ledger_checkpoints", record)
    monkeypatch.setattr(check.store, "next_account_id", _none)
    await check.round()

    assert saved == [busy]


async def _none(_after: int, _count: int) -> None:
    """Return no account: the rolling pass has nothing to check."""


async def test_another_leader_continues_where_the_last_one_was(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(money_check, "ROLLING_JOBS", 2)
    first = await a_leader(store, "one")
    jobs = [await delivered(store, State.SUCCEEDED) for _ in range(4)]
    await first.round()
    await first.leader.resign()
    second = await a_leader(store, "two")
    await second.round()

    assert json.loads(await _entry(store))["rolling_job"] == jobs[3].id
    await second.round()
    assert json.loads(await _entry(store))["rolling_job"] == 0  # after the last job comes the first


async def _entry(store: SqlDatabase) -> str:
    entry = await store.kv_get(POSITION)
    assert entry is not None
    return entry.value
