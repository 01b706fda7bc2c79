"""The sweep: callbacks nobody dealt with, orphans whose job turned up, orphans whose time is over."""

from collections.abc import Callable
from dataclasses import dataclass

from genlock.domain.events import Event
from genlock.domain.inbox import Callback
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader

PAGE = 200
CALLBACK_HOLD_SECONDS = 10.0


@dataclass(frozen=True)
class Sweeper:
    """One round finds a page of each; what is left over is found in the next."""

    ctx: EngineContext
    leader: Leader
    take_callback: Callable[[Callback], None]
    #: how many callbacks may be taken now
    room: Callable[[], int]

    async def round(self) -> None:
        await self.callbacks()
        await self.orphans()

    async def callbacks(self) -> None:
        # No more than find room here: whatever is claimed is kept from the others for a while.
        limit = min(PAGE, self.room())
        if limit:
            # Not for whole rounds of ours: those we cannot read must find others, too.
            hold = CALLBACK_HOLD_SECONDS * (0.5 + 0.5 * self.ctx.rng.random())
            for callback in await self.ctx.store.claim_callbacks(limit, hold):
                self.take_callback(callback)

    async def limits(self) -> None:
        """Chats that nobody writes to any more leave no row behind."""
        if role := self.leader.role:
            await self.ctx.store.prune_limits(self.ctx.rules.limits_idle_seconds, role)

    async def orphans(self) -> None:
        ctx = self.ctx
        for callback_id, job_id in await ctx.store.match_orphans(PAGE):
            ctx.observer.event(Event.ORPHAN_MATCHED, callback=callback_id, job=job_id)
        role = self.leader.role
        if role is None:
            return
        for callback_id in await ctx.store.expire_orphans(ctx.rules.orphan_expire_seconds, role):
            ctx.observer.event(Event.ORPHAN_EXPIRED, callback=callback_id)
