"""The life of a job: acceptance, submission, its end, delivery, and the leases that protect every step."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.attempt import AttemptOutcome
from genlock.domain.delivery import Part
from genlock.domain.inbox import Callback
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, NewJob, Notice, State, Verdict
from genlock.domain.money import HoldState
from genlock.domain.value import value


@value
class Lease:
    """Which instance takes a job or an update queue, and for how long."""

    owner: str
    seconds: float


@value
class Accepted:
    job: Job
    #: False when the idempotency key was known: `job` is the job it was used for
    created: bool


@value
class NewCallback:
    """A callback received at a job's own address, stored in the commit that applies it."""

    provider: str
    #: proves that the callback came to the job's address
    secret_hash: str
    body: str


@value
class EndJob:
    """One attempt to end a job. The first attempt wins. With `token` it counts only while that lease is valid."""

    job_id: int
    state: State
    parts: tuple[Part, ...]
    token: int | None = None
    task_id: str | None = None
    error_code: str = ""
    error_text: str = ""
    #: who cancels the job, where the state is cancelled
    cancelled_by: Actor | None = None
    cost: int | None = None
    #: the attempt that the report is about; None: the current one
    attempt: int | None = None
    #: the stored callback that reported the end; settled in the same commit
    callback_id: int | None = None
    #: or the callback that was received just now; stored in the same commit if it has the job's secret
    arrival: NewCallback | None = None


@value
class FailedAttempt:
    """The end of an attempt that made nothing and is not billed. With `token` only while that lease is valid."""

    job_id: int
    outcome: AttemptOutcome
    error_code: str
    token: int | None = None
    #: the attempt that a report is about; None: the current one
    attempt: int | None = None
    #: the task that a report is about
    task_id: str | None = None
    cost: int | None = None
    #: the stored callback that reported the failure; settled in the same commit
    callback_id: int | None = None


@value
class JobEnd:
    """The outcome of an attempt to end a job."""

    verdict: Verdict
    #: the row after a verdict of won or late, leased to the caller
    job: Job | None = None
    #: the arrival, as it was stored
    callback: Callback | None = None


@value
class Reschedule:
    """Release a job's lease and make it due `after` seconds, or only when an operator acts (None). Fenced."""

    job_id: int
    token: int
    after: float | None
    #: fields to set, where not None
    state: State | None = None
    delivery: Delivery | None = None
    parts: tuple[Part, ...] | None = None
    #: the wait is the grace time of a submit whose outcome is unknown
    grace: bool = False
    #: True counts a failed attempt, False resets the count, None leaves it
    failed: bool | None = False
    #: no progress edit of the job is on its way any more
    progress_settled: bool = False
    #: puts the job on the operator's list; the code says what for
    attention_reason: str | None = None
    attention_code: AttentionCode = AttentionCode.OTHER


@value
class FinishDelivery:
    """The end of a delivery. Fenced; settles the job's hold in the same commit."""

    job_id: int
    token: int
    delivery: Delivery
    parts: tuple[Part, ...]
    #: puts the job on the operator's list; the code says what for
    attention_reason: str | None = None
    attention_code: AttentionCode = AttentionCode.OTHER
    #: an earlier progress edit may still overwrite the job's message, which must be put again
    overwritable: bool = False


@value
class DeliveryEnd:
    hold_state: HoldState
    notice: Notice


