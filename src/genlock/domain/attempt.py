"""Attempts: each try to have a job made by one provider, and when another provider may be tried."""

from datetime import datetime
from enum import StrEnum

from genlock.domain.result import Outcome, Report
from genlock.domain.value import value

#: Error codes after which another provider may make the order: this one provably did not accept it, or failed by its
#: own fault. What the user must change (the prompt, a file, a value) fails elsewhere, too, and is not tried again.
ELSEWHERE = frozenset(
    {"no_provider_credits", "provider_key", "model_unavailable", "provider_failed", "provider_timeout"}
)


def may_fail_over(report: Report) -> bool:
    """Return whether a report proves that the provider failed by its own fault and bills nothing."""
    return report.outcome is Outcome.FAILURE and report.error_code in ELSEWHERE and report.cost == 0


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"  #: the provider made the result
    FAILED = "failed"  #: the provider accepted the order and failed
    REFUSED = "refused"  #: the provider did not accept the order
    BUSY = "busy"  #: the provider did not accept the order for now
    UNKNOWN = "unknown"  #: the answer was lost, and an operator had the order submitted again
    CANCELLED = "cancelled"  #: the job was cancelled
    EXPIRED = "expired"  #: the job's time was over


@value
class Attempt:
    """One try to have a job made by one provider."""

    number: int
    provider: str
    #: the provider's own id of the model
    offer: str
    #: the input as it was sent to the provider; None: the job's own input was sent, or it was erased
    sent_input: str | None
    task_id: str | None
    handle: str
    #: None while the provider may still work on it
    outcome: AttemptOutcome | None
    error_code: str
    #: what the provider billed, in thousandths of its credit; None: not reported
    cost: int | None
    #: what the provider reported after the attempt had ended
    late_report: str | None
    started_at: datetime
    ended_at: datetime | None


@value
class AttemptCost:
    """What a provider billed for an attempt, beyond the cost in the job's row, in thousandths of its credit."""

    job_id: int
    provider: str
    cost: int
