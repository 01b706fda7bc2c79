"""Statements that wait for a row which another transaction is changing, on PostgreSQL.

PostgreSQL checks the constraints of a row first with its values from before the wait.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
import pytest_asyncio

from genlock.domain.job import State, Verdict
from genlock.domain.money import EntryKind, Wallet
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import PRICE, account_with, end, order, queued, running
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