class JobStore(Protocol):
    """Writes to jobs. Each method is one commit; a method that takes a token changes nothing if the lease is lost."""

    # acceptance and submission
    async def accept_job(self, order: NewJob, lease: Lease | None) -> Accepted:
        """Write a job and its hold. Raises InsufficientBalance, IdempotencyKeyReused and AccountNotFound."""

    async def begin_submit(
        self,
        job_id: int,
        token: int,
        secret_hash: str,
        placeholder: str | None,
        provider: str | None = None,
        offer: str | None = None,
        sent_input: str | None = None,
    ) -> bool:
        """Record that the create call may be sent from now on, as an attempt. Returns False if the lease was lost.

        Without a provider it is the job's own one; `offer` is the provider's id of the model, `sent_input` what it is
        asked for where that is not the job's own input.
        """

    async def mark_submitted(self, job_id: int, token: int, task_id: str, poll_after: float, handle: str = "") -> bool:
        """Record the task. The job is due at once if a callback of this task is waiting. Raises TaskIdConflict."""

    async def adopt_task(
        self, job_id: int, secret_hash: str | None, task_id: str, handle: str = "", attempt: int | None = None
    ) -> bool:
        """Record the task of a submit whose lease was lost during the call. No secret: a callback named the task.

        The task of an attempt that the job has given up is recorded with that attempt, and False returned.
        """

    async def fail_over(self, failed: FailedAttempt) -> bool:
        """End the current attempt and queue the job for another provider. False if it is not the current attempt.

        The caller must have a proof that the provider made nothing and bills nothing.
        """

    async def begin_progress(self, job_id: int, token: int, lease: Lease) -> bool:
        """Record that a progress edit may be on its way, and renew the lease. Returns False if it was lost."""

    # the end and the delivery
    async def end_job(self, ending: EndJob, lease: Lease | None) -> JobEnd:
        """End a job, for callbacks, polls, deadlines and cancellations alike. Releases the hold unless it succeeded."""

    async def save_parts(self, job_id: int, token: int, parts: tuple[Part, ...], lease: Lease) -> bool:
        """Record the progress of a delivery, before and after each call to the channel, and renew the lease."""

    async def finish_delivery(self, finish: FinishDelivery, lease: Lease) -> DeliveryEnd | None:
        """End a delivery. Returns None if the lease was lost; keeps the lease only if a notice is due.

        A notice is due if the job wants one, and always if the outcome of the delivery is unknown.
        """

    async def mark_result_invalid(
        self, job_id: int, token: int, parts: tuple[Part, ...], code: str, text: str
    ) -> Job | None:
        """Turn a success or a late result that is invalid, and not paid for, into a failure and release its hold."""

    async def change_address(self, job_id: int, token: int, address: str, parts: tuple[Part, ...]) -> bool:
        """Set the job's new chat address and drop its placeholder, which exists only at the old address."""

    async def begin_notice(self, job_id: int, token: int) -> bool:
        """Record the notice before it is sent, so that it is sent at most once, and release the lease."""

    async def return_notice(self, job_id: int, token: int, after: float, *, failed: bool) -> bool:
        """Make a notice due again that was recorded with this token and provably not sent.

        The job may be leased again meanwhile. Returns False if the notice of a later end has replaced it.
        """

    # leases
    async def claim_jobs(self, limit: int, lease: Lease) -> list[Job]:
        """Lease due jobs, the longest overdue first, except those whose worker crashed."""

    async def claim_poison_jobs(self, slots: Sequence[int], lease: Lease) -> list[Job]:
        """Lease due jobs whose worker crashed: `slots[n]` jobs with n + 1 crashes; the last slot also takes more."""

    async def renew_lease(self, job_id: int, token: int, lease: Lease) -> bool:
        """Renew the lease of a job. Returns False if it was lost."""

    async def reschedule(self, wait: Reschedule) -> bool:
        """Release a job until later. Returns False if the lease was lost."""

    # operators
    async def retry_job(self, job_id: int, *, resubmit: int | None = None) -> bool:
        """Make a waiting job due now. A parked submit is queued again only with its lease token as `resubmit`."""

    async def resend_job(self, job_id: int, parts: tuple[Part, ...], token: int | None = None) -> bool:
        """Deliver an ended job's parts again; with a token, only if the row has not changed since it was read."""

    async def resend_paid_job(self, job_id: int, parts: tuple[Part, ...], token: int) -> bool:
        """Resend an undeliverable result and hold its price again. Raises InsufficientBalance."""

    async def clear_attention(self, job_id: int, token: int) -> bool:
        """Take a job off the operator's list, if it has not changed since it was read and needs no more work."""
