"""The period of a page: from its address, in the viewer's time zone."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from genlock.dashboard.periods import EARLIEST, midnight, read_period
from genlock.domain.figures import hour_number

MOSCOW = ZoneInfo("Europe/Moscow")
NOW = datetime(2026, 11, 16, 4, 30, tzinfo=UTC)


def hour(*parts: int) -> int:
    return hour_number(datetime(*parts, tzinfo=UTC))  # type: ignore[misc,arg-type]


def test_today_begins_at_midnight_of_the_viewer_and_ends_with_this_hour() -> None:
    period = read_period({}, MOSCOW, NOW)

    assert (period.since, period.until) == (hour(2026, 11, 15, 21), hour(2026, 11, 16, 5))
    assert period.previous == (datetime(2026, 11, 14, 21, tzinfo=UTC), datetime(2026, 11, 15, 5, tzinfo=UTC))
    assert (period.unit, len(period.starts())) == ("hour", 8)


def test_seven_days_include_today() -> None:
    period = read_period({"period": "7d"}, UTC, NOW)

    assert (period.since, period.until, period.days) == (hour(2026, 11, 10), hour(2026, 11, 16, 5), 7)
    assert (period.unit, len(period.starts())) == ("day", 7)


def test_any_range_ends_with_its_last_day() -> None:
    period = read_period({"from": "2026-10-01", "to": "2026-10-31"}, UTC, NOW)

    assert (period.name, period.since, period.until) == ("range", hour(2026, 10, 1), hour(2026, 11, 1))


def test_days_are_those_of_the_zone_also_when_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")  # 25 hours on 25 October 2026
    period = read_period({"from": "2026-10-23", "to": "2026-10-27"}, berlin, NOW)

    hours = [(after - before) // timedelta(hours=1) for before, after in pairwise((*period.starts(), period.end))]
    assert hours == [24, 24, 25, 24, 24]


def test_a_day_of_a_zone_with_half_hours_begins_at_its_midnight() -> None:
    for zone, minute in (("Asia/Kolkata", 30), ("Asia/Kathmandu", 15), ("Australia/Adelaide", 30)):
        period = read_period({}, ZoneInfo(zone), NOW)
        local = [start.astimezone(period.zone) for start in period.starts()]
        assert (local[0].hour, local[0].minute, period.begin.minute) == (0, 0, minute), zone
        assert period.end == datetime(2026, 11, 16, 5, tzinfo=UTC)
        assert {start.minute for start in period.starts()[1:]} == {0}, "the other bars are hours of UTC"
        day = read_period({"from": "2026-11-14", "to": "2026-11-14"}, ZoneInfo(zone), NOW)
        assert (day.end - day.begin, len(day.starts())) == (timedelta(days=1), 25), zone


def test_a_long_period_is_divided_into_weeks() -> None:
    period = read_period({"from": "2026-01-01", "to": "2026-11-15"}, UTC, NOW)

    assert period.unit == "week"
    assert len(period.starts()) == 46


@pytest.mark.parametrize(
    ("query", "problem", "given"),
    [
        ({"period": "century"}, "unknown_period", "century"),
        ({"from": "2026-13-01", "to": "2026-11-01"}, "not_a_day", "2026-13-01"),
        ({"from": "2026-11-01", "to": "<b>"}, "not_a_day", "<b>"),
        ({"to": "2026-11-01"}, "not_a_day", ""),
        ({"from": "2026-11-10", "to": "2026-11-01"}, "no_such_period", ""),
        ({"from": "2027-01-01", "to": "2027-01-02"}, "no_such_period", ""),
        ({"from": "0001-01-01", "to": "0001-01-02"}, "no_such_period", ""),
        ({"from": "2020-01-01", "to": "2026-11-01"}, "too_long", "400"),
    ],
)
def test_a_period_that_cannot_be_shown_is_named(query: dict[str, str], problem: str, given: str) -> None:
    period = read_period(query, MOSCOW, NOW)

    assert period.name == "today"
    assert period.problem
    assert (period.problem.text, period.problem.given) == (problem, given)


@pytest.mark.parametrize("day", [EARLIEST + timedelta(days=days) for days in (0, 3000, 6000, 9000, 12_000, 18_000)])
def test_days_begin_at_quarters_of_an_hour_in_every_zone(day: date) -> None:
    """The figures of quarters of an hour are exact for that reason."""
    odd = [
        name
        for name in available_timezones() - {"localtime"}
        for season in (0, 183)
        if midnight(day + timedelta(days=season), ZoneInfo(name)).timestamp() % 900
    ]
    assert odd == []
