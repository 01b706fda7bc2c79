"""Connections kept between statements: none leads to the old server or keeps the pool from closing."""

import asyncio
from typing import Any, cast

from genlock.stores.held_connections import HeldConnections


class Connection:
    def is_closed(self) -> bool:
        return False


class Pool:
    """Gives new connections; returning one takes a moment."""

    def __init__(self) -> None:
        self.released: list[Connection] = []
        self.free = asyncio.Event()
        self.free.set()

    async def acquire(self, **_: Any) -> Connection:
        await self.free.wait()
        return Connection()

    async def release(self, connection: Connection) -> None:
        await asyncio.sleep(0)
        self.released.append(connection)


def held(pool: Pool) -> HeldConnections:
    return HeldConnections(cast("Any", pool), timeout=1.0, most=5)


async def test_a_statement_gets_no_connection_that_is_being_returned() -> None:
    pool = Pool()
    connections = held(pool)
    old = [await connections.take() for _ in range(3)]
    assert all(connections.keep(connection) for connection in old)

    returning = asyncio.create_task(connections.give_back_all())
    await asyncio.sleep(0)
    taken = await connections.take()
    await returning

    assert taken not in old
    assert {id(connection) for connection in pool.released} == {id(connection) for connection in old}


async def test_a_statement_that_waited_for_a_connection_returns_it_after_the_stop() -> None:
    pool = Pool()
    connections = held(pool)
    pool.free.clear()
    waiting = asyncio.create_task(connections.take())
    await asyncio.sleep(0)
    await connections.stop()
    pool.free.set()

    assert not connections.keep(await waiting)
