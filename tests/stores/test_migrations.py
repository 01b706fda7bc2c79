"""Numbered migrations: applied once and never changed."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from genlock.domain.errors import SchemaMismatch, StoreError
from genlock.stores import postgres as postgres_module
from genlock.stores import postgres_migrate
from genlock.stores import sqlite as sqlite_module
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import Migration, pending, shipped
from genlock.stores.postgres import PostgresStore
from genlock.stores.postgres_migrate import migrate
from genlock.stores.sqlite import SqliteStore
from tests.changes import PATIENCE_SECONDS
from tests.stores.builders import ManualClock, account_with
from tests.stores.conftest import Raw, RecordingObserver

DIALECTS = ("sqlite", "postgres")


# the rules, without a database


def migration(number: int, name: str = "name", checksum: str = "sum") -> Migration:
    return Migration(number=number, name=name, checksum=checksum)


def test_migrations_that_are_not_applied_are_pending_in_order() -> None:
    known = [migration(1), migration(2), migration(3)]

    assert pending(known, []) == known
    assert pending(known, [migration(1)]) == known[1:]
    assert pending(known, known) == []


def test_a_changed_migration_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="0001_name was changed after it had been applied: restore the file"):
        pending([migration(1, checksum="new")], [migration(1, checksum="old")])


def test_a_renamed_migration_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="0001_old was changed after it had been applied"):
        pending([migration(1, name="new")], [migration(1, name="old")])


def test_a_database_of_a_newer_version_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"0002_future is in the database but not in this .*: upgrade genlock"):
        pending([migration(1)], [migration(1), migration(2, name="future")])


def test_a_gap_in_the_applied_migrations_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="0001_name is missing in the database though later ones were applied"):
        pending([migration(1), migration(2)], [migration(2)])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_shipped_migrations_are_numbered_without_gaps_and_destroy_nothing(dialect: str) -> None:
    migrations = shipped(dialect)

    assert [shipped_migration.number for shipped_migration in migrations] == list(range(1, len(migrations) + 1))
    for shipped_migration in migrations:
        assert not re.search(r"\b(DROP\s+TABLE|TRUNCATE|DELETE\s+FROM)\b", shipped_migration.text, re.IGNORECASE), (
            shipped_migration.name
        )


def test_both_databases_have_the_same_migrations() -> None:
    sqlite, postgres = (
        [(shipped_migration.number, shipped_migration.name) for shipped_migration in shipped(dialect)]
        for dialect in DIALECTS
    )

    assert sqlite == postgres


# on the databases


async def test_running_again_changes_nothing(store: SqlDatabase, raw: Raw) -> None:
    account_id = await account_with(store, 100)
    before = await raw("SELECT * FROM migrations ORDER BY number")
    assert isinstance(store, SqliteStore | PostgresStore)

    assert await store.session.migrate() == []

    assert await raw("SELECT * FROM migrations ORDER BY number") == before
    assert (await store.wallet(account_id)).available == 100


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE migrations SET checksum = 'x' WHERE number = 1", "was changed after it had been applied"),
        ("INSERT INTO migrations VALUES (9999, 'future', 'x', 'then')", "9999_future is in the database but not in"),
    ],
)
async def test_a_database_with_other_migrations_is_refused(
    store: SqlDatabase, raw: Raw, change: str, words: str
) -> None:
    assert isinstance(store, SqliteStore | PostgresStore)
    before = await raw("SELECT * FROM migrations")
    await raw(change)
    try:
        with pytest.raises(SchemaMismatch, match=words):
            await store.session.migrate()
    finally:  # the database is shared
        await raw("DELETE FROM migrations")
        for row in before:
            await raw(f"INSERT INTO migrations VALUES {row!r}")  # noqa: S608


FAILS_HALFWAY = [
    Migration(number=1, name="good", checksum="1", text="CREATE TABLE good (id integer PRIMARY KEY);"),
    Migration(number=2, name="bad", checksum="2", text="CREATE TABLE half (id integer); SELECT nonsense FROM nowhere;"),
]


async def test_a_failed_migration_leaves_nothing_behind_on_sqlite(
    tmp_path: Path, clock: ManualClock, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "genlock.db"
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_module, "shipped", lambda _: FAILS_HALFWAY)
        with pytest.raises(StoreError, match="nowhere"):
            await SqliteStore.open(str(path), clock=clock, observer=observer)

    store = await SqliteStore.open(str(path), clock=clock, observer=observer)
    names = await store.session.call(
        lambda connection: [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    )
    await store.close()
    assert {"good", "half"} & set(names) == set()
    assert "jobs" in names


async def test_a_failed_migration_leaves_nothing_behind_on_postgresql(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(postgres_module, "shipped", lambda _: FAILS_HALFWAY)
        with pytest.raises(asyncpg.PostgresError):
            await PostgresStore.open(postgres_url, observer=observer)

    store = await PostgresStore.open(postgres_url, observer=observer)
    names = {row[0] for row in await store.session.pool.fetch("SELECT relname FROM pg_class")}
    await store.close()
    assert {"good", "half"} & names == set()
    assert "jobs" in names


async def test_a_file_that_could_not_be_opened_is_released(
    tmp_path: Path, clock: ManualClock, observer: RecordingObserver
) -> None:
    """After the database is repaired, the same process can open it."""
    path = str(tmp_path / "genlock.db")
    await (await SqliteStore.open(path, clock=clock, observer=observer)).close()
    change_register(path, "INSERT INTO migrations VALUES (9999, 'future', 'x', 'then')")
    with pytest.raises(SchemaMismatch):
        await SqliteStore.open(path, clock=clock, observer=observer)

    change_register(path, "DELETE FROM migrations WHERE number = 9999")

    await (await SqliteStore.open(path, clock=clock, observer=observer)).close()


def change_register(path: str, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


async def test_instances_that_start_together_migrate_once(postgres_url: str, observer: RecordingObserver) -> None:
    stores = await asyncio.gather(
        *(PostgresStore.open(postgres_url, observer=observer, connections=2) for _ in range(12))
    )

    rows = await stores[0].session.pool.fetch("SELECT number, name, checksum FROM migrations ORDER BY number")
    assert [tuple(row) for row in rows] == [
        (shipped_migration.number, shipped_migration.name, shipped_migration.checksum)
        for shipped_migration in shipped("postgres")
    ]
    for store in stores:
        await account_with(store)
    await asyncio.gather(*(store.close() for store in stores))


# indexes that are built during operation

BUILT_DURING_OPERATION = [
    Migration(number=1, name="table", checksum="1", text="CREATE TABLE numbers (n integer);"),
    Migration(
        number=2, name="index", checksum="2",
        text="-- concurrently\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS numbers_once ON numbers (n);\n"
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS numbers_negative ON numbers ((-n));",
    ),
    Migration(number=3, name="after", checksum="3", text="ALTER TABLE numbers ADD COLUMN m integer;"),
]  # fmt: skip
INDEXES = """
SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relname LIKE 'numbers%' ORDER BY 1
"""
BUILDING = """
SELECT count(*) FROM pg_stat_activity
WHERE query LIKE '%CREATE UNIQUE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()
"""


async def test_an_index_is_built_while_others_write(postgres_url: str) -> None:
    await migrate(postgres_url, BUILT_DURING_OPERATION[:1])
    writer = await asyncpg.connect(postgres_url)
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute("INSERT INTO numbers VALUES (1)")
    building = asyncio.create_task(migrate(postgres_url, BUILT_DURING_OPERATION))
    other = await asyncpg.connect(postgres_url)
    async with asyncio.timeout(30):
        while not await other.fetchval(BUILDING):
            pass

    async with asyncio.timeout(30):
        await other.execute("INSERT INTO numbers VALUES (2)")  # not blocked by the index that waits for the writer
    assert not building.done()
    await transaction.commit()

    assert await building == ["0002_index", "0003_after"]
    assert [tuple(row) for row in await other.fetch(INDEXES)] == [("numbers_negative", True), ("numbers_once", True)]
    await asyncio.gather(writer.close(), other.close())


async def test_an_index_whose_building_was_interrupted_is_built_again(postgres_url: str) -> None:
    await migrate(postgres_url, BUILT_DURING_OPERATION[:1])
    other = await asyncpg.connect(postgres_url)
    await other.execute("INSERT INTO numbers VALUES (1), (1)")
    with pytest.raises(asyncpg.UniqueViolationError):
        await migrate(postgres_url, BUILT_DURING_OPERATION)
    assert [tuple(row) for row in await other.fetch(INDEXES)] == [("numbers_once", False)]

    await other.execute("DELETE FROM numbers")

    assert await migrate(postgres_url, BUILT_DURING_OPERATION) == ["0002_index", "0003_after"]
    assert [tuple(row) for row in await other.fetch(INDEXES)] == [("numbers_negative", True), ("numbers_once", True)]
    await other.close()


THREE_TABLES = (
    replace(
        migration(1),
        text="CREATE TABLE one (n bigint); CREATE TABLE other (n bigint); CREATE TABLE last (n bigint);",
    ),
    replace(
        migration(2),
        text="ALTER TABLE one ADD m bigint; ALTER TABLE other ADD m bigint; ALTER TABLE last ADD m bigint;",
    ),
)
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@asynccontextmanager
async def between_the_locks(url: str, known: Sequence[Migration], table: str) -> AsyncIterator[asyncio.Task[list[str]]]:
    """A migration that waits for a table, with the locks that it has taken before."""
    holder = await asyncpg.connect(url)
    async with holder.transaction():
        await holder.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
        migrating = asyncio.create_task(migrate(url, known))
        await waiting(holder, 1)
        yield migrating
    await holder.close()


async def waiting(connection: "asyncpg.Connection[asyncpg.Record]", count: int) -> None:
    async with asyncio.timeout(30):
        while await connection.fetchval(WAITING) < count:
            await connection.execute("SELECT pg_stat_clear_snapshot()")


async def test_a_migration_that_a_running_instance_deadlocks_with_is_run_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrate, "LOCK_SECONDS", 60.0)
    reader, other = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    await migrate(postgres_url, THREE_TABLES[:1])
    await reader.execute("SET deadlock_timeout = '10min'")  # so that the migration is the one that is ended
    async with between_the_locks(postgres_url, THREE_TABLES, "other") as migrating:
        transaction = reader.transaction()
        await transaction.start()
        await reader.execute("SELECT FROM last")
        reading = asyncio.create_task(reader.execute("SELECT FROM one"))
        await waiting(other, 2)
    await reading
    await transaction.rollback()

    assert await migrating == ["0002_name"]
    await asyncio.gather(reader.close(), other.close())


@pytest.mark.parametrize("table", ["figure_blocks", "job_figures"])
async def test_statements_that_begin_during_the_migration_of_used_gifts_cannot_deadlock_with_it(
    postgres_url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes long in a large database. Statements of running instances lock orders first, and then accounts."""
    monkeypatch.setattr(postgres_migrate, "DEADLOCKS_MAX", 0)
    monkeypatch.setattr(postgres_migrate, "LOCK_SECONDS", 60.0)
    known = shipped("postgres")
    await migrate(postgres_url, known[:30])
    reader, other = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    await reader.execute("SET deadlock_timeout = '10min'")
    async with between_the_locks(postgres_url, known[:32], table) as migrating:
        reading = asyncio.create_task(reader.execute("SELECT FROM jobs j JOIN accounts a ON a.id = j.account_id"))
        await waiting(other, 2)

    assert await migrating == [migration.label for migration in known[30:32]]
    await reading
    await asyncio.gather(reader.close(), other.close())


async def test_statements_do_not_wait_while_a_migration_waits_for_a_backup(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup reads all tables in one transaction, for minutes: every statement would wait behind the migration."""
    monkeypatch.setattr(postgres_migrate, "LOCK_SECONDS", 0.5)
    monkeypatch.setattr(postgres_migrate, "LOCK_PAUSE_SECONDS", 0.5)
    known = shipped("postgres")
    await migrate(postgres_url, known[:30])
    backup, instance = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    async with backup.transaction(isolation="repeatable_read", readonly=True):
        await backup.execute("SELECT FROM accounts")
        migrating = asyncio.create_task(migrate(postgres_url, known))
        await waiting(backup, 1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await instance.execute("SELECT FROM jobs j JOIN accounts a ON a.id = j.account_id")
        assert not migrating.done()

    assert await migrating == [migration.label for migration in known[30:]]
    await asyncio.gather(backup.close(), instance.close())
