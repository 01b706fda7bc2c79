"""The audit log of operators' actions."""

from dataclasses import dataclass
from datetime import datetime

from genlock.domain.value import value


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


@value
class AuditFilter:
    """Which lines are meant. Every filter that is set must match."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    #: at this time or later
    since: datetime | None = None
    #: before this time
    until: datetime | None = None

    def matches(self, line: AuditLine) -> bool:
        return (
            self.actor in ("", line.actor)
            and self.action in ("", line.action)
            and self.subject in ("", line.subject)
            and (self.since is None or line.at >= self.since)
            and (self.until is None or line.at < self.until)
        )


@value
class AuditPage:
    lines: tuple[AuditLine, ...]
    #: the cursor of the next page; None if nothing older can match
    before: int | None
    #: whether the page is not full because its search has looked at enough lines
    stopped: bool = False
