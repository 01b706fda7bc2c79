"""Operators' transfers that read the same total before either is committed, on PostgreSQL."""

import asyncio

from genlock.domain.errors import AllowanceExceeded
from genlock.domain.money import EntryKind
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import account_with
from tests.stores.other_connections import other_connection, waiting_for_locks

LOCK = "SELECT FROM kv WHERE key = 'allowance:op' FOR UPDATE"


async def test_transfers_that_saw_the_same_total_do_not_pass_the_limit_together(
    postgres: PostgresStore, shared_postgres_url: str
) -> None:
    accounts = [await account_with(postgres, 0) for _ in range(3)]

    async def grant(account_id: int) -> bool:
        return await postgres.transfer_within_allowance(
            account_id, EntryKind.GRANT, 40, f"key-{account_id}", "", allowance="op", most=100
        )

    assert await grant(accounts[0])
    async with other_connection(shared_postgres_url) as holder:
        await holder.execute(LOCK)
        transfers = [asyncio.ensure_future(grant(account_id)) for account_id in accounts[1:]]
        await waiting_for_locks(postgres, 2)
    done = await asyncio.gather(*transfers, return_exceptions=True)

    assert sorted(type(outcome).__name__ for outcome in done) == [AllowanceExceeded.__name__, "bool"]
    assert await postgres.allowance_used("op") == 80
    assert sum([(await postgres.wallet(account_id)).available for account_id in accounts]) == 80


async def test_a_form_that_was_sent_twice_at_once_counts_once(
    postgres: PostgresStore, shared_postgres_url: str
) -> None:
    first, account_id = await account_with(postgres, 0), await account_with(postgres, 0)

    async def grant(owner: int, key: str) -> bool:
        return await postgres.transfer_within_allowance(owner, EntryKind.GRANT, 30, key, "", allowance="op", most=100)

    assert await grant(first, "before")
    async with other_connection(shared_postgres_url) as holder:
        await holder.execute(LOCK)
        transfers = [asyncio.ensure_future(grant(account_id, "same")) for _ in range(2)]
        await waiting_for_locks(postgres, 2)
    done = await asyncio.gather(*transfers)

    assert sorted(done) == [False, True]
    assert await postgres.allowance_used("op") == 60
    assert (await postgres.wallet(account_id)).available == 30
