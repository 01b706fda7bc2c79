"""The sweep: callbacks nobody dealt with, orphans whose job turned up, orphans whose time is over."""

from collections.abc import Callable
from dataclasses import dataclass

from genlock.domain.events import Event
from genlock.domain.inbox import Callback
from genlock.engine.kit import Kit
from genlock.engine.leader import Leader

PAGE = 200
CALLBACK_HOLD_SECONDS = 10.0


@dataclass(frozen=True)
class Sweep:
    """One round finds a page of each; what is left over is found in the next."""

    kit: Kit
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
            hold = CALLBACK_HOLD_SECONDS * (0.5 + 0.5 * self.kit.chance.random())
            for callback in await self.kit.store.claim_callbacks(limit, hold):
                self.take_callback(callback)

    async def limits(self) -> None:
        """Chats that nobody writes to any more leave no row behind."""
        if role := self.leader.role:
            await self.kit.store.forget_limits(self.kit.rules.limits_idle_seconds, role)

    async def orphans(self) -> None:
        kit = self.kit
        for callback_id, job_id in await kit.store.match_orphans(PAGE):
            kit.observer.event(Event.ORPHAN_MATCHED, callback=callback_id, job=job_id)
        role = self.leader.role
        if role is None:
            return
        for callback_id in await kit.store.expire_orphans(kit.rules.orphan_expire_seconds, role):
            kit.observer.event(Event.ORPHAN_EXPIRED, callback=callback_id)
