"""A database as the doctor checks it: compared with a fresh schema, tried out, and left unchanged."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.resources import files
from typing import Any

import asyncpg

from genlock.ports import Clock
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import Migration, pending, shipped
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore, connect
from genlock.stores.sqlite_file import file_holder
from genlock.stores.transaction import PostgresTransaction, SqliteTransaction

_SCRATCH_SCHEMA = "genlock_doctor"
_POSTGRES_SHAPE = """
SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint ' || o.conname || ' ' || pg_get_constraintdef(o.oid)
FROM pg_constraint o WHERE o.connamespace = $1::text::regnamespace AND o.contype IN ('c', 'u', 'p')
UNION ALL
SELECT 'index ' || indexname || replace(indexdef, ' ON ' || $1 || '.', ' ON ')
FROM pg_indexes WHERE schemaname = $1
"""


class SchemaCheck(ABC):
    """Questions about a database that change nothing in it."""

    dialect: str
    store: SqlDatabase

    async def missing(self) -> list[str]:
        """Return the migrations that are not applied. Raises SchemaMismatch if others were applied."""
        todo = pending(shipped(self.dialect), await self._applied())
        return [migration.label for migration in todo]

    async def differences(self) -> list[str]:
        """Return what a fresh schema has and this database has not. Additions of the operator are ignored."""
        script = (files("genlock.stores") / "sql" / self.dialect / "schema.sql").read_text("utf-8")
        return sorted(await self._shape_of(script) - await self._shape())

    @abstractmethod
    def rehearsal(self, clock: Clock) -> AbstractAsyncContextManager[SqlDatabase]:
        """A database whose statements really run, in a transaction that is rolled back at the end of the block."""

    @abstractmethod
    def description(self) -> str:
        """Return the kind of database, and which process uses it."""

    async def close(self) -> None:
        await self.store.close()

    @abstractmethod
    async def _applied(self) -> list[Migration]: ...

    @abstractmethod
    async def _shape(self) -> set[str]:
        """Return the columns, constraints and indexes of the database, each as one line."""

    @abstractmethod
    async def _shape_of(self, script: str) -> set[str]:
        """Return the same for the schema that a script creates."""


class PostgresCheck(SchemaCheck):
    dialect = "postgres"

    def __init__(self, store: PostgresStore) -> None:
        self.store: PostgresStore = store

    @asynccontextmanager
    async def rehearsal(self, clock: Clock) -> AsyncIterator[SqlDatabase]:
        async with self._rolled_back() as connection:
            observer = self.store.session.observer
            yield SqlDatabase(PostgresTransaction(connection, clock=clock, observer=observer))

    def description(self) -> str:
        return "PostgreSQL"

    @asynccontextmanager
    async def _rolled_back(self) -> AsyncIterator[Any]:
        async with self.store.session.pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                yield connection
            finally:
                await transaction.rollback()

    async def _applied(self) -> list[Migration]:
        try:
            rows = await self.store.session.pool.fetch("SELECT number, name, checksum FROM migrations")
        except asyncpg.UndefinedTableError:
            return []
        return [Migration(**dict(row)) for row in rows]

    async def _shape(self) -> set[str]:
        async with self._rolled_back() as connection:
            return await _postgres_shape(connection, await connection.fetchval("SELECT current_schema()"))

    async def _shape_of(self, script: str) -> set[str]:
        async with self._rolled_back() as connection:
            await connection.execute(f"CREATE SCHEMA {_SCRATCH_SCHEMA}; SET LOCAL search_path TO {_SCRATCH_SCHEMA}")
            await connection.execute(script)
            return await _postgres_shape(connection, _SCRATCH_SCHEMA)


async def _postgres_shape(connection: Any, schema: str) -> set[str]:
    return {row[0] for row in await connection.fetch(_POSTGRES_SHAPE, schema)}


class SqliteCheck(SchemaCheck):
    dialect = "sqlite"

    def __init__(self, store: SqliteStore, path: str) -> None:
        self.store: SqliteStore = store
        self._path = path

    @asynccontextmanager
    async def rehearsal(self, clock: Clock) -> AsyncIterator[SqlDatabase]:
        connection = connect(self._path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield SqlDatabase(
                SqliteTransaction(connection, clock=clock, observer=self.store.session.observer, lock=None)
            )
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    def description(self) -> str:
        holder = file_holder(self._path)
        return f"SQLite, {self._path}" + (f", in use by process {holder}" if holder else "")

    async def _applied(self) -> list[Migration]:
        return await self.store.session.call(_sqlite_applied)

    async def _shape(self) -> set[str]:
        return await self.store.session.call(_sqlite_shape)

    async def _shape_of(self, script: str) -> set[str]:
        connection = sqlite3.connect(":memory:")
        try:
            connection.executescript(script)
            return _sqlite_shape(connection)
        finally:
            connection.close()


def _sqlite_applied(connection: sqlite3.Connection) -> list[Migration]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return []
    rows = connection.execute("SELECT number, name, checksum FROM migrations")
    return [Migration(number=number, name=name, checksum=checksum) for number, name, checksum in rows]


def _sqlite_shape(connection: sqlite3.Connection) -> set[str]:
    """Indexes by the statement that created them, which SQLite stores; tables by their columns."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    objects = {name: (kind, " ".join(sql.split())) for kind, name, sql in rows}
    found = {f"{kind} {name} {sql}" for name, (kind, sql) in objects.items() if kind != "table"}
    for table, (kind, _) in objects.items():
        if kind == "table":
            columns = connection.execute(f"PRAGMA table_info({table})")
            found |= {f"column {table}.{column[1]} {column[2]}" for column in columns}
    return found
