"""Deleting what is old."""

from genlock.ports import Role
from genlock.stores.session import Session, Subject

#: limits that one call looks at
LIMITS_AT_ONCE = 2000


class Retention(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._limits_after = ""

    async def prune_limits(self, idle_seconds: float, role: Role) -> int:
        [step] = await self.session.one("step_limits", after=self._limits_after, size=LIMITS_AT_ONCE)
        after, until = self._limits_after, step["until"]
        self._limits_after = until or ""
        if until is None:
            return 0
        rows = await self.session.one(
            "prune_limits", after=after, until=until, idle_seconds=idle_seconds, holder=role.holder, epoch=role.epoch
        )
        return len(rows)

    async def prune(self, what: str, older_than: float, limit: int, role: Role) -> int:
        rows = await self.session.one(
            f"prune_{what}", older_than=older_than, limit=limit, holder=role.holder, epoch=role.epoch
        )
        return len(rows)
