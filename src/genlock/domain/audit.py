"""The audit log of operators' actions."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditLine:
    """Something an operator did."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
