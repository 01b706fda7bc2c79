"""PostgreSQL: many instances, statements over arrays, everything retried that failed in passing."""

import asyncio
import random
from collections.abc import Sequence
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
from genlock.stores.migrate import REGISTER, Migration, pending, shipped
from genlock.stores.queries import array, load, positional
from genlock.stores.rows import Row

#: Locks out other instances while one migrates; any number nobody else uses.
_MIGRATION_LOCK = 4_729_106
#: Generic plans stay good while the tables grow from nothing: they are made for index look-ups only.
_SETTINGS = {
    "jit": "off",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
#: how long a server that is starting up is waited for
STARTING_SECONDS = 30.0
STARTING_PAUSE_SECONDS = 0.2
#: What says nothing about the statement itself: the connection or the moment was bad.
PASSING: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection whose end has begun: the server's last word is read, its close is not
    asyncpg.PostgresConnectionError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # the server we are connected to has handed over to another
)


class PostgresStore(SqlDatabase):
    """The Store port on PostgreSQL. Relies on no session state, so a transaction pooler may stand in between."""

    not_unique = asyncpg.UniqueViolationError

    def __init__(
        self, pool: "asyncpg.Pool[asyncpg.Record]", *, pooled: bool, clock: Clock | None, observer: Observer,
        patience_seconds: float, statement_seconds: float, rng: random.Random,
    ) -> None:  # fmt: skip
        super().__init__(observer)
        self.queries = load("postgres")
        self._statements = {name: positional(query.text) for name, query in self.queries.items()}
        self._pool = pool
        self._pooled = pooled
        self._clock = clock
        self._patience = patience_seconds
        self._statement_seconds = statement_seconds
        self._rng = rng

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        observer: Observer,
        clock: Clock | None = None,
        connections: int = 10,
        patience_seconds: float = 30.0,
        statement_seconds: float = 10.0,
        rng: random.Random | None = None,
        migrate: bool = True,
    ) -> "PostgresStore":
        """Connect and bring the schema up to date. `clock` replaces the database's own, for simulations."""
        pooled = await _behind_pooler(url)
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=connections,
            statement_cache_size=0 if pooled else 200,
            max_inactive_connection_lifetime=60.0,
            reset=_nothing,
            server_settings=None if pooled else _SETTINGS,
        )
        store = cls(
            pool,
            pooled=pooled,
            clock=clock,
            observer=observer,
            patience_seconds=patience_seconds,
            statement_seconds=statement_seconds,
            rng=rng or random.Random(),  # noqa: S311 - spreads retries, guards nothing
        )
        try:
            store.applied = await store.migrate() if migrate else []
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        await self._pool.close()

    async def migrate(self) -> list[str]:
        """Apply what is pending and say what it was. Instances that start together wait for each other here."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            await connection.execute(REGISTER)
            rows = await connection.fetch("SELECT number, name, checksum FROM migrations")
            todo = pending(shipped("postgres"), [Migration(**dict(row)) for row in rows])
            for migration in todo:
                await connection.execute(migration.text)
                await connection.execute(
                    "INSERT INTO migrations VALUES ($1, $2, $3, now()::text)",
                    migration.number, migration.name, migration.checksum,
                )  # fmt: skip
        return [f"{migration.number:04d}_{migration.name}" for migration in todo]

    @staticmethod
    def time(value: Any) -> datetime | None:
        return value  # type: ignore[no-any-return]

    def array(self, values: Sequence[Any]) -> Any:
        return array(values)

    async def one(self, name: str, /, **params: Any) -> list[Row]:
        return await self._fetch(name, params)

    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        columns = {column: array([item[column] for item in items]) for column in items[0]}
        return await self._fetch(name, {**shared, **columns})

    async def _fetch(self, name: str, params: Params) -> list[Row]:
        text, names = self._statements[name]
        params["now"] = self._clock.now() if self._clock else None
        values = [params[parameter] for parameter in names]
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        attempt = 0
        while True:
            try:
                return await self._try(text, values)
            except PASSING as error:
                self.uncertain_commits += 1
                self._observer.count("store_retries", 1, operation=name, reason=type(error).__name__)
                self._observer.event(Event.STORE_RETRY, operation=name, reason=type(error).__name__, attempt=attempt)
                if loop.time() > give_up:
                    raise StoreUnavailable(f"the database did not answer: {error}") from error
                if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                    await self._pool.expire_connections()  # the address may lead to the new one by now
            except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
                raise  # the fault of what was asked
            except asyncpg.PostgresError as error:
                raise StoreError(f"PostgreSQL could not do it: {error}") from error
            await asyncio.sleep(backoff(attempt, self._rng.random(), base=0.05, most=1.0))
            attempt += 1

    async def _try(self, text: str, values: list[Any]) -> list[Row]:
        rows: Any
        async with self._pool.acquire(timeout=self._statement_seconds) as connection:
            if not self._pooled:
                rows = await connection.fetch(text, *values, timeout=self._statement_seconds)
            else:
                async with connection.transaction():  # keeps parse and execute on one server connection
                    rows = await connection.fetch(text, *values, timeout=self._statement_seconds)
        return rows  # type: ignore[no-any-return]


async def _nothing(_: object) -> None:
    """We leave no session state behind, so there is none to reset."""


def _place(url: str, error: Exception) -> str:
    """Where it was and what it said, without the password, which a broken address may have anywhere."""
    try:
        parts = urlsplit(url)
        return (
            "" if isinstance(error, ValueError) else f" at {parts.hostname}:{parts.port or 5432}{parts.path}: {error}"
        )
    except ValueError:
        return ""


async def _connect(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """A server that is only just starting is waited for: whoever restarts it restarts us at the same time."""
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
    """A pooler hands out its own process ids, not the server's."""
    try:
        connection = await _connect(url)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise StoreUnavailable(
            f"cannot connect to PostgreSQL{_place(url, error)}. "
            "Check GENLOCK_DATABASE_URL, and that the server runs and knows this user and database."
        ) from None
    try:
        async with connection.transaction():
            return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())
    finally:
        await connection.close()
