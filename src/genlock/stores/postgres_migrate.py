"""Migrations on PostgreSQL: in a transaction, or one statement at a time where an index is built during operation."""

import asyncio
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import asyncpg

from genlock.stores.migrate import REGISTER, Migration, pending
from genlock.stores.queries import statements

#: advisory locks, arbitrary numbers: one for migrations in a transaction, one while indexes are built
_LOCK = 4_729_106
_INDEX_LOCK = 4_729_107
#: between two attempts to get the second lock
_LOCK_POLL_SECONDS = 0.1
#: deadlocks with running instances after which a migration is tried again
DEADLOCKS_MAX = 10
#: How long a migration waits for a table that a long transaction reads, such as a backup, before it lets the statements
#: pass that wait behind it; and how long these have then.
LOCK_SECONDS = 2.0
LOCK_PAUSE_SECONDS = 5.0
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+)")
_INVALID = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = $1 AND NOT i.indisvalid
"""


async def migrate(url: str, known: Sequence[Migration]) -> list[str]:
    """Apply the pending migrations and return their labels. Instances that start together wait for each other here."""
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        applied: list[str] = []
        while todo := await _apply_repeatedly(connection, known, applied):
            if await _apply_concurrently(connection, url, known, todo[0]):
                applied.append(todo[0].label)
        return applied
    finally:
        await connection.close()


async def _apply_repeatedly(connection: Any, known: Sequence[Migration], applied: list[str]) -> list[Migration]:
    """Apply them again after a deadlock with a statement of a running instance, or if a table was not free in time."""
    deadlocks = 0
    while True:
        try:
            return await _apply_in_transaction(connection, known, applied)
        except asyncpg.DeadlockDetectedError:
            deadlocks += 1
            if deadlocks > DEADLOCKS_MAX:
                raise
            await asyncio.sleep(_LOCK_POLL_SECONDS)
        except asyncpg.LockNotAvailableError:
            await asyncio.sleep(LOCK_PAUSE_SECONDS)


async def _apply_in_transaction(connection: Any, known: Sequence[Migration], applied: list[str]) -> list[Migration]:
    """Apply the pending migrations before the first one that runs outside a transaction; return those that are left."""
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        await connection.execute(REGISTER)
        todo = await _pending(connection, known)
        await connection.execute(f"SET LOCAL lock_timeout = {round(LOCK_SECONDS * 1000)}")
        first = list(takewhile(lambda migration: not migration.concurrent, todo))
        for migration in first:
            await connection.execute(migration.text)
            await _record(connection, migration)
    applied += [migration.label for migration in first]
    return todo[len(first) :]


async def _apply_concurrently(connection: Any, url: str, known: Sequence[Migration], migration: Migration) -> bool:
    """Run the statements of a migration one by one; return False if another instance has applied it meanwhile.

    An idle transaction holds the lock while a second connection builds. The lock is polled for: an instance that
    waited for it in a statement would hold a snapshot, and building an index waits for the end of all snapshots.
    """
    while True:
        async with connection.transaction():
            if await connection.fetchval(f"SELECT pg_try_advisory_xact_lock({_INDEX_LOCK})"):
                if migration not in await _pending(connection, known):
                    return False
                await connection.execute("SELECT")  # replaces the last cursor, which would keep its snapshot
                await _run_each(url, migration)
                await _record(connection, migration)
                return True
        await asyncio.sleep(_LOCK_POLL_SECONDS)


async def _run_each(url: str, migration: Migration) -> None:
    """Run each statement by itself. An index that an interrupted attempt left over is invalid, and built again."""
    builder = await asyncpg.connect(url, statement_cache_size=0)
    try:
        for statement in statements(migration.text):
            if (match := _INDEX.search(statement)) and await builder.fetchval(_INVALID, match[1]):
                await builder.execute(f"DROP INDEX CONCURRENTLY {match[1]}")
            await builder.execute(statement)
    finally:
        await builder.close()


async def _pending(connection: Any, known: Sequence[Migration]) -> list[Migration]:
    rows = await connection.fetch("SELECT number, name, checksum FROM migrations")
    return pending(known, [Migration(**dict(row)) for row in rows])


async def _record(connection: Any, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO migrations VALUES ($1, $2, $3, now()::text)",
        migration.number, migration.name, migration.checksum,
    )  # fmt: skip
