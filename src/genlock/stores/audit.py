"""The audit log of what operators did."""

from collections.abc import Sequence
from datetime import datetime

from genlock.domain.audit import AuditFilter, AuditLine, AuditPage
from genlock.domain.place import microseconds
from genlock.stores.rows import read_audit_line
from genlock.stores.scan import newest_between
from genlock.stores.session import Subject

#: ids that one statement of a search reads, and statements of one search
STEP = 5_000
STEPS_MAX = 4
#: lines about one subject that one search reads
SUBJECT_LINES = 500
#: ids follow the order of time, but for transactions that ran at the same time
TIME_SLACK_US = 60_000_000
#: the year 2255
_FAR_FUTURE = 9_000_000_000_000_000


class Audit(Subject):
    async def add_audit(self, *, key: str, actor: str, action: str, subject: str, detail: str, bot: str = "") -> None:
        await self.session.one(
            "add_audit", bot=bot, key=key, actor=actor, action=action, subject=subject, detail=detail
        )

    async def audit(self, limit: int, bot: str | None = None) -> Sequence[AuditLine]:
        if bot is None:
            rows = await self.session.one("newest_audit", limit=limit)
        else:
            rows = await newest_between(self.session, "audit_between", "audit_id_range", limit=limit, bot=bot)
        return [read_audit_line(row, self.session.time) for row in rows]

    async def search_audit(self, filters: AuditFilter, *, before: int | None = None, limit: int = 50) -> AuditPage:
        [ids] = await self.session.one("audit_id_range")
        low, high = ids["first"] or 0, (ids["last"] or -1) + 1
        if filters.since is not None:
            low = max(low, await self._first_audit_since(_microseconds(filters.since) - TIME_SLACK_US))
        if filters.until is not None:
            high = min(high, await self._first_audit_since(_microseconds(filters.until) + TIME_SLACK_US))
        upper = high if before is None else min(before, high)
        search = self._search_subject if filters.subject else self._search_steps
        return await search(filters, low, upper, limit)

    async def _search_steps(self, filters: AuditFilter, low: int, upper: int, limit: int) -> AuditPage:
        found: list[AuditLine] = []
        for _ in range(STEPS_MAX):
            floor = max(upper - STEP, low)
            rows = await self.session.one(
                "search_audit",
                floor=floor,
                before=upper,
                limit=limit - len(found),
                actor=filters.actor,
                action=filters.action,
                since_us=0 if filters.since is None else _microseconds(filters.since),
                until_us=_FAR_FUTURE if filters.until is None else _microseconds(filters.until),
            )
            found += [read_audit_line(row, self.session.time) for row in rows]
            if len(found) == limit:
                return AuditPage(lines=tuple(found), before=found[-1].id)
            upper = floor
            if upper <= low:
                return AuditPage(lines=tuple(found), before=None)
        return AuditPage(lines=tuple(found), before=upper, stopped=True)

    async def _search_subject(self, filters: AuditFilter, low: int, upper: int, limit: int) -> AuditPage:
        rows = await self.session.one(
            "audit_of_subject", subject=filters.subject, floor=low, before=upper, limit=SUBJECT_LINES
        )
        lines = [read_audit_line(row, self.session.time) for row in rows]
        found = tuple(line for line in lines if filters.matches(line))[:limit]
        if len(found) == limit:
            return AuditPage(lines=found, before=found[-1].id)
        is_all = len(rows) < SUBJECT_LINES
        return AuditPage(lines=found, before=None if is_all else lines[-1].id, stopped=not is_all)

    async def _first_audit_since(self, at_us: int) -> int:
        [row] = await self.session.one("first_audit_since", at_us=at_us)
        return int(row["id"])


def _microseconds(at: datetime) -> int:
    return min(max(microseconds(at), 0), _FAR_FUTURE)
