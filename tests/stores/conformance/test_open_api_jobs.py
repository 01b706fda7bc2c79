"""How many jobs an account may have open through the API: counted and checked in the commit of an order."""

import asyncio

import pytest

from genlock.domain.errors import InsufficientBalance, TooManyOpenJobs
from genlock.domain.job import Job, State
from genlock.ports import Accepted
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import shipped
from genlock.stores.sqlite import SqliteStore
from tests.stores.builders import ME, PRICE, account_with, end, new_key, order, see, unchanged
from tests.stores.conftest import Raw


async def client(store: SqlDatabase, available: int = 1000) -> tuple[int, int]:
    """An account and its API key."""
    account = await account_with(store, available)
    return account, (await store.add_api_key(new_key(account, account)))[0].id


async def buy(store: SqlDatabase, client: tuple[int, int], most: int = 2, **changes: object) -> Job:
    wanted = order(client[0], api_key_id=client[1], open_max=most, **changes)
    return (await store.accept_job(wanted, ME)).job


async def opened(store: SqlDatabase, client: tuple[int, int]) -> int:
    return (await store.order_state(client[0], "none")).open_api_jobs


async def test_an_order_above_the_limit_is_refused_and_nothing_is_held(store: SqlDatabase) -> None:
    ann = await client(store)
    await buy(store, ann)
    await buy(store, ann, price=0)
    before = await store.wallet(ann[0])

    with pytest.raises(TooManyOpenJobs) as refused:
        await buy(store, ann)

    assert refused.value.open_jobs == 2
    assert await store.wallet(ann[0]) == before
    assert await opened(store, ann) == 2
    assert (await store.accept_job(order(ann[0]), ME)).created, "an order of the chat is not counted"
    assert await store.violations(settled=False) == []


async def test_every_end_of_a_job_makes_room_once(store: SqlDatabase) -> None:
    ann = await client(store)
    for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED):
        job = await buy(store, ann, most=1)
        for _ in range(2):
            await end(store, job, state)
        assert await opened(store, ann) == 0, state
    late = await buy(store, ann, most=1)
    assert await store.begin_submit(late.id, late.lease_token, "hash", None)
    await end(store, late, State.EXPIRED, lease=None)
    assert (await end(store, late, State.SUCCEEDED)).job is not None, "a late result"
    assert await opened(store, ann) == 0
    assert await store.violations(settled=False) == []


async def test_a_repeated_order_is_answered_also_when_the_account_is_full(store: SqlDatabase) -> None:
    ann = await client(store)
    wanted = order(ann[0], api_key_id=ann[1], open_max=1)
    first = await store.accept_job(wanted, ME)

    again = await store.accept_job(wanted, ME)

    assert (first.created, again.created) == (True, False)
    assert again.job.id == first.job.id
    assert await unchanged(store, await see(store, first.job))


async def test_the_balance_is_named_before_the_number_of_jobs(store: SqlDatabase) -> None:
    ann = await client(store, PRICE)
    await buy(store, ann, most=1)
    with pytest.raises(InsufficientBalance):
        await buy(store, ann, most=1)


async def test_orders_at_the_same_time_fill_the_limit_exactly(store: SqlDatabase) -> None:
    """Of two accounts, with repetitions and free orders among them; one that does not fit in a batch may fit alone."""
    clients = [await client(store, 100_000) for _ in range(2)]
    wanted = [
        order(account, api_key_id=key, open_max=7, price=PRICE * (number % 3), request_key=f"k-{number}")
        for number in range(40)
        for account, key in [clients[number % 2]]
    ]
    answers = await asyncio.gather(
        *(store.accept_job(new_order, ME) for new_order in [*wanted[:8], *wanted]), return_exceptions=True
    )

    fresh = [answer.job.account_id for answer in answers if isinstance(answer, Accepted) and answer.created]
    assert [fresh.count(account) for account, _ in clients] == [7, 7]
    assert {type(answer) for answer in answers if isinstance(answer, Exception)} == {TooManyOpenJobs}
    assert await store.violations(settled=False) == []


async def test_the_migration_counts_the_jobs_that_were_open_before(store: SqlDatabase, raw: Raw) -> None:
    clients = [await client(store) for _ in range(3)]
    for client_id, count in zip(clients, (2, 1, 0), strict=True):
        for _ in range(count):
            await buy(store, client_id)
    await end(store, await buy(store, clients[0], most=3), State.FAILED)
    await store.accept_job(order(clients[2][0]), ME)
    await raw("UPDATE accounts SET open_api_jobs = 0")
    assert len(await store.violations(settled=False)) == 2

    dialect = "sqlite" if isinstance(store, SqliteStore) else "postgres"
    [migration] = [candidate.text for candidate in shipped(dialect) if candidate.name == "open_api_jobs"]
    await raw(migration[migration.rindex("UPDATE accounts SET open_api_jobs = o.jobs") :])

    assert [await opened(store, client_id) for client_id in clients] == [2, 1, 0]
    assert await store.violations(settled=False) == []
