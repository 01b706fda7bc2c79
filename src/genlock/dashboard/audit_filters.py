"""The filters of the audit log as an address has them. A part that means nothing is named, never dropped."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo

from genlock.domain.audit import AuditFilter

TEXTS = ("actor", "action", "subject")
DAYS = ("since", "until")
#: parameters of the page that are no filters
_OTHERS = ("before",)
_LENGTH_MAX = 200
_NAMED_MAX = 60
_YEARS = range(2000, 2200)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A part of the address that has no effect: the key of the text that says why, and the values of that text."""

    key: str
    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class AuditQuery:
    filters: AuditFilter
    #: the filters as they were written, by name
    given: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def read_audit_query(pairs: Iterable[tuple[str, str]], zone: tzinfo) -> AuditQuery:
    """Return what the parameters of an address mean. Days are those of the viewer's zone; both ends are included."""
    given: dict[str, str] = {}
    problems: list[Problem] = []
    for name, text in pairs:
        written = text.replace("\0", "").strip()
        if not written or name in _OTHERS:
            continue
        if name not in (*TEXTS, *DAYS):
            problems.append(Problem(key="unknown_filter", name=name[:_NAMED_MAX], value=written[:_NAMED_MAX]))
        elif len(written) > _LENGTH_MAX or not written.isprintable():
            problems.append(Problem(key="wrong_value", name=name, value=written[:_NAMED_MAX]))
        else:
            given[name] = written
    days = {name: _read_day(given.get(name, ""), zone) for name in DAYS}
    problems += [
        Problem(key="wrong_value", name=name, value=given[name]) for name in DAYS if name in given and not days[name]
    ]
    since, until = days["since"], days["until"]
    if since is not None and until is not None and since > until:
        problems.append(Problem(key="empty_range", name="until", value=given["until"]))
    filters = AuditFilter(
        **{name: given.get(name, "") for name in TEXTS}, since=_utc(since), until=_utc(_next_day(until))
    )
    return AuditQuery(filters=filters, given=given, problems=tuple(problems))


def _read_day(text: str, zone: tzinfo) -> datetime | None:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
    except ValueError:
        return None
    return day if day.year in _YEARS else None


def _next_day(day: datetime | None) -> datetime | None:
    """Return the beginning of the next day, which may be 23 or 25 hours away."""
    return None if day is None else datetime.combine(day.date() + timedelta(days=1), time(), day.tzinfo)


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)
