"""What a provider reports about a task."""

from enum import StrEnum

from genlock.domain.value import value


class Outcome(StrEnum):
    """What a report says about its task."""

    SUCCESS = "success"  #: an end, with a result
    FAILURE = "failure"  #: an end, without a result
    RUNNING = "running"  #: not ended, or not known to the provider yet
    UNKNOWN = "unknown"  #: a state word that we do not know: the job keeps running, the operator sees the word


class PartKind(StrEnum):
    """What a result, or a part of a delivery, is."""

    FILE = "file"  #: a URL; the kind of file is found from its content
    TEXT = "text"  #: the text itself is the result
    MESSAGE = "message"  #: our own message about a job that ended without a result


@value
class Piece:
    """One result of a task as the provider returned it."""

    kind: PartKind = PartKind.FILE
    #: the URL of a file, or the text itself
    value: str


@value
class Report:
    """What a callback or a status answer says, in our own terms."""

    outcome: Outcome
    #: the task that the report is about; None: it does not tell
    task_id: str | None = None
    #: the result of a success
    pieces: tuple[Piece, ...] = ()
    #: why there is no result: selects the text that the user reads
    error_code: str = ""
    #: the provider's own words, for the operator
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
