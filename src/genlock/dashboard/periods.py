"""The period that a page shows: named or with its first and last day, in the viewer's time zone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from genlock.domain.figures import hour_number, hour_start

#: the periods that have a name, and how many days they take, today included
NAMED = {"today": 1, "7d": 7, "30d": 30}
DAYS_MAX = 400
#: up to this many days a chart shows hours, or days; a longer period is shown by weeks
HOURLY_DAYS_MAX = 2
DAILY_DAYS_MAX = 92
DAYS_PER_WEEK = 7
#: no installation has older figures
EARLIEST = date(2000, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a period that was asked for is not shown: the key of a text, and what the operator wrote."""

    text: str
    given: str = ""


@dataclass(frozen=True, kw_only=True)
class Period:
    """From the first midnight until the last one, or until the end of this hour; the last day is included.

    In a zone with half hours, a day begins within an hour of UTC.
    """

    name: str
    first_day: date
    last_day: date
    begin: datetime
    end: datetime
    zone: tzinfo
    problem: Problem | None = None

    @property
    def since(self) -> int:
        """The hour of UTC that contains the beginning, as a number of hours since 1970."""
        return hour_number(self.begin)

    @property
    def until(self) -> int:
        """The hour of UTC that contains the end."""
        return hour_number(self.end)

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1

    @property
    def previous(self) -> tuple[datetime, datetime]:
        """The time of the same length before, up to the same time of the day."""
        shift = timedelta(days=self.days)
        return self.begin - shift, self.end - shift

    @property
    def unit(self) -> str:
        """What one bar of a chart stands for: `hour`, `day` or `week`."""
        if self.days <= HOURLY_DAYS_MAX:
            return "hour"
        return "day" if self.days <= DAILY_DAYS_MAX else "week"

    def starts(self) -> list[datetime]:
        """Return the beginning of every bar of a chart."""
        if self.unit == "day":
            return [midnight(self.first_day + timedelta(days=day), self.zone) for day in range(self.days)]
        if self.unit == "week":
            weeks = -((self.begin - self.end) // timedelta(days=DAYS_PER_WEEK))
            return [self.begin + timedelta(days=DAYS_PER_WEEK * week) for week in range(weeks)]
        last = self.until + 1 if is_within_hour(self.end) else self.until
        return [self.begin, *(hour_start(hour) for hour in range(self.since + 1, last))]


def read_period(query: Mapping[str, str], zone: tzinfo, now: datetime) -> Period:
    """Return the period that the address of a page names; today, with a problem, if it cannot be shown."""
    today = now.astimezone(zone).date()
    name, first, last = query.get("period", ""), query.get("from", ""), query.get("to", "")
    if name in NAMED:
        return _period(name, today - timedelta(days=NAMED[name] - 1), today, zone, now)
    if name not in ("", "range"):
        return _today(zone, now, Problem(text="unknown_period", given=name))
    if not first and not last:
        return _today(zone, now, None)
    try:
        first_day = date.fromisoformat(first)
        last_day = date.fromisoformat(last) if last else today
    except ValueError:
        wrong = next(text for text in (first, last) if not _is_day(text))
        return _today(zone, now, Problem(text="not_a_day", given=wrong))
    return _range(first_day, min(last_day, today), zone, now)


def _range(first_day: date, last_day: date, zone: tzinfo, now: datetime) -> Period:
    if last_day < first_day or first_day < EARLIEST:
        return _today(zone, now, Problem(text="no_such_period"))
    if (last_day - first_day).days >= DAYS_MAX:
        return _today(zone, now, Problem(text="too_long", given=str(DAYS_MAX)))
    return _period("range", first_day, last_day, zone, now)


def _today(zone: tzinfo, now: datetime, problem: Problem | None) -> Period:
    today = now.astimezone(zone).date()
    return _period("today", today, today, zone, now, problem)


def _period(
    name: str, first_day: date, last_day: date, zone: tzinfo, now: datetime, problem: Problem | None = None
) -> Period:
    end = min(midnight(last_day + timedelta(days=1), zone), hour_start(hour_number(now) + 1))
    return Period(
        name=name, first_day=first_day, last_day=last_day, begin=midnight(first_day, zone), end=end, zone=zone,
        problem=problem,
    )  # fmt: skip


def is_within_hour(at: datetime) -> bool:
    """Whether no hour of UTC begins at this time."""
    return at != hour_start(hour_number(at))


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return when a day begins in a zone; where the clocks skip midnight, when they do."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
