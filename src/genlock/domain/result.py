"""What a provider says of a task, and the one table that understands its words."""

from enum import StrEnum
from typing import Any

from genlock.domain.value import value


class Outcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    RUNNING = "running"
    UNKNOWN = "unknown"  #: a word we do not know: the job goes on, the operator sees the word


_WORDS: dict[Outcome, frozenset[str]] = {
    Outcome.SUCCESS: frozenset({"success", "succeed", "succeeded", "done", "completed", "finished"}),
    Outcome.FAILURE: frozenset(
        {
            "fail",
            "failed",
            "error",
            "canceled",
            "cancelled",
            "timeout",
            "create_task_failed",
            "generate_failed",
            "generate_audio_failed",
            "generate_wav_failed",
            "generate_mp4_failed",
            "sensitive_word_error",
        }
    ),
    Outcome.RUNNING: frozenset(
        {
            "waiting",
            "queuing",
            "queueing",
            "queued",
            "pending",
            "wait",
            "processing",
            "running",
            "in_progress",
            "generating",
            "text_success",
            "first_success",
            "callback_exception",
        }
    ),
}
_FLAGS = {0: Outcome.RUNNING, 1: Outcome.SUCCESS, 2: Outcome.FAILURE, 3: Outcome.FAILURE}
_BY_WORD = {word: outcome for outcome, words in _WORDS.items() for word in words}


def read_state(word: Any) -> Outcome:
    """Normalise a state word or a `successFlag`. Whatever is not in the table keeps the job running."""
    if isinstance(word, bool):
        return Outcome.UNKNOWN
    if isinstance(word, int):
        return _FLAGS.get(word, Outcome.UNKNOWN)
    if not isinstance(word, str):
        return Outcome.UNKNOWN
    text = word.strip().lower()
    if text in ("0", "1", "2", "3"):
        return _FLAGS[int(text)]
    return _BY_WORD.get(text, Outcome.UNKNOWN)


class PartKind(StrEnum):
    FILE = "file"  #: an address; what it is, is found by looking at the content
    TEXT = "text"  #: the words themselves are the result
    MESSAGE = "message"  #: no result: our own message about a job that ended without one


@value
class Piece:
    """One result of a task, as the provider gave it."""

    kind: PartKind = PartKind.FILE
    value: str


@value
class Report:
    """What a callback or a status answer says, in our words."""

    outcome: Outcome
    task_id: str | None = None
    pieces: tuple[Piece, ...] = ()
    error_code: str = ""
    error_text: str = ""
    #: what the provider billed, in thousandths of its own credit, if it says
    cost: int | None = None
    #: the provider's own state word, kept for the operator
    word: str = ""


def settle_report(report: Report) -> Report:
    """A success without anything to show is a failure: the money goes back and the person is told."""
    if report.outcome is not Outcome.SUCCESS or any(piece.value.strip() for piece in report.pieces):
        return report
    return Report(
        outcome=Outcome.FAILURE,
        task_id=report.task_id,
        error_code="empty_result",
        error_text="the provider reported success without a result",
        cost=report.cost,
        word=report.word,
    )
