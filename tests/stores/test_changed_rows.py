"""Statements of money on PostgreSQL that wait while another transaction changes something else in their rows.

PostgreSQL then repeats a part of the statement with the changed row. Either all of it takes effect, or nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
import pytest_asyncio

from genlock.domain.delivery import MESSAGE_ONLY, again
from genlock.domain.job import Delivery
from genlock.domain.money import EntryKind, Wallet
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import PRICE, account_with, ended, finish, queued, see
from tests.stores.conftest import RecordingObserver
from tests.stores.other_connections import waiting_for_locks

pytestmark = pytest.mark.timeout(60, func_only=True)
CHARGE = "charge"
TOUCHED = {
    "jobs": "UPDATE jobs SET correlation_id = 'changed'",
    "accounts": "UPDATE accounts SET address = 'changed'",
    "payments": "UPDATE payments SET at = at + interval '1 second'",
}


@pytest_asyncio.fixture(loop_scope="session")
async def store(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres_url, observer=observer, connections=4)
    yield opened
    await opened.close()


async def run_while_changed(url: str, store: PostgresStore, tables: str, statement: Awaitable[object]) -> object:
    """Run a statement that begins before a change of all rows of the tables is committed, and waits for it."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            for table in tables.split():
                await connection.execute(TOUCHED[table])
            waiting = asyncio.ensure_future(statement)
            await waiting_for_locks(store, 1)
        return await waiting
    finally:
        await connection.close()


@pytest.mark.parametrize("tables", ["jobs", "accounts", "jobs accounts"])
async def test_a_paid_resend_holds_the_price_of_the_job_that_it_sends(
    store: PostgresStore, postgres_url: str, tables: str
) -> None:
    account = await account_with(store, PRICE)
    job = await ended(store, account_id=account)
    assert await finish(store, job, Delivery.UNDELIVERABLE)

    resent = store.resend_paid_job(job.id, again(job.parts), (await see(store, job)).lease_token)
    assert await run_while_changed(postgres_url, store, tables, resent)

    assert (await see(store, job)).delivery is Delivery.PENDING
    assert await store.wallet(account) == Wallet(account_id=account, available=0, held=PRICE)
    assert await store.violations(settled=False) == []


@pytest.mark.parametrize("tables", ["jobs", "accounts", "jobs accounts"])
async def test_an_invalid_result_releases_the_hold_of_the_job_that_it_fails(
    store: PostgresStore, postgres_url: str, tables: str
) -> None:
    account = await account_with(store, PRICE)
    job = await ended(store, account_id=account)

    marked = store.mark_result_invalid(job.id, job.lease_token, MESSAGE_ONLY, "broken_result", "an HTML page")
    assert await run_while_changed(postgres_url, store, tables, marked)

    assert await store.wallet(account) == Wallet(account_id=account, available=PRICE, held=0)
    assert await store.violations(settled=False) == []


@pytest.mark.parametrize("tables", ["payments", "accounts", "payments accounts"])
@pytest.mark.parametrize(
    ("name", "state", "available", "debt"),
    [
        ("begin", "refunding", 0, 0),
        ("undo", "paid", PRICE, 0),
        ("external", "refunded", 0, 0),
        ("spent", "refunded", 0, 1),
    ],
)
async def test_a_refund_moves_the_credits_of_the_payment_that_it_changes(
    store: PostgresStore, postgres_url: str, tables: str, name: str, state: str, available: int, debt: int
) -> None:
    account = await account_with(store, 0)
    assert await store.transfer(account, EntryKind.TOPUP, PRICE, f"stars:{CHARGE}")
    assert await store.add_payment(CHARGE, account, paid_amount=1, amount=PRICE)
    if name == "undo":
        assert await store.begin_refund(CHARGE, "by an operator")
    if name == "spent":
        await queued(store, account_id=account, price=1)

    statements: dict[str, Callable[[], Awaitable[object]]] = {
        "begin": lambda: store.begin_refund(CHARGE, "by an operator"),
        "undo": lambda: store.undo_refund(CHARGE, 1, "refused"),
    }
    refund = statements.get(name, lambda: store.book_external_refund(CHARGE, "by Telegram"))
    assert await run_while_changed(postgres_url, store, tables, refund())

    payment, wallet = await store.payment(CHARGE), await store.wallet(account)
    assert payment is not None
    assert (payment.state, wallet.available, wallet.debt) == (state, available, debt)
    assert await store.violations(settled=False) == []
