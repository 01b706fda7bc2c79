"""What a provider's report is worth: a success without a result is a failure."""

import pytest

from genlock.domain.result import Outcome, PartKind, Piece, Report, settle_report


@pytest.mark.parametrize(
    "pieces", [(), (Piece(value=""),), (Piece(value=" \n"), Piece(kind=PartKind.TEXT, value="\t"))]
)
def test_a_success_without_a_result_becomes_a_failure_that_keeps_its_cost(pieces: tuple[Piece, ...]) -> None:
    report = Report(outcome=Outcome.SUCCESS, task_id="t", pieces=pieces, cost=7, word="done")

    settled = settle_report(report)

    assert settled.outcome is Outcome.FAILURE
    assert settled.error_code == "empty_result"
    assert settled.error_text
    assert settled.pieces == ()
    assert (settled.task_id, settled.cost, settled.word) == ("t", 7, "done")


def test_a_success_with_one_result_among_empty_ones_stays_a_success() -> None:
    report = Report(outcome=Outcome.SUCCESS, pieces=(Piece(value=""), Piece(value="https://files.example/1.png")))
    assert settle_report(report) is report


@pytest.mark.parametrize("outcome", [Outcome.FAILURE, Outcome.RUNNING, Outcome.UNKNOWN])
def test_a_report_that_does_not_claim_success_is_left_unchanged(outcome: Outcome) -> None:
    report = Report(outcome=outcome, error_code="nsfw", error_text="no")
    assert settle_report(report) is report
