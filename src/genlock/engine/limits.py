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
#: the longest time that a refused request waits before it asks again
RETRY_SECONDS_MAX = 30.0
#: if no waiting request has asked for this long, none is left: they were cancelled, or another instance has them
QUIET_SECONDS = 1.0
#: how far apart orders ask again whether a provider has a free task slot
SLOT_SPACING_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to make one call now."""

    #: the loop's time after which the call would come too close to the next one
    until: float = inf

    @property
    def missed(self) -> bool:
        return self.until != inf and self.until < asyncio.get_running_loop().time()


_UNLIMITED = Permit()


class RetryTimes:
    """When refused requests of one kind ask again: one after the other, however many wait, instead of all at once.

    If more wait than fit into `RETRY_SECONDS_MAX`, several share a time.
    """

    def __init__(self, *, first: float, spacing: float) -> None:
        self._first = first
        self._spacing = spacing
        self._last = 0.0
        #: when the last of them asks again
        self._until = 0.0
        self._asked_at = -inf

    def asked(self, now: float) -> None:
        """Record that a request asks, which may be one of those that waited."""
        self._asked_at = now

    def is_queued(self, now: float) -> bool:
        """Whether requests wait, so that a new one should not ask before them."""
        return now < self._until and now - self._asked_at < max(QUIET_SECONDS, 3 * self._spacing)

    def next_wait(self, now: float) -> float:
        """Reserve the next time and return the seconds until then."""
        at = max(self._last + self._spacing, now + self._first)
        if at > now + RETRY_SECONDS_MAX:
            at = now + self._first
        self._last = at
        self._until = max(self._until, at)
        return at - now


class RateLimiter:
    """Hands out permits by key, in the order of the requests."""

    def __init__(self, store: Store, limits: Mapping[str, RateLimit]) -> None:
        self._store = store
        self._limits = limits
        self._waiting: dict[str, deque[asyncio.Future[Permit]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._retries = {
            key: RetryTimes(first=HORIZON_SECONDS / 2, spacing=limit.interval) for key, limit in limits.items()
        }
        #: by provider, for orders that wait for a free task slot
        self._slot_retries: dict[str, RetryTimes] = {}

    def slot_wait(self, provider: str) -> float:
        """Return the seconds after which an order that found no free task slot may ask again."""
        retries = self._slot_retries.setdefault(provider, RetryTimes(first=0.0, spacing=SLOT_SPACING_SECONDS))
        return retries.next_wait(asyncio.get_running_loop().time())

    async def acquire(self, key: str, *, is_new: bool = False) -> Permit:
        """Wait for a permit. Raises ProviderBusy, with the seconds to wait, if none is free within the horizon.

        A request that `is_new` waits behind those that were refused before, without asking the store.
        """
        limit = self._limits.get(key)
        if limit is None:
            return _UNLIMITED
        retries, now = self._retries[key], asyncio.get_running_loop().time()
        if is_new and retries.is_queued(now):
            raise ProviderBusy(retries.next_wait(now), "rate limit")
        retries.asked(now)
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
                for _ in range(count - len(waits)):
                    _refuse(queue.popleft(), ProviderBusy(self._retries[key].next_wait(now), "rate limit"))
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
