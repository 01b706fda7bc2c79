"""The three ends of a job, decided from its row alone: every finished job has reached exactly one."""

from enum import StrEnum

from genlock.domain.delivery import Step
from genlock.domain.job import Delivery, Job, Notice
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind


class End(StrEnum):
    DELIVERED = "delivered"  #: the result is in the chat
    RETURNED = "returned"  #: there is no result; the user was informed and the hold released
    LISTED = "listed"  #: the job is on the operator's list


def ends(job: Job) -> list[End]:
    """Return the ends this row has reached. When no work is left, it is exactly one for every row."""
    found = []
    if _delivery_complete(job):
        if job.has_result:
            found.append(End.DELIVERED)
        elif job.hold_state in (HoldState.FREE, HoldState.RELEASED):
            found.append(End.RETURNED)
    if job.attention_reason is not None:
        found.append(End.LISTED)
    return found


def _delivery_complete(job: Job) -> bool:
    """Whether the channel confirmed every part, the notice is settled and nothing is held.

    Our own message among the parts of a result stands for one that could not be shown.
    """
    partly = job.has_result and any(part.kind is PartKind.MESSAGE for part in job.parts)
    return (
        job.delivery is Delivery.DELIVERED
        and bool(job.parts)
        and not partly
        and all(part.step is Step.DONE for part in job.parts)
        and job.notice in (Notice.NONE, Notice.SENT)
        and job.hold_state is not HoldState.HELD
    )
