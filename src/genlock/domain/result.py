"""What a provider says of a task, and the one table that understands its words."""

from enum import StrEnum

from genlock.domain.value import value


class Outcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    RUNNING = "running"
    UNKNOWN = "unknown"  #: a word we do not know: the job goes on, the operator sees the word


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
