"""The three ends of a job, decided from its row alone: every finished job has reached exactly one."""

from enum import StrEnum

from genlock.domain.delivery import Step
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState


class End(StrEnum):
    DELIVERED = "delivered"  #: the result is in the chat
    RETURNED = "returned"  #: there is no result; the user was informed and the hold released
    LISTED = "listed"  #: the job is on the operator's list


def ends(job: Job) -> list[End]:
    """Return the ends this row has reached. When no work is left, it is exactly one for every row."""
    found = []
    if _delivery_complete(job):
        if _has_result(job):
            found.append(End.DELIVERED)
        elif job.hold_state in (HoldState.FREE, HoldState.RELEASED):
            found.append(End.RETURNED)
    if job.attention_reason is not None:
        found.append(End.LISTED)
    return found


def _delivery_complete(job: Job) -> bool:
    """Whether the channel confirmed all parts, the notice is settled and nothing is held."""
    return (
        job.delivery is Delivery.DELIVERED
        and bool(job.parts)
        and all(part.step is Step.DONE for part in job.parts)
        and job.notice in (Notice.NONE, Notice.SENT)
        and job.hold_state is not HoldState.HELD
    )


def _has_result(job: Job) -> bool:
    return job.state is State.SUCCEEDED or job.late
