"""PostgreSQL: many instances, statements over arrays, and retries of everything that failed temporarily."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from genlock.domain.errors import StoreError, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.retry import backoff
from genlock.ports import Clock, Observer
from genlock.stores.batch import Params
from genlock.stores.database import SqlDatabase
from genlock.stores.held_connections import HeldConnections
from genlock.stores.migrate import shipped
from genlock.stores.postgres_connection import set_up, set_up_warm
from genlock.stores.postgres_migrate import migrate as apply_migrations
from genlock.stores.queries import Use, array, load, positional
from genlock.stores.rows import Row
from genlock.stores.session import Session

#: Generic plans that use only index look-ups stay good while the tables grow from nothing.
_SETTINGS = {
    "jit": "off",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    # Our statements read few rows: starting a worker process costs more than reading them.
    "max_parallel_workers_per_gather": "0",
}
#: How much of the pool may be used at a time for what users and operators look at and for what runs in the background,
#: so that connections for the work itself are always left.
_POOL_SHARES: Mapping[frozenset[Use], float] = {
    frozenset({Use.SCREEN}): 0.5,
    frozenset({Use.OPERATOR, Use.PERIODIC, Use.CHECK}): 0.2,
}
#: how often connections that were lost are opened again
REOPEN_SECONDS = 10.0
#: how long opening one connection in the background may take, also when the store is closed meanwhile
CLOSE_SECONDS = 2.0
#: the number of statements after which asyncpg closes a connection: by default 50,000, which is a minute of work
STATEMENTS_MAX = 1_000_000_000
#: prepared statements that a connection keeps
STATEMENT_CACHE = 200
#: how long we wait for a server that is starting up
STARTING_SECONDS = 30.0
STARTING_PAUSE_SECONDS = 0.2
#: A statement that the server cancels after this long has exceeded its `statement_timeout`, or an administrator has
#: cancelled it. A cancellation that comes sooner was meant for another statement: this one is run again.
CANCELLED_SECONDS = 1.0
#: how often a statement is run whose row other transactions change each time while it waits for the row
CHECKED_ATTEMPTS_MAX = 10
#: Errors of the connection or of the moment, not of the statement: it is retried.
TEMPORARY: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has announced the end of the connection but not closed it yet
    asyncpg.PostgresConnectionError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # after a failover we are still connected to the old primary
)


class StatementTooSlow(Exception):
    """A time-out, ours or the server's, cut a statement. It is not run again: under load, that would fill the pool."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"cut after {seconds:g} s")
        self.seconds = seconds


