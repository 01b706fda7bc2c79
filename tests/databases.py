"""Migrated databases without rows, for tests that are not about migrations."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from genlock.app.databases import open_store
from genlock.log import Silent
from genlock.ports import Clock, Observer
from genlock.stores.sqlite import SqliteSession, SqliteStore, connect


def migrate(url: str) -> None:
    """Apply all migrations; also from within a running event loop."""

    async def opened() -> None:
        store = await open_store(url, observer=Silent())
        await store.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, opened()).result()


@cache
def _template() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        migrate(f"sqlite:///{path}")
        return path.read_bytes()


def new_sqlite(folder: Path, name: str = "genlock.db") -> str:
    """Return the path of a migrated SQLite file, new unless it is there: a copy costs a tenth of the migrations."""
    path = folder / name
    if not path.exists():
        path.write_bytes(_template())
    return str(path)


#: a migrated database in memory, once there is one
_in_memory = b""


async def sqlite_in_memory(clock: Clock, observer: Observer) -> SqliteStore:
    """Return a migrated SQLite store in memory; its statements run in the event loop."""
    global _in_memory  # noqa: PLW0603 - a template for all tests of the process
    if not _in_memory:
        store = await SqliteStore.open(":memory:", clock=clock, observer=observer)
        _in_memory = store.session.connection.serialize()
        return store
    session = SqliteSession(connect(":memory:"), clock=clock, observer=observer, lock=None)
    session.connection.deserialize(_in_memory)
    return SqliteStore(session)


@cache
def _kept() -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Return a connection to a copy of the template that stays open, and the tables of the copy."""
    connection = connect(":memory:")
    connection.deserialize(_in_memory)
    names = (name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    return connection, tuple(name for name in names if name not in ("migrations", "sqlite_stat1"))


async def emptied_sqlite(clock: Clock, observer: Observer) -> SqliteStore:
    """Return a SQLite store in memory over one connection for all tests, which has compiled their statements.

    Its tables are emptied here; it must not be closed.
    """
    if not _in_memory:
        await (await sqlite_in_memory(clock, observer)).close()
    connection, tables = _kept()
    assert not connection.in_transaction
    connection.execute("BEGIN")
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for table in tables:
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
    connection.execute("COMMIT")
    return SqliteStore(SqliteSession(connection, clock=clock, observer=observer, lock=None))
