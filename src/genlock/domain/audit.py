"""The audit log of operators' actions."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditLine:
    """One action of an operator."""

    id: int
    bot: str
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
