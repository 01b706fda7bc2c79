"""The one table of the provider's words, and what a report is worth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genlock.domain.result import Outcome, PartKind, Piece, Report, read_state, settle_report

SUCCESS = ("success", "succeed", "succeeded", "done", "completed", "finished")
FAILURE = (
    *("fail", "failed", "error", "canceled", "cancelled", "timeout"),
    # Suno's
    *("CREATE_TASK_FAILED", "GENERATE_FAILED", "GENERATE_AUDIO_FAILED", "GENERATE_WAV_FAILED", "GENERATE_MP4_FAILED"),
    "SENSITIVE_WORD_ERROR",
)
RUNNING = (
    *("waiting", "queuing", "queueing", "queued", "pending", "wait", "processing", "running", "in_progress"),
    "generating",
    # Suno's
    *("TEXT_SUCCESS", "FIRST_SUCCESS", "CALLBACK_EXCEPTION"),
)
TABLE = [
    *((word, Outcome.SUCCESS) for word in SUCCESS),
    *((word, Outcome.FAILURE) for word in FAILURE),
    *((word, Outcome.RUNNING) for word in RUNNING),
]


@pytest.mark.parametrize(("word", "outcome"), TABLE)
def test_every_word_of_the_table_is_understood_in_any_case_and_with_spaces_around(word: str, outcome: Outcome) -> None:
    for spelling in (word, word.upper(), word.lower(), word.capitalize(), f"  {word}\n", f"\t{word.upper()} "):
        assert read_state(spelling) is outcome, spelling


@pytest.mark.parametrize(
    ("flag", "outcome"),
    [(0, Outcome.RUNNING), (1, Outcome.SUCCESS), (2, Outcome.FAILURE), (3, Outcome.FAILURE)],
)
def test_a_success_flag_is_understood_as_a_number_and_as_text(flag: int, outcome: Outcome) -> None:
    for spelling in (flag, str(flag), f" {flag} "):
        assert read_state(spelling) is outcome, spelling


@pytest.mark.parametrize(
    "word",
    [
        *("", " ", "partying", "successful", "un success", "in progress", "success!", "null", "none", "true"),
        *("4", "-1", "01", "1.0", "²", 4, -1, 10**30),
        *(True, False, None, 1.0, 0.0, b"success", ["success"], {"state": "success"}),
    ],
    ids=repr,
)
def test_anything_else_is_unknown(word: Any) -> None:
    assert read_state(word) is Outcome.UNKNOWN


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.text())))
def test_no_word_can_end_a_job_that_is_not_in_the_table(word: Any) -> None:
    known = {known.lower() for known in (*SUCCESS, *FAILURE)} | {"1", "2", "3"}
    ends = read_state(word) in (Outcome.SUCCESS, Outcome.FAILURE)
    assert ends == (not isinstance(word, bool | float) and str(word).strip().lower() in known)


@pytest.mark.parametrize(
    "pieces", [(), (Piece(value=""),), (Piece(value=" \n"), Piece(kind=PartKind.TEXT, value="\t"))]
)
def test_a_success_with_nothing_to_show_is_a_failure_that_keeps_the_bill(pieces: tuple[Piece, ...]) -> None:
    report = Report(outcome=Outcome.SUCCESS, task_id="t", pieces=pieces, cost=7, word="done")

    settled = settle_report(report)

    assert settled.outcome is Outcome.FAILURE
    assert settled.error_code == "empty_result"
    assert settled.error_text
    assert settled.pieces == ()
    assert (settled.task_id, settled.cost, settled.word) == ("t", 7, "done")


def test_a_success_with_one_thing_to_show_among_empty_ones_stays_one() -> None:
    report = Report(outcome=Outcome.SUCCESS, pieces=(Piece(value=""), Piece(value="https://files.example/1.png")))
    assert settle_report(report) is report


@pytest.mark.parametrize("outcome", [Outcome.FAILURE, Outcome.RUNNING, Outcome.UNKNOWN])
def test_a_report_without_a_result_is_left_as_it_is_unless_it_claims_success(outcome: Outcome) -> None:
    report = Report(outcome=outcome, error_code="nsfw", error_text="no")
    assert settle_report(report) is report
