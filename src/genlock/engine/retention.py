"""Forgetting: the active instance removes what nobody needs any more, a little at a time."""

import asyncio
from dataclasses import dataclass

from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.ports import RetentionStore

DAY = 86_400.0
#: Telegram brings an update again for a day, a provider a callback for an hour; an operator comes back from a holiday,
#: but whoever knows the address may send us callbacks that are nobody's. A file that no order was made of is of use for
#: the three days that the provider keeps it; one that an order was made of stays as long as the order.
KEEP_SECONDS = {"updates": 7 * DAY, "unauthenticated_callbacks": DAY, "callbacks": 14 * DAY, "uploads": 14 * DAY}
PAGE = 500
PAUSE_SECONDS = 0.1
ROUND_SECONDS = 60.0


@dataclass(frozen=True)
class Retention:
    ctx: EngineContext
    leader: Leader
    store: RetentionStore

    async def round(self) -> None:
        """One round leaves nothing that is too old; every step of it is small."""
        for what, seconds in KEEP_SECONDS.items():
            while (role := self.leader.role) and (gone := await self.store.prune(what, seconds, PAGE, role)):
                self.ctx.observer.event(Event.FORGOTTEN, what=what, rows=gone)
                await asyncio.sleep(PAUSE_SECONDS)
