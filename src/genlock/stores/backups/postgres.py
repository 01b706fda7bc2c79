"""Backups of PostgreSQL: COPY of every table in one REPEATABLE READ transaction, without a program to install."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from genlock.domain.errors import BackupFailed, StoreError, StoreInUse
from genlock.ports import Observer
from genlock.stores.backups.database import MIGRATIONS, Snapshot, Tables, Target, to_rows
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import REGISTER, Migration
from genlock.stores.postgres import connect
from genlock.stores.transaction import PostgresTransaction

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY c.relname, a.attnum
"""
_SEQUENCES = """
SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attidentity <> ''
"""
#: each type as SQLite stores it; the released leader role ends at minus infinity
_TO_BACKUP = {
    "bigint": "{}",
    "integer": "{}",
    "smallint": "{}",
    "double precision": "{}",
    "text": "{}",
    "boolean": "{}::int",
    "bytea": "encode({}, 'hex')",
    "text[]": "array_to_json({})::text",
    "json": "{}::text",
    "jsonb": "{}::text",
    "timestamp with time zone": "CASE WHEN isfinite({0}) THEN (extract(epoch FROM {0}) * 1000000)::bigint"
    " WHEN {0} < now() THEN 0 WHEN {0} > now() THEN 253402300799000000 END",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FROM_BACKUP: Mapping[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "bytea": bytes.fromhex,
    "text[]": json.loads,
    "timestamp with time zone": lambda microseconds: _EPOCH + microseconds * _MICROSECOND,
}
#: the advisory lock that an instance takes when it starts, to apply migrations
_MIGRATION_LOCK = 4_729_106
#: an instance with a heartbeat in this time is running
_ALIVE_SECONDS = 10.0
#: a check over millions of rows takes longer than the statements of the service may
_STATEMENT_SECONDS = 3600.0
_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)


class PostgresSnapshot(Snapshot):
    dialect = "postgres"

    def __init__(self, connection: Any, tables: Tables, migrations: Sequence[Migration]) -> None:
        self._connection = connection
        self.tables = tables
        self.migrations = migrations

    async def dump(self, table: str, write: Callable[[bytes], None]) -> None:
        values = ", ".join(_expression(table, name, kind) for name, kind in self.tables[table].items())

        async def output(piece: bytes) -> None:
            write(piece)

        # JSON contains no control characters, so with these as quote and delimiter CSV leaves every line as it is.
        await self._connection.copy_from_query(
            f'SELECT json_build_array({values}) FROM "{table}"',  # noqa: S608 - names of our own tables
            output=output, format="csv", quote="\x01", delimiter="\x02",
        )  # fmt: skip


@asynccontextmanager
async def postgres_snapshot(url: str) -> AsyncIterator[PostgresSnapshot]:
    """Read the database as it is now, in a transaction that blocks no writer."""
    connection = await connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await _without_time_limits(connection)
            yield PostgresSnapshot(connection, await _tables(connection), await _applied(connection))
    except _ERRORS as error:
        raise StoreError(f"PostgreSQL could not be read: {error}") from error
    finally:
        await connection.close()


class PostgresTarget(Target):
    dialect = "postgres"

    def __init__(self, connection: Any, observer: Observer) -> None:
        self._connection = connection
        self.database = SqlDatabase(
            PostgresTransaction(connection, clock=None, observer=observer, statement_seconds=_STATEMENT_SECONDS)
        )

    async def tables(self) -> Tables:
        return await _tables(self._connection)

    async def applied(self) -> list[Migration]:
        return await _applied(self._connection)

    async def drop(self, tables: Sequence[str]) -> None:
        for table in tables:
            await self._connection.execute(f'DROP TABLE "{table}"')

    async def migrate(self, migrations: Sequence[Migration]) -> None:
        await self._connection.execute(REGISTER)
        for migration in migrations:
            # No other transaction sees these tables yet, so their indexes need not be built beside its writes.
            await self._connection.execute(migration.text.replace(" CONCURRENTLY", ""))
            await self._connection.execute(
                "INSERT INTO migrations VALUES ($1, $2, $3, now()::text)",
                migration.number, migration.name, migration.checksum,
            )  # fmt: skip

    async def load(self, table: str, columns: Mapping[str, str], rows: Iterator[list[Any]]) -> None:
        records = to_rows(rows, columns, _FROM_BACKUP)
        await self._connection.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
        await self._connection.copy_records_to_table(table, records=records, columns=list(columns))
        await self._connection.execute(f'ALTER TABLE "{table}" ENABLE TRIGGER USER')

    async def count(self, table: str) -> int:
        return int(await self._connection.fetchval(f'SELECT count(*) FROM "{table}"'))  # noqa: S608 - as above

    async def finish(self, id_gap: int) -> None:
        for table, column, sequence in await self._connection.fetch(_SEQUENCES):
            highest = f'SELECT coalesce(max("{column}"), 0) FROM "{table}"'  # noqa: S608 - as above
            await self._connection.execute(f"SELECT setval('{sequence}', ({highest}) + {id_gap} + 1, false)")
        await self._connection.execute("ANALYZE")


@asynccontextmanager
async def postgres_target(url: str, *, observer: Observer) -> AsyncIterator[PostgresTarget]:
    """Open the database, keep starting instances waiting, and commit at the end of the block, or change nothing."""
    connection = await connect(url)
    try:
        async with connection.transaction():
            await _without_time_limits(connection)
            await connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            await _refuse_running_instances(connection)
            yield PostgresTarget(connection, observer)
    except _ERRORS as error:
        raise StoreError(f"PostgreSQL could not restore: {error}") from error
    finally:
        await connection.close()


async def _refuse_running_instances(connection: Any) -> None:
    if "instances" not in await _tables(connection):
        return
    alive = await connection.fetchval(
        "SELECT count(*) FROM instances WHERE seen_at > now() - make_interval(secs => $1)", _ALIVE_SECONDS
    )
    if alive:
        raise StoreInUse(f"instances are running on this database ({alive}): stop them, wait 10 s, and restore again")


async def _without_time_limits(connection: Any) -> None:
    """Lift the limits that a server may set for statements. Waiting for another transaction's lock stays limited."""
    await connection.execute(
        "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; "
        "SET LOCAL lock_timeout = '30s'"
    )


async def _tables(connection: Any) -> Tables:
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in await connection.fetch(_COLUMNS):
        if table != MIGRATIONS:
            found.setdefault(table, {})[column] = kind
    return found


async def _applied(connection: Any) -> list[Migration]:
    if await connection.fetchval("SELECT to_regclass('migrations')") is None:
        return []
    rows = await connection.fetch("SELECT number, name, checksum FROM migrations ORDER BY number")
    return [Migration(**dict(row)) for row in rows]


def _expression(table: str, column: str, kind: str) -> str:
    """Return the SQL for a column's value in the backup."""
    if kind not in _TO_BACKUP:
        raise BackupFailed(f"column {table}.{column} has the type {kind}, which a backup cannot hold")
    return _TO_BACKUP[kind].format(f'"{column}"')
