"""A database as the doctor looks at it: compared with what it should be, tried out, and left as it was."""

import sqlite3
from abc import ABC, abstractmethod
from asyncio import Lock
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.resources import files
from typing import Any, TypeVar

import asyncpg

from genlock.ports import Clock, Observer
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import Migration, pending, shipped
from genlock.stores.postgres import PostgresStore
from genlock.stores.rows import Row
from genlock.stores.sqlite import SqliteStore, _alone, _connect, file_holder

T = TypeVar("T")
_DRAFT = "genlock_doctor"
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


class Examination(ABC):
    """What one may ask of a database without changing it."""

    dialect: str
    store: SqlDatabase

    async def missing(self) -> list[str]:
        """The migrations that are not applied. Raises SchemaMismatch if its past is not ours."""
        todo = pending(shipped(self.dialect), await self._applied())
        return [f"{migration.number:04d}_{migration.name}" for migration in todo]

    async def differences(self) -> list[str]:
        """What is not as a fresh schema has it. What is there beside it is the operator's own."""
        wanted = await self._shape_of(
            (files("genlock.stores") / "sql" / self.dialect / "schema.sql").read_text("utf-8")
        )
        return sorted(wanted - await self._shape())

    @abstractmethod
    def rehearsal(self, clock: Clock) -> AbstractAsyncContextManager[SqlDatabase]:
        """A store whose every statement really runs, and is undone at the end of the block."""

    @abstractmethod
    def description(self) -> str:
        """What kind of database it is, and who has it."""

    async def close(self) -> None:
        await self.store.close()

    @abstractmethod
    async def _applied(self) -> list[Migration]: ...

    @abstractmethod
    async def _shape(self) -> set[str]: ...

    @abstractmethod
    async def _shape_of(self, script: str) -> set[str]: ...


class _UndonePostgres(PostgresStore):
    """On one connection, in one transaction, whose end is not a commit."""

    _connection: Any
    _one_at_a_time: Lock

    async def _try(self, text: str, values: list[Any]) -> list[Row]:
        async with self._one_at_a_time, self._connection.transaction():
            rows: list[Row] = await self._connection.fetch(text, *values, timeout=self._statement_seconds)
            return rows


class PostgresExamination(Examination):
    dialect = "postgres"

    def __init__(self, store: PostgresStore, observer: Observer) -> None:
        self.store: PostgresStore = store
        self._observer = observer

    @asynccontextmanager
    async def rehearsal(self, clock: Clock) -> AsyncIterator[SqlDatabase]:
        async with self._undone() as connection:
            undone = _UndonePostgres(
                self.store._pool, pooled=True, clock=clock, observer=self._observer,  # noqa: SLF001 - of this package
                patience_seconds=0.0, statement_seconds=10.0, rng=self.store._rng,  # noqa: SLF001
            )  # fmt: skip
            undone._connection, undone._one_at_a_time = connection, Lock()  # noqa: SLF001
            yield undone

    def description(self) -> str:
        return "PostgreSQL"

    @asynccontextmanager
    async def _undone(self) -> AsyncIterator[Any]:
        async with self.store._pool.acquire() as connection:  # noqa: SLF001 - of this package
            transaction = connection.transaction()
            await transaction.start()
            try:
                yield connection
            finally:
                await transaction.rollback()

    async def _applied(self) -> list[Migration]:
        try:
            rows = await self.store._pool.fetch("SELECT number, name, checksum FROM migrations")  # noqa: SLF001
        except asyncpg.UndefinedTableError:
            return []
        return [Migration(**dict(row)) for row in rows]

    async def _shape(self) -> set[str]:
        async with self._undone() as connection:
            return await _postgres_shape(connection, await connection.fetchval("SELECT current_schema()"))

    async def _shape_of(self, script: str) -> set[str]:
        async with self._undone() as connection:
            await connection.execute(f"CREATE SCHEMA {_DRAFT}; SET LOCAL search_path TO {_DRAFT}")
            await connection.execute(script)
            return await _postgres_shape(connection, _DRAFT)


async def _postgres_shape(connection: Any, schema: str) -> set[str]:
    return {row[0] for row in await connection.fetch(_POSTGRES_SHAPE, schema)}


class _UndoneSqlite(SqliteStore):
    """In one transaction, whose end is not a commit."""

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        answer = _alone(self._connection, work)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


class SqliteExamination(Examination):
    dialect = "sqlite"

    def __init__(self, store: SqliteStore, path: str, observer: Observer) -> None:
        self.store: SqliteStore = store
        self._path = path
        self._observer = observer

    @asynccontextmanager
    async def rehearsal(self, clock: Clock) -> AsyncIterator[SqlDatabase]:
        connection = _connect(self._path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield _UndoneSqlite(connection, clock=clock, observer=self._observer, lock=None)
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    def description(self) -> str:
        holder = file_holder(self._path)
        return f"SQLite, {self._path}" + (f", in use by process {holder}" if holder else "")

    async def _applied(self) -> list[Migration]:
        try:
            rows = await self.store._call(  # noqa: SLF001 - of this package
                lambda connection: list(connection.execute("SELECT number, name, checksum FROM migrations"))
            )
        except Exception as error:
            if "no such table" in str(error):
                return []
            raise
        return [Migration(number=number, name=name, checksum=checksum) for number, name, checksum in rows]

    async def _shape(self) -> set[str]:
        return await self.store._call(_sqlite_shape)  # noqa: SLF001 - of this package

    async def _shape_of(self, script: str) -> set[str]:
        connection = sqlite3.connect(":memory:")
        try:
            connection.executescript(script)
            return _sqlite_shape(connection)
        finally:
            connection.close()


def _sqlite_shape(connection: sqlite3.Connection) -> set[str]:
    """Tables and indexes by the text that made them: SQLite keeps it."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    tidy = {name: (kind, " ".join(sql.split())) for kind, name, sql in rows}
    found = {f"{kind} {name} {sql}" for name, (kind, sql) in tidy.items() if kind != "table"}
    for table, (kind, _) in tidy.items():
        if kind == "table":
            columns = connection.execute(f"PRAGMA table_info({table})")
            found |= {f"column {table}.{column[1]} {column[2]}" for column in columns}
    return found
