"""Leader election: a lease with an epoch decides which instance does the work that one instance is enough for.

            take_role (free, or its lease expired)
  passive ────────────────────────────────────────▶ active
     ▲                                                │  renews with every heartbeat
     └────────────────────────────────────────────────┘
       another instance has the role, or the lease was not renewed in time, or this instance stopped

For a moment, when the old leader was paused, two instances may both believe that they are the leader. Every write that
needs the role names its epoch, so the old leader's writes change nothing.
"""

import asyncio
from collections.abc import Iterable

from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.ports import Role

ROLE = "active"
#: the share of a heartbeat after which the role is renewed: at every second call of `elect_when_due`
RENEW_SHARE = 0.75


class Leader:
    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self._role: Role | None = None
        #: an election without an answer may have been won
        self._asked = False
        self._trusted_until = 0.0
        self._renew_at = 0.0

    @property
    def role(self) -> Role | None:
        """The role of this instance while its lease lasts; None when it is not the leader."""
        if self._role and asyncio.get_running_loop().time() < self._trusted_until:
            return self._role
        return None

    async def elect_when_due(self) -> None:
        """Take the role if it is free, or renew it when a heartbeat has passed. A periodic task."""
        if self.role is None or asyncio.get_running_loop().time() >= self._renew_at:
            await self.elect()

    async def elect(self) -> None:
        """Take the role if it is free, or renew it."""
        ctx = self._ctx
        started = asyncio.get_running_loop().time()
        self._asked = True
        role = await ctx.store.take_role(ROLE, ctx.instance, ctx.rules.role_seconds)
        self._asked = False
        mine = role.holder == ctx.instance
        if mine:
            self._trusted_until = started + ctx.rules.role_seconds
            self._renew_at = started + ctx.rules.heartbeat_seconds * RENEW_SHARE
        self._change(role if mine else None)

    async def take_over(self, dead: Iterable[str]) -> None:
        """Free the role if one of these dead instances had it."""
        for instance in dead:
            await self._ctx.store.release_role(ROLE, instance)

    async def resign(self) -> None:
        """Free the role, so that another instance takes it at once."""
        if self._role or self._asked:
            await self._ctx.store.release_role(ROLE, self._ctx.instance)
            self._asked = False
        self._change(None)

    def _change(self, role: Role | None) -> None:
        before, self._role = self._role, role
        if role and (before is None or before.epoch != role.epoch):
            self._ctx.observer.event(Event.LOCK_ACTIVE, instance=self._ctx.instance, epoch=role.epoch)
        elif before and role is None:
            self._ctx.observer.event(Event.LOCK_PASSIVE, instance=self._ctx.instance, epoch=before.epoch)
