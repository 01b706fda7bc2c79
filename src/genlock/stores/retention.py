"""Deleting what is old."""

from genlock.ports import Role
from genlock.stores.session import Session, Subject

#: limits that one call looks at
LIMITS_AT_ONCE = 2000
#: rows that one call looks at in a table without an index by age
ROWS_AT_ONCE = 1000
#: tables without an index by age of what may be deleted, and the table by whose id, or time, they are passed over
_ROLLING = {"uploads": "uploads", "free_runs": "accounts", "drafts": "accounts", "update_queues": "update_queues"}


class Retention(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._limits_after = ""
        #: for each table without an index by age, the row where the next call continues
        self._continue_after = dict.fromkeys(_ROLLING, 0)

    async def prune_limits(self, idle_seconds: float, role: Role) -> int:
        after = self._limits_after
        [step] = await self.session.one("step_limits", after=after, size=LIMITS_AT_ONCE)
        if step["until"] is None and after:  # past the last one: begin with the first
            after = ""
            [step] = await self.session.one("step_limits", after=after, size=LIMITS_AT_ONCE)
        until = step["until"]
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

    async def prune_next(self, what: str, older_than: float, limit: int, role: Role) -> int:
        after = self._continue_after[what]
        [step] = await self.session.one(f"step_{_ROLLING[what]}", after=after, size=ROWS_AT_ONCE, older_than=older_than)
        if step["until"] is None:
            self._continue_after[what] = 0
            return 0
        rows = await self.session.one(
            f"prune_{what}", after=after, until=step["until"], older_than=older_than, limit=limit,
            holder=role.holder, epoch=role.epoch,
        )  # fmt: skip
        if len(rows) < limit:
            self._continue_after[what] = step["until"]
        return len(rows)
