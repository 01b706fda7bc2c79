"""The period that a page shows: named or with its first and last day, in the viewer's time zone."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeVar

from genlock.domain.figures import JobFigures, TopupFigures, hour_number, hour_start

#: the periods that have a name, and how many days they take, today included
NAMED = {"today": 1, "7d": 7, "30d": 30}
DAYS_MAX = 400
#: up to this many days a chart shows hours, or days; a longer period is shown by weeks
HOURLY_DAYS_MAX = 2
DAILY_DAYS_MAX = 92
HOURS_PER_DAY = 24
DAYS_PER_WEEK = 7
#: no installation has older figures
EARLIEST = date(2000, 1, 1)

Sum = TypeVar("Sum", int, JobFigures, TopupFigures)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a period that was asked for is not shown: the key of a text, and what the operator wrote."""

    text: str
    given: str = ""


@dataclass(frozen=True, kw_only=True)
class Period:
    """Whole hours from `since` until `until`, as numbers of hours since 1970; the last day is included."""

    name: str
    first_day: date
    last_day: date
    since: int
    until: int
    zone: tzinfo
    problem: Problem | None = None

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1

    @property
    def day_begins(self) -> str:
        """When the first day begins here, such as 23:30; "" for midnight.

        Figures are kept by the hour of UTC, so in a zone with a half-hour offset a day takes some minutes of the day
        before, and leaves as many to the day after.
        """
        begin = hour_start(self.since).astimezone(self.zone).time()
        return "" if begin == time() else f"{begin:%H:%M}"

    @property
    def previous(self) -> tuple[int, int]:
        """The hours of the same length before, up to the same time of the day."""
        shift = self.days * HOURS_PER_DAY
        return self.since - shift, self.until - shift

    @property
    def step_hours(self) -> int:
        """How many hours the store puts together: one, unless a bar of the chart is a week."""
        return 1 if self.days <= DAILY_DAYS_MAX else DAYS_PER_WEEK * HOURS_PER_DAY

    @property
    def unit(self) -> str:
        """What one bar of a chart stands for: `hour`, `day` or `week`."""
        if self.days <= HOURLY_DAYS_MAX:
            return "hour"
        return "day" if self.days <= DAILY_DAYS_MAX else "week"

    def bars(self) -> list[int]:
        """Return the first hour of every bar of a chart."""
        if self.unit == "day":
            return [_hour_of(self.first_day + timedelta(days=day), self.zone) for day in range(self.days)]
        return list(range(self.since, self.until, self.step_hours))

    def sum_by_bar(self, figures: Mapping[int, Sum], nothing: Sum) -> list[Sum]:
        """Put the figures of hours together, by bar."""
        bars = self.bars()
        sums = [nothing] * len(bars)
        for hour, one in figures.items():
            place = bisect_right(bars, hour) - 1
            if place >= 0:
                sums[place] = sums[place] + one
        return sums


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
    end = min(_hour_of(last_day + timedelta(days=1), zone), hour_number(now) + 1)
    return Period(
        name=name, first_day=first_day, last_day=last_day, since=_hour_of(first_day, zone), until=end, zone=zone,
        problem=problem,
    )  # fmt: skip


def _hour_of(day: date, zone: tzinfo) -> int:
    """Return the hour in which a day begins; in a zone with half hours, the hour that contains midnight."""
    return hour_number(datetime.combine(day, time(), zone).astimezone(UTC))


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
