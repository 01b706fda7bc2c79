"""Connections kept between statements: asyncpg's pool starts a task and several timers to take one and return it."""

from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    Connection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]


class HeldConnections:
    """Keeps some of a pool's connections after their statement, for the next one.

    The others stay in the pool, for its other users. While a statement waits there, nothing is kept.
    """

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", *, timeout: float, most: int) -> None:
        self._pool = pool
        self._timeout = timeout
        #: how many are kept; the pool can be closed only after `stop`
        self._most = most
        #: the one used last is used first: its server process has what it needs in its caches
        self._free: list[Connection] = []
        #: taken, with the generation in which it was taken
        self._taken: dict[Connection, int] = {}
        self._generation = 0
        self._waiting = 0

    async def take(self) -> "Connection":
        """Return a connection, from the pool if none is kept. Raises TimeoutError and the errors of connecting."""
        while self._free:
            connection = self._free.pop()
            if _is_open(connection):
                self._taken[connection] = self._generation
                return connection
            await self._pool.release(connection)
        self._waiting += 1
        try:
            connection = await self._pool.acquire(timeout=self._timeout)
        finally:
            self._waiting -= 1
        self._taken[connection] = self._generation
        return connection

    def keep(self, connection: "Connection") -> bool:
        """Keep a connection whose statement has ended well. False: return it to the pool by `give_back`."""
        if self._waiting or len(self._free) >= self._most or self._taken[connection] != self._generation:
            return False
        del self._taken[connection]
        self._free.append(connection)
        return True

    async def give_back(self, connection: "Connection") -> None:
        """Return a connection to the pool, which repairs or closes it if it must."""
        self._taken.pop(connection, None)
        await self._pool.release(connection)

    async def give_back_all(self) -> None:
        """Return what is kept, and from now on also what is in use when its statement ends."""
        self._generation += 1
        free, self._free = self._free, []  # at once: a statement must not take one of them meanwhile
        for connection in free:
            await self._pool.release(connection)

    async def stop(self) -> None:
        """Return everything and keep nothing any more, also of statements that still wait for a connection."""
        self._most = 0
        await self.give_back_all()


def _is_open(connection: "Connection") -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # it was closed, and the pool has it back
        return False
