"""Statements that wait for a row which another transaction is changing, on PostgreSQL.

PostgreSQL checks the constraints of a row first with its values from before the wait.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any

import pytest
import pytest_asyncio

from genlock.domain.attempt import AttemptOutcome
from genlock.domain.job import Actor, Delivery, State, Verdict, hash_secret
from genlock.domain.money import EntryKind, Wallet
from genlock.stores.postgres import PostgresStore
from genlock.stores.rows import Row
from tests.stores.builders import PRICE, SECRET, account_with, end, ended, finish, order, queued, running
from tests.stores.conftest import RecordingObserver
from tests.stores.other_connections import other_connection, waiting_for_locks

pytestmark = pytest.mark.timeout(60, func_only=True)
JOB = "SELECT FROM jobs WHERE id = $1 FOR UPDATE"
ACCOUNT = "SELECT FROM accounts WHERE id = $1 FOR UPDATE"


@pytest_asyncio.fixture(loop_scope="session")
async def store(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres_url, observer=observer, connections=6)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def other(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres_url, observer=observer, connections=6)
    yield opened
    await opened.close()


async def _one_after_the_other(
    url: str, watch: PostgresStore, lock: tuple[str, int], *steps: Coroutine[Any, Any, Any]
) -> list[Any]:
    """Run statements that all begin before the first of them commits, and commit in the given order."""
    async with other_connection(url) as holder:
        await holder.execute(*lock)
        tasks = []
        for number, step in enumerate(steps, start=1):
            tasks.append(asyncio.create_task(step))
            await waiting_for_locks(watch, number)
    return await asyncio.gather(*tasks)


async def test_a_success_that_waited_for_the_failure_of_its_job_is_shown_as_a_late_result(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    job = await running(store)

    failed, succeeded = await _one_after_the_other(
        postgres_url, store, (JOB, job.id), end(store, job, State.FAILED, None), end(other, job, State.SUCCEEDED, None)
    )

    assert failed.verdict is Verdict.WON
    assert succeeded.verdict is Verdict.LATE
    assert (succeeded.job.state, succeeded.job.late) == (State.FAILED, True)
    assert await store.violations(settled=False) == []


async def test_an_attempt_that_began_while_its_job_was_cancelled_has_ended(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    job = await queued(store)

    begun, cancelled = await _one_after_the_other(
        postgres_url,
        store,
        (JOB, job.id),
        store.begin_submit(job.id, job.lease_token, hash_secret(SECRET), None),
        end(other, job, State.CANCELLED, None, cancelled_by=Actor.USER),
    )

    assert (begun, cancelled.verdict, cancelled.job.attempt) == (True, Verdict.WON, 1)
    [attempt] = await store.attempts(job.id)
    assert (attempt.outcome, attempt.ended_at) == (AttemptOutcome.CANCELLED, cancelled.job.ended_at)


async def test_an_order_that_waited_for_a_topup_is_paid_from_it(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    account = await account_with(store, 0)

    _, accepted = await _one_after_the_other(
        postgres_url,
        store,
        (ACCOUNT, account),
        store.transfer(account, EntryKind.TOPUP, PRICE, "topup"),
        other.accept_job(order(account), None),
    )

    assert accepted.job.state is State.QUEUED
    assert await store.wallet(account) == Wallet(account_id=account, available=0, held=PRICE)
    assert await store.violations(settled=False) == []


async def test_a_failure_that_waited_for_a_refund_outside_the_bot_repays_the_debt(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    account = await account_with(store, 0)
    assert await store.transfer(account, EntryKind.TOPUP, PRICE, "stars:charge")
    assert await store.add_payment("charge", account, paid_amount=1, amount=PRICE)
    job = await queued(store, None, account_id=account)

    _, ended = await _one_after_the_other(
        postgres_url,
        store,
        (ACCOUNT, account),
        store.book_external_refund("charge", "by Telegram"),
        end(other, job, State.FAILED, None),
    )

    assert ended.verdict is Verdict.WON
    assert await store.wallet(account) == Wallet(account_id=account, available=0, held=0)
    assert await store.violations(settled=False) == []


def _delay_repetitions(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let every statement after the next one, or its repetition, begin only when the returned event is set."""
    allowed = asyncio.Event()
    run, begun = store.session._run, itertools.count()

    async def run_when_allowed(*arguments: Any) -> list[Row]:
        if next(begun):
            await allowed.wait()
        return await run(*arguments)

    monkeypatch.setattr(store.session, "_run", run_when_allowed)
    return allowed


