"""Exactly one of three ends, told from a row."""

from dataclasses import replace

import pytest

from genlock.domain.delivery import MESSAGE_ONLY, Part, Step
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind
from genlock.engine.invariants import End, ends
from tests.rows import JOB, NOW

RESULT = (Part(kind=PartKind.FILE, value="https://files/1", step=Step.DONE, message="m1"),)
TOLD = (replace(MESSAGE_ONLY[0], step=Step.DONE, message="m1"),)

DELIVERED = replace(
    JOB,
    placeholder="m1",
    price=100,
    hold_state=HoldState.CAPTURED,
    state=State.SUCCEEDED,
    task_id="t1",
    parts=RESULT,
    delivery=Delivery.DELIVERED,
    notice=Notice.SENT,
    submitted_at=NOW,
    ended_at=NOW,
    delivered_at=NOW,
)
FAILED = replace(DELIVERED, state=State.FAILED, parts=TOLD, hold_state=HoldState.RELEASED)
LISTED = replace(
    DELIVERED,
    delivery=Delivery.UNKNOWN,
    delivered_at=None,
    hold_state=HoldState.RELEASED,
    attention_reason="a send's answer was lost",
)


@pytest.mark.parametrize(
    ("job", "end"),
    [
        (DELIVERED, End.DELIVERED),
        (replace(DELIVERED, price=0, hold_state=HoldState.FREE), End.DELIVERED),
        (replace(DELIVERED, notice=Notice.NONE), End.DELIVERED),
        (replace(DELIVERED, state=State.EXPIRED, late=True, hold_state=HoldState.RELEASED), End.DELIVERED),
        (FAILED, End.RETURNED),
        (replace(FAILED, state=State.CANCELLED), End.RETURNED),
        (replace(FAILED, state=State.EXPIRED, price=0, hold_state=HoldState.FREE), End.RETURNED),
        (LISTED, End.LISTED),
        (replace(LISTED, state=State.SUBMITTING, delivery=Delivery.NONE, hold_state=HoldState.HELD), End.LISTED),
    ],
)
def test_an_end_is_recognised_from_its_row(job: Job, end: End) -> None:
    assert ends(job) == [end]


@pytest.mark.parametrize(
    "changes",
    [
        {"hold_state": HoldState.HELD},
        {"delivery": Delivery.PENDING},
        {"notice": Notice.DUE},
        {"parts": ()},
        {"parts": (replace(RESULT[0], step=Step.SEND),)},
        {"state": State.FAILED, "hold_state": HoldState.CAPTURED},
        {"delivery": Delivery.UNDELIVERABLE},
    ],
)
def test_an_unfinished_row_has_no_end(changes: dict[str, object]) -> None:
    assert ends(replace(DELIVERED, **changes)) == []  # type: ignore[arg-type]


def test_a_row_with_two_ends_is_detected() -> None:
    assert ends(replace(DELIVERED, attention_reason="why?")) == [End.DELIVERED, End.LISTED]
