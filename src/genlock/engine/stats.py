"""Counts of open work from the store, cached for a few seconds for all readers."""

import asyncio
from collections.abc import Mapping

from genlock.engine.context import EngineContext
from genlock.ports import StatsStore

CACHE_SECONDS = 2.0
TIMEOUT_SECONDS = 3.0


class Stats:
    def __init__(self, ctx: EngineContext, store: StatsStore) -> None:
        self._ctx = ctx
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._read_at = float("-inf")
        #: the counts read last, however old
        self.last: Mapping[str, float] = {}

    async def read(self) -> Mapping[str, float] | None:
        """Return the counts, at most a few seconds old; None if the store does not answer in time."""
        loop = self._ctx.loop
        if loop.time() - self._read_at < CACHE_SECONDS:
            return self.last
        if self._task is None:
            self._task = loop.create_task(self._query())
            self._task.add_done_callback(self._queried)
        done, _ = await asyncio.wait([self._task], timeout=TIMEOUT_SECONDS)
        return self.last if done and loop.time() - self._read_at < CACHE_SECONDS else None

    async def _query(self) -> None:
        self.last = await self._store.stats()
        self._read_at = self._ctx.loop.time()

    def _queried(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it: readers see that the counts are old
