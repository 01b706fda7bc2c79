"""Exactly one of three ends, told from a row."""

from dataclasses import replace

import pytest

from genlock.domain.delivery import WORDS, Part, Step
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import Purse
from genlock.domain.result import PartKind
from genlock.engine.invariants import End, ends
from tests.rows import JOB, NOW

RESULT = (Part(kind=PartKind.FILE, value="https://files/1", step=Step.DONE, message="m1"),)
TOLD = (replace(WORDS[0], step=Step.DONE, message="m1"),)

DELIVERED = replace(
    JOB,
    placeholder="m1",
    price=100,
    purse=Purse.CAPTURED,
    state=State.SUCCEEDED,
    task_id="t1",
    parts=RESULT,
    delivery=Delivery.DELIVERED,
    notice=Notice.SENT,
    submitted_at=NOW,
    ended_at=NOW,
    delivered_at=NOW,
)
FAILED = replace(DELIVERED, state=State.FAILED, parts=TOLD, purse=Purse.RELEASED)
LISTED = replace(
    DELIVERED, delivery=Delivery.UNKNOWN, delivered_at=None, purse=Purse.RELEASED, attention="a send's answer was lost"
)


@pytest.mark.parametrize(
    ("job", "end"),
    [
        (DELIVERED, End.DELIVERED),
        (replace(DELIVERED, price=0, purse=Purse.FREE), End.DELIVERED),
        (replace(DELIVERED, notice=Notice.NONE), End.DELIVERED),
        (replace(DELIVERED, state=State.EXPIRED, late=True, purse=Purse.RELEASED), End.DELIVERED),
        (FAILED, End.RETURNED),
        (replace(FAILED, state=State.CANCELLED), End.RETURNED),
        (replace(FAILED, state=State.EXPIRED, price=0, purse=Purse.FREE), End.RETURNED),
        (LISTED, End.LISTED),
        (replace(LISTED, state=State.SUBMITTING, delivery=Delivery.NONE, purse=Purse.HELD), End.LISTED),
    ],
)
def test_an_end_is_known_by_its_row(job: Job, end: End) -> None:
    assert ends(job) == [end]


@pytest.mark.parametrize(
    "changes",
    [
        {"purse": Purse.HELD},
        {"delivery": Delivery.PENDING},
        {"notice": Notice.DUE},
        {"parts": ()},
        {"parts": (replace(RESULT[0], step=Step.SEND),)},
        {"state": State.FAILED, "purse": Purse.CAPTURED},
        {"delivery": Delivery.UNDELIVERABLE},
    ],
)
def test_whatever_is_unfinished_has_no_end(changes: dict[str, object]) -> None:
    assert ends(replace(DELIVERED, **changes)) == []  # type: ignore[arg-type]


def test_two_ends_are_one_too_many() -> None:
    assert ends(replace(DELIVERED, attention="why?")) == [End.DELIVERED, End.LISTED]
