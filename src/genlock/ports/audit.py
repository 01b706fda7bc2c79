"""The audit log of what operators did."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.audit import AuditLine


class AuditStore(Protocol):
    async def add_audit(self, *, key: str, actor: str, action: str, subject: str, detail: str, bot: str = "") -> None:
        """Add a line. The same bot and key again add nothing."""

    async def audit(self, limit: int, bot: str | None = None) -> Sequence[AuditLine]:
        """Return the newest lines: all, or those of one bot."""