async def test_a_failure_that_waits_for_two_refunds_in_turn_repays_the_debt_of_both(
    store: PostgresStore, other: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await account_with(store, 0)
    for charge in ("first", "second"):
        assert await store.transfer(account, EntryKind.TOPUP, PRICE, f"stars:{charge}")
        assert await store.add_payment(charge, account, paid_amount=1, amount=PRICE)
    job = await queued(store, None, account_id=account, price=2 * PRICE)
    is_locked = _delay_repetitions(other, monkeypatch)

    async with other_connection(postgres_url) as second:
        async with other_connection(postgres_url) as holder:
            await holder.execute(ACCOUNT, account)
            first = asyncio.create_task(store.book_external_refund("first", "by Telegram"))
            await waiting_for_locks(store, 1)
            ending = asyncio.create_task(end(other, job, State.FAILED, None))
            await waiting_for_locks(store, 2)
            locking = asyncio.create_task(second.execute(ACCOUNT, account))
            await waiting_for_locks(store, 3)
        await asyncio.gather(first, locking)
        is_locked.set()
        await waiting_for_locks(store, 1)  # the second attempt, which has read the debt of the first refund
        await second.execute("UPDATE accounts SET debt = debt + $2 WHERE id = $1", account, PRICE)
        await second.execute("UPDATE payments SET state = 'refunded', owed = $1 WHERE charge = 'second'", PRICE)
        await second.execute("COMMIT")

    assert (await ending).verdict is Verdict.WON
    assert await store.wallet(account) == Wallet(account_id=account, available=0, held=0)
    assert await store.violations(settled=False) == []


@pytest.mark.parametrize("owed", [PRICE, 3 * PRICE, 4 * PRICE])
async def test_deliveries_that_waited_for_a_refund_outside_the_bot_repay_the_debt_once(
    store: PostgresStore, other: PostgresStore, postgres_url: str, owed: int
) -> None:
    """Three deliveries of one account fail in one batch: the debt is smaller than the sum of their holds, or not."""
    account, neighbour = await account_with(store, 0), await account_with(store, 2 * PRICE)
    assert await store.transfer(account, EntryKind.TOPUP, 4 * PRICE, "stars:charge")
    assert await store.add_payment("charge", account, paid_amount=1, amount=4 * PRICE)
    jobs = [await ended(store, account_id=owner) for owner in (neighbour, account, account, neighbour, account)]
    if owed < 3 * PRICE:
        assert await store.transfer(account, EntryKind.GRANT, 3 * PRICE - owed, "gift")
    elif owed > 3 * PRICE:
        await queued(store, None, account_id=account)  # holds the rest of the payment

    await _one_after_the_other(
        postgres_url,
        store,
        (ACCOUNT, account),
        store.book_external_refund("charge", "by Telegram"),
        _all(finish(other, job, Delivery.UNDELIVERABLE) for job in jobs),
    )

    repaid = min(owed, 3 * PRICE)
    wallet = await store.wallet(account)
    assert (wallet.available, wallet.debt) == (3 * PRICE - repaid, owed - repaid)
    assert await store.wallet(neighbour) == Wallet(account_id=neighbour, available=2 * PRICE, held=0)
    assert await store.violations(settled=False) == []


async def _all(steps: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*steps)
