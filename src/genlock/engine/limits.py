"""Limits that all instances keep together: turns reserved in the store, handed out here."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from genlock.domain.errors import ProviderBusy
from genlock.ports import Store

#: How far ahead turns are reserved. A turn lost in a crash costs at most this much of the allowance.
HORIZON_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """One turn every `interval` seconds; after a pause, up to `burst` at once."""

    interval: float
    burst: int = 1
    #: a turn that comes so many seconds too late, because the process was held up, would crowd those behind it:
    #: it is given up for another. None: it is used all the same
    late: float | None = None


class Limits:
    """Turns by key. Whoever's turn is further away than the horizon is told when to come back."""

    def __init__(self, store: Store, limits: Mapping[str, Limit]) -> None:
        self._store = store
        self._limits = limits
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def turn(self, key: str) -> None:
        """Wait for a turn. Raises ProviderBusy with the time to wait if it is far away."""
        limit = self._limits.get(key)
        if limit is None:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue(key, limit, future)
        await future

    def _queue(self, key: str, limit: Limit, future: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        queue = self._waiting.get(key)
        if queue is None:
            queue = self._waiting[key] = deque()
            task = loop.create_task(self._reserve(key, limit, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.append(future)

    def _grant(self, key: str, limit: Limit, when: float, future: asyncio.Future[None]) -> None:
        if future.done():
            return
        if limit.late is not None and asyncio.get_running_loop().time() - when > limit.late:
            self._queue(key, limit, future)
        else:
            future.set_result(None)

    async def _reserve(self, key: str, limit: Limit, queue: deque[asyncio.Future[None]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            while queue:
                count = len(queue)
                waits = await self._store.reserve(key, count, limit.interval, limit.burst, HORIZON_SECONDS)
                now = loop.time()
                for wait in waits:
                    loop.call_at(now + wait, self._grant, key, limit, now + wait, queue.popleft())
                for place in range(count - len(waits)):
                    _refuse(queue.popleft(), ProviderBusy(HORIZON_SECONDS / 2 + place * limit.interval, "rate limit"))
        except Exception as error:  # noqa: BLE001 - those who wait for a turn get it
            while queue:
                _refuse(queue.popleft(), error)
        finally:
            del self._waiting[key]


def _refuse(future: asyncio.Future[None], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
