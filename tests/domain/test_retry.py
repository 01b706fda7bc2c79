"""Pauses stay within bounds, whatever the dice say."""

from hypothesis import given
from hypothesis import strategies as st

from genlock.domain.retry import BACKOFF_MAX, backoff, poll_delay

JITTER = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 10_000), JITTER)
def test_a_back_off_stays_between_its_base_and_its_cap(attempt: int, jitter: float) -> None:
    assert 0.75 <= backoff(attempt, jitter) <= BACKOFF_MAX * 1.25


@given(st.integers(0, 100), st.floats(0.01, 10), st.floats(10, 1000), JITTER)
def test_base_and_cap_can_be_chosen(attempt: int, base: float, most: float, jitter: float) -> None:
    assert min(base, most) * 0.75 <= backoff(attempt, jitter, base=base, most=most) <= most * 1.25


def test_a_back_off_doubles_until_its_cap() -> None:
    middle = [backoff(attempt, 0.5) for attempt in range(12)]
    assert middle == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


@given(st.integers(0, 12))
def test_jitter_spreads_by_a_quarter_to_both_sides(attempt: int) -> None:
    middle = backoff(attempt, 0.5)
    assert backoff(attempt, 0.0) == middle * 0.75
    assert backoff(attempt, 1.0) == middle * 1.25


@given(st.floats(0, 100_000), JITTER)
def test_a_poll_is_at_most_every_two_seconds_and_at_least_three_times_a_minute(age: float, jitter: float) -> None:
    assert 1.8 <= poll_delay(age, jitter) <= 19


def test_polls_become_rarer_as_a_task_grows_old() -> None:
    assert [poll_delay(age, 0.5) for age in (0, 29.9, 30, 119.9, 120, 10_000)] == [2.5, 2.5, 5, 5, 15, 15]


def test_the_first_pause_scales_the_others() -> None:
    assert [poll_delay(age, 0.5, first=10) for age in (0, 30, 120)] == [10, 20, 60]
