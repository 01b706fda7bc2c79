"""The audit log of what operators did."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.audit import AuditFilter, AuditLine, AuditPage


class AuditStore(Protocol):
    async def add_audit(self, *, key: str, actor: str, action: str, subject: str, detail: str, bot: str = "") -> None:
        """Add a line. The same bot and key again add nothing."""

    async def audit(self, limit: int, bot: str | None = None) -> Sequence[AuditLine]:
        """Return the newest lines: all, or those of one bot."""

    async def search_audit(self, filters: AuditFilter, *, before: int | None = None, limit: int = 50) -> AuditPage:
        """Return matching lines below an id, newest first.

        One call looks at a bounded number of lines, so that the page may have fewer than `limit` and not be the last.
        """
