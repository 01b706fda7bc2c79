"""The sweeper: finds callbacks that no instance processed in time, and matches or expires orphan callbacks."""

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
    """Each sweep handles one page of callbacks and orphans; the next sweep finds the rest."""

    ctx: EngineContext
    leader: Leader
    start_callback: Callable[[Callback], None]
    #: how many callbacks the worker may process now
    free_capacity: Callable[[], int]

    async def sweep(self) -> None:
        await self.claim_callbacks()
        await self.match_orphans()

    async def claim_callbacks(self) -> None:
        # Claim only what fits our free capacity: a claimed callback is hidden from other instances until its hold
        # expires.
        limit = min(PAGE, self.free_capacity())
        if limit:
            # A random hold: with a fixed one this instance could claim a callback of a provider it lacks every time.
            hold = CALLBACK_HOLD_SECONDS * (0.5 + 0.5 * self.ctx.rng.random())
            for callback in await self.ctx.store.claim_callbacks(limit, hold):
                self.start_callback(callback)

    async def match_orphans(self) -> None:
        for callback_id, job_id in await self.ctx.store.match_orphans(PAGE):
            self.ctx.observer.event(Event.ORPHAN_MATCHED, callback=callback_id, job=job_id)

    async def expire_orphans(self) -> None:
        """Mark orphans whose job was never found as expired: the operator decides about them."""
        if role := self.leader.role:
            for callback_id in await self.ctx.store.expire_orphans(self.ctx.rules.orphan_expire_seconds, role):
                self.ctx.observer.event(Event.ORPHAN_EXPIRED, callback=callback_id)

    async def prune_limits(self) -> None:
        """Delete rate limits that were not used for a while, such as those of silent chats."""
        if role := self.leader.role:
            await self.ctx.store.prune_limits(self.ctx.rules.limits_idle_seconds, role)
