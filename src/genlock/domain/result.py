"""What a provider reports about a task."""

from enum import StrEnum

from genlock.domain.value import value


class Outcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    RUNNING = "running"
    UNKNOWN = "unknown"  #: a state word that we do not know: the job keeps running, the operator sees the word


class PartKind(StrEnum):
    FILE = "file"  #: a URL; the kind of file is found from its content
    TEXT = "text"  #: the text itself is the result
    MESSAGE = "message"  #: our own message about a job that ended without a result


@value
class Piece:
    """One result of a task as the provider returned it."""

    kind: PartKind = PartKind.FILE
    value: str


@value
class Report:
    """What a callback or a status answer says, in our own terms."""

    outcome: Outcome
    task_id: str | None = None
    pieces: tuple[Piece, ...] = ()
    error_code: str = ""
    error_text: str = ""
    #: what the provider billed, in thousandths of its own credit; None: it does not tell
    cost: int | None = None
    #: the task has ended, but this does not hold its result: query the task
    incomplete: bool = False
    #: the provider's own state word, kept for the operator
    word: str = ""


def settle_report(report: Report) -> Report:
    """Turn a success without a result into a failure, so that the hold is released and the user informed."""
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
