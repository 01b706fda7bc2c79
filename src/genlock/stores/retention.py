"""Deleting what is old."""

from genlock.ports import Role
from genlock.stores.session import Subject


class Retention(Subject):
    async def prune_limits(self, idle_seconds: float, role: Role) -> int:
        rows = await self.session.one("prune_limits", idle_seconds=idle_seconds, holder=role.holder, epoch=role.epoch)
        return len(rows)

    async def prune(self, what: str, older_than: float, limit: int, role: Role) -> int:
        rows = await self.session.one(
            f"prune_{what}", older_than=older_than, limit=limit, holder=role.holder, epoch=role.epoch
        )
        return len(rows)
