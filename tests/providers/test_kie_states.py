"""Kie.ai's state words: every spelling in the table is understood, every other word keeps the job running."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from genlock.domain.result import Outcome
from genlock.providers.kie.states import read_state

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


def test_every_word_of_the_table_is_understood_in_any_case_and_with_spaces_around() -> None:
    wrong = [
        (spelling, outcome)
        for word, outcome in TABLE
        for spelling in (word, word.upper(), word.lower(), word.capitalize(), f"  {word}\n", f"\t{word.upper()} ")
        if read_state(spelling) is not outcome
    ]
    assert wrong == []


def test_a_success_flag_is_understood_as_a_number_and_as_text() -> None:
    flags = {0: Outcome.RUNNING, 1: Outcome.SUCCESS, 2: Outcome.FAILURE, 3: Outcome.FAILURE}
    wrong = [
        (spelling, outcome)
        for flag, outcome in flags.items()
        for spelling in (flag, str(flag), f" {flag} ")
        if read_state(spelling) is not outcome
    ]
    assert wrong == []


def test_a_value_that_is_not_in_the_table_is_unknown() -> None:
    values: list[Any] = [
        *("", " ", "partying", "successful", "un success", "in progress", "success!", "null", "none", "true"),
        *("4", "-1", "01", "1.0", "²", 4, -1, 10**30),
        *(True, False, None, 1.0, 0.0, b"success", ["success"], {"state": "success"}),
    ]
    assert [value for value in values if read_state(value) is not Outcome.UNKNOWN] == []


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.text())))
def test_only_a_word_of_the_table_can_end_a_job(word: Any) -> None:
    known = {known.lower() for known in (*SUCCESS, *FAILURE)} | {"1", "2", "3"}
    ends = read_state(word) in (Outcome.SUCCESS, Outcome.FAILURE)
    assert ends == (not isinstance(word, bool | float) and str(word).strip().lower() in known)
