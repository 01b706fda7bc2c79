"""The audit log of operators' actions."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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


def read_changes(detail: str) -> list[tuple[str, Any, Any]] | None:
    """Return name, value before and value after of what a detail says was changed; None if it is another text.

    The name is empty if the value has no fields.
    """
    try:
        read = json.loads(detail)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or not read or not read.keys() <= {"before", "after"}:
        return None
    before, after = read.get("before"), read.get("after")
    if not isinstance(before, dict | None) or not isinstance(after, dict | None):
        return [("", before, after)]
    old, new = before or {}, after or {}
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    return [(name, old.get(name), new.get(name)) for name in names]


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
