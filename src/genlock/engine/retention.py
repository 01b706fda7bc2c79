"""Retention: the leader deletes rows past their retention period, a page at a time."""

import asyncio
from dataclasses import dataclass

from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.ports import RetentionStore

DAY = 86_400.0
#: How long rows are kept. Telegram repeats updates for a day, a provider its callbacks for an hour. An operator may
#: look at callbacks two weeks later, but anyone can send any number of unauthenticated ones. The provider keeps an
#: upload for three days; an upload that an order uses is kept as long as the order.
KEEP_SECONDS = {"updates": 7 * DAY, "unauthenticated_callbacks": DAY, "callbacks": 14 * DAY, "uploads": 14 * DAY}
PAGE = 500
PAUSE_SECONDS = 0.1
PERIOD_SECONDS = 60.0


@dataclass(frozen=True)
class Retention:
    ctx: EngineContext
    leader: Leader
    store: RetentionStore

    async def prune(self) -> None:
        """Delete every row that is too old, in small steps that other statements can pass."""
        for table, seconds in KEEP_SECONDS.items():
            while (role := self.leader.role) and (rows := await self.store.prune(table, seconds, PAGE, role)):
                self.ctx.observer.event(Event.ROWS_PRUNED, what=table, rows=rows)
                await asyncio.sleep(PAUSE_SECONDS)
