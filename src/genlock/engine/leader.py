"""The active role: a lease with an epoch. It only decides who does what one is enough for.

            take_role (free, or its time is over)
  passive ────────────────────────────────────────▶ active
     ▲                                                │  renews every heartbeat
     └────────────────────────────────────────────────┘
       somebody else has it, or we could not renew within the trust window, or we stopped

Two may believe to be active for a moment: the old one was paused. Whatever the role is used for names its epoch in
the write, so the old one changes nothing.
"""

import asyncio
from collections.abc import Iterable

from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.ports import Role

ACTIVE = "active"


class Leader:
    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self._role: Role | None = None
        self._trusted_until = 0.0

    @property
    def role(self) -> Role | None:
        """Our role, as long as we may trust it."""
        if self._role and asyncio.get_running_loop().time() < self._trusted_until:
            return self._role
        return None

    async def round(self) -> None:
        """Take or renew the role."""
        ctx = self._ctx
        started = asyncio.get_running_loop().time()
        role = await ctx.store.take_role(ACTIVE, ctx.instance, ctx.rules.role_seconds)
        mine = role.holder == ctx.instance
        if mine:
            self._trusted_until = started + ctx.rules.role_seconds
        self._change(role if mine else None)

    async def take_over(self, dead: Iterable[str]) -> None:
        """Free the role of those who are dead for certain."""
        for peer in dead:
            await self._ctx.store.leave_role(ACTIVE, peer)

    async def stop(self) -> None:
        """Pass the role on at once."""
        if self._role:
            await self._ctx.store.leave_role(ACTIVE, self._ctx.instance)
        self._change(None)

    def _change(self, role: Role | None) -> None:
        before, self._role = self._role, role
        if role and (before is None or before.epoch != role.epoch):
            self._ctx.observer.event(Event.LOCK_ACTIVE, instance=self._ctx.instance, epoch=role.epoch)
        elif before and role is None:
            self._ctx.observer.event(Event.LOCK_PASSIVE, instance=self._ctx.instance, epoch=before.epoch)
