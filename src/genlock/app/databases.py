"""Opens the database that a URL names."""

from genlock.app.clock import SystemClock
from genlock.domain.errors import Refusal, StoreInUse
from genlock.ports import Clock, DatabaseCheck, Observer
from genlock.stores.check import PostgresCheck, SqliteCheck
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from genlock.stores.sqlite_file import must_exist

#: how the URL of an SQLite file begins
SQLITE = "sqlite:///"


async def open_store(
    url: str,
    *,
    observer: Observer,
    clock: Clock | None = None,
    in_use_ok: bool = False,
    existing: bool = False,
    keep_open: bool = False,
) -> SqlDatabase:
    """Open the database at a URL and bring its schema up to date. `clock` is for simulations.

    With `in_use_ok`, an SQLite file is opened although a service uses it, for a short command of an operator. With
    `existing`, a missing SQLite file is not created. With `keep_open`, all connections to PostgreSQL are kept open.
    Raises StoreUnavailable.
    """
    if url.startswith(SQLITE):
        path, clock = url.removeprefix(SQLITE), clock or SystemClock()
        if existing:
            must_exist(path)
        try:
            return await SqliteStore.open(path, clock=clock, observer=observer)
        except StoreInUse:
            if not in_use_ok:
                raise
            return await SqliteStore.open(path, clock=clock, observer=observer, without_lock=True)
    if url.startswith(("postgresql://", "postgres://")):
        return await PostgresStore.open(url, clock=clock, observer=observer, keep_open=keep_open)
    raise Refusal(f"GENLOCK_DATABASE_URL must begin with sqlite:/// or postgresql://, not {url.partition(':')[0]!r}")


async def open_database_check(url: str, *, observer: Observer) -> DatabaseCheck:
    """Open the database at a URL as it is, without migrating it, for the doctor. Raises StoreUnavailable."""
    if url.startswith(SQLITE):
        path = url.removeprefix(SQLITE)
        opened = await SqliteStore.open(path, clock=SystemClock(), observer=observer, without_lock=True)
        return SqliteCheck(opened, path)
    return PostgresCheck(await PostgresStore.open(url, observer=observer, migrate=False))
