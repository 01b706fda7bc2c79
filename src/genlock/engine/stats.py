"""How things go, as the store counts it: asked at most once in a while, however many want to know."""

import asyncio
from collections.abc import Mapping

from genlock.engine.context import EngineContext
from genlock.ports import StatsStore

FRESH_SECONDS = 2.0
PATIENCE_SECONDS = 3.0


class Stats:
    def __init__(self, ctx: EngineContext, store: StatsStore) -> None:
        self._ctx = ctx
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._read_at = float("-inf")
        #: the last there was
        self.last: Mapping[str, float] = {}

    async def read(self) -> Mapping[str, float] | None:
        """The counts, a few seconds old at the most; None if the store does not answer."""
        loop = self._ctx.loop
        if loop.time() - self._read_at < FRESH_SECONDS:
            return self.last
        if self._task is None:
            self._task = loop.create_task(self._ask())
            self._task.add_done_callback(self._asked)
        done, _ = await asyncio.wait([self._task], timeout=PATIENCE_SECONDS)
        return self.last if done and loop.time() - self._read_at < FRESH_SECONDS else None

    async def _ask(self) -> None:
        self.last = await self._store.stats()
        self._read_at = self._ctx.loop.time()

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # whoever waits sees that there is nothing new
