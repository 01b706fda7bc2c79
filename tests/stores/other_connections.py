"""Other connections to the same PostgreSQL that hold locks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from genlock.stores.postgres import PostgresStore


@asynccontextmanager
async def other_connection(url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection in a transaction that is never committed."""
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


async def waiting_for_locks(store: PostgresStore, count: int) -> None:
    """Wait until `count` statements wait for row locks."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(30):
        while await store.session.pool.fetchval(query) < count:
            pass
