"""The databases a simulation runs on: SQLite in memory, or PostgreSQL while virtual time stands still."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import asyncpg

from genlock.log import Silent
from genlock.ports import Store
from genlock.sandbox.simulation.virtual_time import VirtualClock, VirtualLoop
from genlock.stores.postgres import PostgresSession, PostgresStore
from genlock.stores.sqlite import SqliteSession, SqliteStore, connect

T = TypeVar("T")
Call = tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]

_TABLES = """
SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables
WHERE schemaname = 'public' AND tablename <> 'migrations'
"""


class Database(Protocol):
    async def open(self, loop: VirtualLoop) -> Store:
        """Return an empty store, on the clock of this loop."""

    def close(self) -> None: ...


class MemorySession(SqliteSession):
    async def scrub(self) -> bool:
        """Do nothing: SQLite gives the name of a file to a database that was read from bytes, but there is none."""
        return True


class Sqlite:
    """A fresh database in memory for every run; its calls do not block."""

    #: a migrated database without rows; reading it costs a tenth of the migrations
    _migrated = b""

    async def open(self, loop: VirtualLoop) -> Store:
        clock = VirtualClock(loop, lambda: loop.clock_offset)
        if not Sqlite._migrated:
            store = await SqliteStore.open(":memory:", clock=clock, observer=Silent())
            Sqlite._migrated = store.session.connection.serialize()
            return store
        session = MemorySession(connect(":memory:"), clock=clock, observer=Silent(), lock=None)
        session.connection.deserialize(Sqlite._migrated)
        return SqliteStore(session)

    def close(self) -> None:
        """There is nothing to close."""


class Postgres:
    """A database of our own, emptied for every run, behind a thread with an event loop in real time.

    What the instances ask for in one moment of virtual time is asked together, over one connection, when nothing else
    can run: so statements are batched as in production, and yet every run of a seed is the same.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="simulated-postgres", daemon=True).start()
        self._opened: PostgresStore | None = None

    async def open(self, loop: VirtualLoop) -> Store:
        return cast(
            "Store",
            BatchedStore(loop, self._do(self._new_store(VirtualClock(loop, lambda: loop.clock_offset))), self._do),
        )

    async def _new_store(self, clock: VirtualClock) -> PostgresStore:
        """Empty the database; return a store of its own for the run, over the connection of all runs."""
        if self._opened is None:
            self._opened = await PostgresStore.open(self._url, observer=Silent(), connections=1)
        pool = self._opened.session.pool
        await pool.execute(f"TRUNCATE {await pool.fetchval(_TABLES)} RESTART IDENTITY")
        session = PostgresSession(
            pool, url=self._url, pooled=False, clock=clock, observer=Silent(), retry_seconds=30.0,
            statement_seconds=10.0, rng=random.Random(0),
        )  # fmt: skip
        return PostgresStore(session)

    def close(self) -> None:
        if self._opened:
            self._do(self._opened.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class BatchedStore:
    """Collects calls until nothing else can run, then makes them all while the virtual clock stands still."""

    def __init__(
        self, loop: VirtualLoop, store: Store, do: Callable[[Coroutine[Any, Any, list[Any]]], list[Any]]
    ) -> None:
        self._loop = loop
        self._store = store
        self._do = do
        self._calls: list[Call] = []
        loop.on_idle = self._make

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*args: Any, **options: Any) -> asyncio.Future[Any]:
            future = self._loop.create_future()
            self._calls.append((partial(method, *args, **options), future))
            return future

        return call

    def _make(self) -> bool:
        calls, self._calls = self._calls, []
        if not calls:
            return False
        for (_, future), answer in zip(calls, self._do(_together([call for call, _ in calls])), strict=True):
            if future.cancelled():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        return True


async def _together(calls: list[Callable[[], Awaitable[Any]]]) -> list[Any]:
    return await asyncio.gather(*(call() for call in calls), return_exceptions=True)


async def create_database(url: str, name: str) -> str:
    """Create a new database on the same server; the named one is not touched."""
    connection = await asyncpg.connect(url)
    await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    await connection.close()
    return f"{url.rpartition('/')[0]}/{name}"


async def drop_database(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await connection.close()
