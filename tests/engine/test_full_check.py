"""The check of all money on demand."""

import asyncio

import pytest

from genlock.domain.errors import StoreUnavailable
from genlock.engine import full_check
from genlock.engine.full_check import FullMoneyCheck, RunState
from genlock.engine.money_check import read_state
from genlock.stores.database import SqlDatabase
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder
from tests.stores.builders import account_with, delivered


@pytest.fixture
def check(store: SqlDatabase, recorder: Recorder) -> FullMoneyCheck:
    return FullMoneyCheck(store, recorder, "me")


async def test_a_check_of_sound_money_ends_without_a_finding(store: SqlDatabase, check: FullMoneyCheck) -> None:
    assert await check.latest() is None
    assert await read_state(store) is None
    await delivered(store, price=5)

    assert await check.start("op")
    await check.wait()

    found = await check.latest()
    assert found is not None
    assert (found.state, found.count, found.by, found.violations) == (RunState.DONE, 0, "op", [])
    assert 0 < found.rows < 50, "the rows that were really read"


async def test_what_is_broken_is_found_and_shown(store: SqlDatabase, check: FullMoneyCheck) -> None:
    account_id = await account_with(store, 100)
    await store.session.one("set_account_address", account_id=account_id, address="x")
    statement = f"UPDATE accounts SET available = 99 WHERE id = {account_id}"  # noqa: S608
    if hasattr(store.session, "pool"):
        await store.session.pool.execute(statement)
    else:
        await store.session.call(lambda connection: connection.execute(statement).fetchall())  # type: ignore[attr-defined]

    await check.start("op")
    await check.wait()

    found = await check.latest()
    assert found is not None
    assert (found.state, found.count) == (RunState.DONE, 1)
    assert found.violations[0].subject == str(account_id)


async def test_a_second_check_does_not_start_while_one_runs(
    store: SqlDatabase, check: FullMoneyCheck, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()

    async def slow(**_: object) -> list[object]:
        await go.wait()
        return []

    monkeypatch.setattr(store, "violations", slow)
    assert await check.start("op")
    other = FullMoneyCheck(store, recorder, "other")

    assert not await other.start("another operator")
    found = await other.latest()
    assert found is not None
    assert found.state is RunState.RUNNING
    go.set()
    await check.wait()
    assert await other.start("another operator")
    await other.wait()


async def test_a_check_whose_instance_crashed_is_shown_as_interrupted_and_may_start_again(
    store: SqlDatabase, check: FullMoneyCheck, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forever(**_: object) -> list[object]:
        await asyncio.Event().wait()
        return []

    with monkeypatch.context() as patch:
        patch.setattr(store, "violations", forever)
        await check.start("op")
        await check.close()
    clock.advance(full_check.STALE_SECONDS + 1)

    found = await check.latest()
    assert found is not None
    assert found.state is RunState.INTERRUPTED
    assert await check.start("op")
    await check.wait()


async def test_a_check_that_the_database_interrupts_says_so(
    store: SqlDatabase, check: FullMoneyCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(**_: object) -> list[object]:
        raise StoreUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(store, "violations", fails)
        await check.start("op")
        await check.wait()

    found = await check.latest()
    assert found is not None
    assert found.state is RunState.FAILED
    assert "StoreUnavailable" in found.error
