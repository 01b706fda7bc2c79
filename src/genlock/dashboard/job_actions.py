"""What an operator can do with a job: whether it is possible now, and what it does to the money and the chat."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from genlock.domain.job import OPEN, Delivery, Job, State
from genlock.domain.money import HoldState

_TEXTS = "dashboard.job.action."
_SETTLED = (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN)


class JobAction(StrEnum):
    RETRY = "retry"
    RESEND = "resend"
    CANCEL = "cancel"
    REFUND = "refund"
    HANDLED = "handled"


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferedAction:
    """One action. `explanation` and `reason` are keys of texts."""

    action: JobAction
    #: what it does to the money and the chat
    explanation: str
    #: why it is not possible now; empty if it is
    reason: str = ""
    tone: str = ""


def offered_actions(job: Job, *, refunded: bool) -> list[OfferedAction]:
    """Return every action with its explanation, possible or not."""
    return [
        _action(JobAction.RETRY, _retry_text(job), _not_retryable(job)),
        _action(JobAction.RESEND, _resend_text(job), _not_resendable(job)),
        _action(JobAction.CANCEL, "cancel_paid" if job.price else "cancel_free", _not_cancellable(job), "danger"),
        _action(JobAction.REFUND, "refund_explained", _not_refundable(job, refunded=refunded), "danger"),
        _action(JobAction.HANDLED, "handled_explained", _not_handleable(job)),
    ]


def possible(job: Job, *, refunded: bool) -> Iterator[JobAction]:
    return (offered.action for offered in offered_actions(job, refunded=refunded) if not offered.reason)


def seen_state(job: Job) -> str:
    """Return what a form remembers of the job that it was made from."""
    return f"{job.state}/{job.delivery}/{job.hold_state}/{job.attention_code or ''}"


def _action(action: JobAction, explanation: str, reason: str, tone: str = "") -> OfferedAction:
    why = f"{_TEXTS}{reason}" if reason else ""
    return OfferedAction(action=action, explanation=f"{_TEXTS}{explanation}", reason=why, tone=tone)


def _retry_text(job: Job) -> str:
    if job.ended:
        return "retry_delivery"
    if job.is_parked_submit:
        return "retry_parked"
    if job.state is State.SUBMITTING:
        return "retry_waiting"
    return f"retry_{job.state}"


def _not_retryable(job: Job) -> str:
    if job.state not in OPEN and job.delivery in _SETTLED and not job.is_parked_notice:
        return "retry_ended"
    return "leased" if job.lease_owner else ""


def _resend_text(job: Job) -> str:
    if not job.has_result:
        return "resend_message"
    return "resend_paid" if job.hold_state is HoldState.CAPTURED else "resend_unpaid"


def _not_resendable(job: Job) -> str:
    if job.delivery not in _SETTLED:
        return "resend_early" if job.ended else "resend_open"
    return "resend_erased" if job.erased and not job.parts else ""


def _not_cancellable(job: Job) -> str:
    return "cancel_ended" if job.ended else ""


def _not_refundable(job: Job, *, refunded: bool) -> str:
    if job.hold_state is HoldState.CAPTURED:
        return "refund_done" if refunded else ""
    return f"refund_{job.hold_state}"


def _not_handleable(job: Job) -> str:
    if job.attention_code is None:
        return "handled_nothing"
    if job.delivery not in _SETTLED:
        return "handled_waits"
    return "leased" if job.lease_owner else ""
