"""Limits that all instances keep together: turns reserved in the store, handed out here."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from genlock.domain.errors import ProviderBusy
from genlock.ports import Store
from genlock.ports.provider import RateLimit as RateLimit

#: How far ahead turns are reserved. A turn lost in a crash costs at most this much of the allowance.
HORIZON_SECONDS = 2.0
#: Where everything is late all the time, turns are used late rather than never.
PERMITS_MISSED_MAX = 3


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to make one call, now."""

    #: the loop's time after which it would crowd those behind it
    until: float = inf

    @property
    def missed(self) -> bool:
        return self.until != inf and self.until < asyncio.get_running_loop().time()


_ANY_TIME = Permit()


class RateLimiter:
    """Turns by key. Whoever's turn is further away than the horizon is told when to come back."""

    def __init__(self, store: Store, limits: Mapping[str, RateLimit]) -> None:
        self._store = store
        self._limits = limits
        self._waiting: dict[str, deque[asyncio.Future[Permit]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def turn(self, key: str) -> Permit:
        """Wait for a turn. Raises ProviderBusy with the time to wait if it is far away."""
        limit = self._limits.get(key)
        if limit is None:
            return _ANY_TIME
        turn = _ANY_TIME
        for _ in range(PERMITS_MISSED_MAX):
            turn = await self._queue(key, limit)
            if not turn.missed:
                break
        return turn

    def _queue(self, key: str, limit: RateLimit) -> asyncio.Future[Permit]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Permit] = loop.create_future()
        queue = self._waiting.get(key)
        if queue is None:
            queue = self._waiting[key] = deque()
            task = loop.create_task(self._reserve(key, limit, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.append(future)
        return future

    async def _reserve(self, key: str, limit: RateLimit, queue: deque[asyncio.Future[Permit]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            while queue:
                count = len(queue)
                waits = await self._store.reserve(key, count, limit.interval, limit.burst, HORIZON_SECONDS)
                now = loop.time()
                for wait in waits:
                    loop.call_at(now + wait, _grant, queue.popleft(), Permit(now + wait + limit.late))
                for place in range(count - len(waits)):
                    _refuse(queue.popleft(), ProviderBusy(HORIZON_SECONDS / 2 + place * limit.interval, "rate limit"))
        except Exception as error:  # noqa: BLE001 - those who wait for a turn get it
            while queue:
                _refuse(queue.popleft(), error)
        finally:
            del self._waiting[key]


def _grant(future: asyncio.Future[Permit], turn: Permit) -> None:
    if not future.done():
        future.set_result(turn)


def _refuse(future: asyncio.Future[Permit], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
