"""The audit log of what operators did."""

from collections.abc import Sequence

from genlock.domain.audit import AuditLine
from genlock.stores.rows import read_audit_line
from genlock.stores.scan import newest_between
from genlock.stores.session import Subject


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
