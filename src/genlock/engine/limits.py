"""Rate limits that all instances share: permits are reserved in the store and handed out here."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from genlock.domain.errors import ProviderBusy
from genlock.ports import Store
from genlock.ports.provider import RateLimit

#: How far ahead permits are reserved. A crash loses at most this much of the allowance.
HORIZON_SECONDS = 2.0
#: After missing this many permits a call uses a late one: on a slow machine every permit may be late.
PERMITS_MISSED_MAX = 3


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to make one call now."""

    #: the loop's time after which the call would come too close to the next one
    until: float = inf

    @property
    def missed(self) -> bool:
        return self.until != inf and self.until < asyncio.get_running_loop().time()


_UNLIMITED = Permit()


class RateLimiter:
    """Hands out permits by key, in the order of the requests."""

    def __init__(self, store: Store, limits: Mapping[str, RateLimit]) -> None:
        self._store = store
        self._limits = limits
        self._waiting: dict[str, deque[asyncio.Future[Permit]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def acquire(self, key: str) -> Permit:
        """Wait for a permit. Raises ProviderBusy, with the seconds to wait, if none is free within the horizon."""
        limit = self._limits.get(key)
        if limit is None:
            return _UNLIMITED
        permit = _UNLIMITED
        for _ in range(PERMITS_MISSED_MAX):
            permit = await self._enqueue(key, limit)
            if not permit.missed:
                break
        return permit

    def _enqueue(self, key: str, limit: RateLimit) -> asyncio.Future[Permit]:
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
        """Reserve permits for all waiting requests in one call, until none waits."""
        loop = asyncio.get_running_loop()
        try:
            while queue:
                count = len(queue)
                waits = await self._store.reserve_permits(key, count, limit.interval, limit.burst, HORIZON_SECONDS)
                now = loop.time()
                for wait in waits:
                    loop.call_at(now + wait, _grant, queue.popleft(), Permit(now + wait + limit.late))
                for position in range(count - len(waits)):
                    wait = HORIZON_SECONDS / 2 + position * limit.interval
                    _refuse(queue.popleft(), ProviderBusy(wait, "rate limit"))
        except Exception as error:  # noqa: BLE001 - raised in every waiting request
            while queue:
                _refuse(queue.popleft(), error)
        finally:
            del self._waiting[key]


def _grant(future: asyncio.Future[Permit], permit: Permit) -> None:
    if not future.done():
        future.set_result(permit)


def _refuse(future: asyncio.Future[Permit], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
