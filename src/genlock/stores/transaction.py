"""Sessions whose statements run in one transaction that the caller began, and ends or rolls back."""

import random
from asyncio import Lock
from typing import Any, cast

from genlock.ports import Clock, Observer
from genlock.stores.postgres import PostgresSession
from genlock.stores.rows import Row
from genlock.stores.sqlite import SqliteSession, T, Work, in_savepoint


class _NoPool:
    """What the session asks its pool for, when it has one connection only."""

    def get_max_size(self) -> int:
        return 1


class PostgresTransaction(PostgresSession):
    """Runs every statement on one connection, in a savepoint of its transaction."""

    def __init__(
        self, connection: Any, *, clock: Clock | None, observer: Observer, statement_seconds: float = 10.0
    ) -> None:
        super().__init__(
            cast("Any", _NoPool()), pooled=True, clock=clock, observer=observer,
            retry_seconds=0.0, statement_seconds=statement_seconds, rng=random.Random(),  # noqa: S311 - it only spreads retries
        )  # fmt: skip
        self._connection = connection
        self._lock = Lock()

    async def _try(self, text: str, values: list[Any]) -> list[Row]:
        async with self._lock, self._connection.transaction():
            rows: list[Row] = await self._connection.fetch(text, *values, timeout=self.statement_seconds)
            return rows


class SqliteTransaction(SqliteSession):
    """Runs every statement in a savepoint of the connection's transaction."""

    async def call(self, work: Work[T]) -> T:
        return in_savepoint(self.connection, work)