class PostgresSession(Session):
    """Relies on no session state of the server, so a pooler in transaction mode may stand in between."""

    unique_violation = asyncpg.UniqueViolationError
    keeps_dead_entries = True

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self, pool: "asyncpg.Pool[asyncpg.Record]", *, url: str = "", pooled: bool, clock: Clock | None,
        observer: Observer, retry_seconds: float, statement_seconds: float, rng: random.Random, held: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(observer)
        self.queries = load("postgres")
        self.statements = {name: positional(query.text) for name, query in self.queries.items()}
        self.pool = pool
        self._url = url
        #: whether a pooler stands between us and the server
        self.pooled = pooled
        self._clock = clock
        self.has_own_clock = clock is not None
        self._retry_seconds = retry_seconds
        self.statement_seconds = statement_seconds
        self.rng = rng
        self._shares = _shares(pool.get_max_size())
        self._connections = HeldConnections(pool, timeout=statement_seconds, most=held)
        self._opening: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def keep_open(self) -> None:
        """Open all connections in the background, and those that were lost again: a request does not wait for it."""
        self._opening = asyncio.get_running_loop().create_task(self._keep_open())

    async def _keep_open(self) -> None:
        while not self._closing.is_set():
            try:
                while self.pool.get_size() < self.pool.get_max_size() and not self._closing.is_set():
                    await self._open_one()
            except TEMPORARY:
                pass  # the server does not answer: what needs a connection says so
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                self.observer.event(Event.STAGE_ERROR, step="open connections", error=repr(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(REOPEN_SECONDS):
                    await self._closing.wait()

    async def _open_one(self) -> None:
        """Open one more connection. The idle ones are taken for a moment only, so that the next one is a new one."""
        opening: asyncio.Task[None] | None = None
        try:
            async with AsyncExitStack() as idle:
                for _ in range(self.pool.get_idle_size()):
                    await idle.enter_async_context(self.pool.acquire(timeout=CLOSE_SECONDS))
                opening = asyncio.get_running_loop().create_task(self._use_one())
                await asyncio.sleep(0)  # it takes its place in the pool
        finally:
            if opening is not None:  # also when an idle one was lost: an error that is not read is logged as a bug
                await opening

    async def _use_one(self) -> None:
        """Take a connection from the pool, which opens it if necessary, and return it."""
        async with self.pool.acquire(timeout=CLOSE_SECONDS):
            pass

    async def close(self) -> None:
        self._closing.set()
        if self._opening is not None:  # not cancelled: a connection that it has just opened would never be returned
            await asyncio.wait([self._opening], timeout=CLOSE_SECONDS)
        await self._connections.stop()
        await self.pool.close()

    async def migrate(self) -> list[str]:
        return await apply_migrations(self._url, shipped("postgres"))

    @staticmethod
    def time(value: datetime | None) -> datetime | None:
        return value

    def array(self, values: Sequence[Any]) -> Any:
        return array(values)

    async def one(self, name: str, /, **params: Any) -> list[Row]:
        return await self._fetch(name, params)

    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        columns = {column: array([item[column] for item in items]) for column in items[0]}
        return await self._fetch(name, {**shared, **columns})

    async def _fetch(self, name: str, params: Params) -> list[Row]:
        self.observer.count("store_statements", 1, operation=name)
        text, names = self.statements[name]
        params["now"] = self._clock.now() if self._clock else None
        values = [params[parameter] for parameter in names]
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._retry_seconds
        attempt = 0
        while True:
            try:
                share = self._shares.get(self.queries[name].use)
                if share is None:  # work does not wait for a place
                    return await self._try(text, values)
                async with self._place(share, name):
                    return await self._try(text, values)
            except StatementTooSlow as error:
                self.uncertain_commits += 1
                self.observer.count("store_timeouts", 1, operation=name)
                self.observer.event(Event.STORE_TIMEOUT, operation=name, seconds=error.seconds)
                raise StoreUnavailable(f"{name} took longer than {error.seconds:g} s") from error
            except TEMPORARY as error:
                self.uncertain_commits += 1
                self.observer.count("store_retries", 1, operation=name, reason=type(error).__name__)
                self.observer.event(Event.STORE_RETRY, operation=name, reason=type(error).__name__, attempt=attempt)
                if loop.time() > give_up:
                    raise StoreUnavailable(f"the database did not answer: {error}") from error
                if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                    await self.pool.expire_connections()  # new connections may lead to the new primary
                    await self._connections.give_back_all()
            except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
                raise  # the parameters are to blame
            except asyncpg.PostgresError as error:
                raise StoreError(f"PostgreSQL could not run {name}: {error}") from error
            await asyncio.sleep(backoff(attempt, self.rng.random(), base=0.05, most=1.0))
            attempt += 1

    @asynccontextmanager
    async def _place(self, share: asyncio.Semaphore, name: str) -> AsyncIterator[None]:
        """Wait for a place in the share of the pool that statements of one use have."""
        try:
            # Not wait_for: that of Python 3.11 swallows a cancellation that comes in the moment of the acquisition.
            async with asyncio.timeout(self.statement_seconds):
                await share.acquire()
        except TimeoutError as error:
            raise StoreUnavailable(f"{name} waited too long for a connection") from error
        try:
            yield
        finally:
            share.release()

    async def _try(self, text: str, values: list[Any]) -> list[Row]:
        connection = await self._connections.take()
        try:
            rows = await self._run_checked(connection, text, values)
        except BaseException:
            await self._connections.give_back(connection)
            raise
        if not self._connections.keep(connection):
            await self._connections.give_back(connection)
        return rows

    async def _run_checked(self, connection: Any, text: str, values: list[Any]) -> list[Row]:
        """Run a statement, and again if it breaks a CHECK constraint, which may be due to a concurrent change.

        PostgreSQL checks what was decided on the locked row first with the values from before another transaction
        changed that row. Repeated, the statement begins with the changed values, and may again wait for a change.
        """
        for _ in range(CHECKED_ATTEMPTS_MAX - 1):
            with suppress(asyncpg.CheckViolationError):
                return await self._run(connection, text, values)
        return await self._run(connection, text, values)

    async def _run(self, connection: Any, text: str, values: list[Any]) -> list[Row]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            if not self.pooled:
                return _rows(await connection.fetch(text, *values, timeout=self.statement_seconds))
            async with connection.transaction():  # keeps parse and execute on one server connection
                return _rows(await connection.fetch(text, *values, timeout=self.statement_seconds))
        except TimeoutError as error:
            raise StatementTooSlow(self.statement_seconds) from error
        except asyncpg.QueryCanceledError as error:
            if loop.time() - began < CANCELLED_SECONDS:
                raise
            raise StatementTooSlow(round(loop.time() - began, 1)) from error


class PostgresStore(SqlDatabase):
    """The database on PostgreSQL."""

    session: PostgresSession

    @classmethod
    async def open(  # noqa: PLR0913 - each is an option of its own
        cls,
        url: str,
        *,
        observer: Observer,
        clock: Clock | None = None,
        connections: int = 10,
        retry_seconds: float = 30.0,
        statement_seconds: float = 10.0,
        rng: random.Random | None = None,
        migrate: bool = True,
        keep_open: bool = False,
    ) -> "PostgresStore":
        """Connect and apply pending migrations. `clock` replaces the server's clock, for simulations.

        With `keep_open`, all connections are opened in the background and kept open and warm, for a service.
        """
        pooled = await _behind_pooler(url)
        applied = await apply_migrations(url, shipped("postgres")) if migrate else []
        session = PostgresSession(
            await _make_pool(url, connections, pooled=pooled, keep_open=keep_open),
            url=url,
            pooled=pooled,
            clock=clock,
            observer=observer,
            retry_seconds=retry_seconds,
            statement_seconds=statement_seconds,
            rng=rng or random.Random(),  # noqa: S311 - it only spreads retries
            held=connections // 2 if keep_open else 0,
        )
        if keep_open:
            session.keep_open()
        store = cls(session)
        store.applied = applied
        return store


async def _make_pool(url: str, connections: int, *, pooled: bool, keep_open: bool) -> "asyncpg.Pool[asyncpg.Record]":
    return await asyncpg.create_pool(
        url,
        min_size=1,
        max_size=connections,
        max_queries=STATEMENTS_MAX,
        statement_cache_size=0 if pooled else STATEMENT_CACHE,
        max_cached_statement_lifetime=0,  # without end: else each is planned again every five minutes
        max_inactive_connection_lifetime=0.0 if keep_open else 60.0,
        init=set_up_warm if keep_open and not pooled else set_up,
        reset=_nothing,
        server_settings=None if pooled else _SETTINGS,
    )


def _shares(connections: int) -> dict[Use, asyncio.Semaphore]:
    """Return the semaphore of each use that has only a share of the pool; related uses have one together."""
    return {
        use: semaphore
        for uses, part in _POOL_SHARES.items()
        for semaphore in [asyncio.Semaphore(max(1, int(connections * part)))]
        for use in uses
    }


def _rows(records: Any) -> list[Row]:
    """Asyncpg's records are mappings in all but their declared type."""
    rows: list[Row] = records
    return rows


async def _nothing(_: object) -> None:
    """Reset nothing when a connection returns to the pool: we leave no session state."""


def _connection_error(url: str, error: Exception) -> str:
    """Return where the connection failed and why, without the password. An invalid URL may contain it anywhere."""
    try:
        parts = urlsplit(url)
        return (
            "" if isinstance(error, ValueError) else f" at {parts.hostname}:{parts.port or 5432}{parts.path}: {error}"
        )
    except ValueError:
        return ""


async def connect(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """Connect, with the server's own settings. Raises StoreUnavailable."""
    try:
        return await _connect(url)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise StoreUnavailable(
            f"cannot connect to PostgreSQL{_connection_error(url, error)}. "
            "Check GENLOCK_DATABASE_URL, and that the server runs and knows this user and database."
        ) from None


async def _connect(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """Connect; wait while the server is starting up, because a restart of the machine starts both at the same time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STARTING_SECONDS
    while True:
        try:
            return await asyncpg.connect(url, statement_cache_size=0)
        except asyncpg.CannotConnectNowError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(STARTING_PAUSE_SECONDS)


async def _behind_pooler(url: str) -> bool:
    """Whether a pooler answers: it reports its own process ids, not those of the server."""
    connection = await connect(url)
    try:
        async with connection.transaction():
            return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())
    finally:
        await connection.close()
