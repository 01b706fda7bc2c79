"""Filters of orders in an address: what is understood has its effect, what is not is named."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from genlock.dashboard.job_filters import JobQuery, local_input, read_query
from genlock.domain.job import OPEN, Delivery, State
from genlock.domain.job_search import JobFilter
from genlock.domain.money import HoldState

NOW = datetime(2026, 5, 3, 12, tzinfo=UTC)
TOKYO = ZoneInfo("Asia/Tokyo")


def read(*pairs: tuple[str, str], see_prompts: bool = True) -> JobQuery:
    return read_query(pairs, zone=TOKYO, now=NOW, see_prompts=see_prompts)


def test_every_filter_is_understood() -> None:
    query = read(
        ("state", "failed,expired"), ("state", "open"), ("delivery", "waiting"), ("hold", "captured"),
        ("attention", "1"), ("model", "z-image"), ("provider", "kie"), ("user", " @ann "),
        ("since", "2026-05-01T09:00"), ("until", "2026-05-02T00:00:00Z"), ("error", "nsfw"), ("task", "t1"),
        ("text", "лиса"), ("before", "77"), ("empty", ""),
    )  # fmt: skip
    assert query.problems == ()
    assert query.user == "@ann"
    assert query.filters == JobFilter(
        states=(State.FAILED, State.EXPIRED, *OPEN),
        deliveries=(Delivery.PENDING, Delivery.SENDING),
        holds=(HoldState.CAPTURED,),
        attention=True,
        model="z-image",
        provider="kie",
        since=datetime(2026, 5, 1, 0, tzinfo=UTC),  # nine o'clock in the viewer's zone
        until=datetime(2026, 5, 2, tzinfo=UTC),
        error_code="nsfw",
        task_id="t1",
        text="лиса",
    )


def test_a_period_counts_back_from_now_unless_a_beginning_is_given() -> None:
    assert read(("period", "24h")).filters.since == NOW - timedelta(hours=24)
    both = read(("since", "2026-05-03T00:00:00Z"), ("period", "24h"))
    assert both.filters.since == datetime(2026, 5, 3, tzinfo=UTC)


def test_what_is_not_understood_is_named_and_kept() -> None:
    query = read(
        ("colour", "red"), ("state", "failed,blue"), ("attention", "yes"), ("period", "1y"), ("since", "yesterday"),
        ("until", "9999-99-99"), ("text", "x" * 500), ("hold", "CAPTURED"),
    )  # fmt: skip
    assert [(problem.key, problem.name) for problem in query.problems] == [
        ("unknown_filter", "colour"), ("unknown_value", "state"), ("unknown_value", "attention"),
        ("unknown_value", "period"), ("unknown_time", "since"), ("unknown_time", "until"), ("too_long", "text"),
        ("unknown_value", "hold"),
    ]  # fmt: skip
    assert query.filters == JobFilter(states=(State.FAILED,))
    assert not query.is_understood
    assert query.written["colour"] == "red"
    assert query.written["state"] == "failed,blue"


def test_a_period_that_ends_before_it_begins_is_named() -> None:
    [problem] = read(("since", "2026-05-02"), ("until", "2026-05-01")).problems
    assert problem.key == "empty_range"


def test_prompts_cannot_be_guessed_by_a_viewer_who_may_not_read_them() -> None:
    query = read(("text", "secret"), see_prompts=False)
    assert query.filters.text == ""
    assert [problem.key for problem in query.problems] == ["hidden_prompts"]


def test_hostile_parameters_are_bounded() -> None:
    query = read(*(("x" * 1000 + str(number), "y" * 10_000) for number in range(500)))
    assert len(query.problems) <= 20
    assert all(len(problem.name) <= 40 for problem in query.problems)
    for text in ("0001-01-01T00:00", "9999-12-31T23:59", "2026-05-03T12:00+99:00", "\ud800", "\0"):
        read(("since", text), ("until", text))


def test_a_time_is_written_in_the_viewer_s_zone_for_an_input() -> None:
    assert local_input(NOW, TOKYO) == "2026-05-03T21:00"
    assert local_input(None, TOKYO) == ""
