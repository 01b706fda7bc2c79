"""Actions on a job by an operator or its user. Chat, command line and HTTP use these same functions."""

from genlock.domain.delivery import MESSAGE_ONLY, again
from genlock.domain.errors import ActionNotAllowed, JobNotFound, JobWasSubmitted
from genlock.domain.events import Event
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, State, Verdict
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.queued_message import QueuedMessage
from genlock.engine.accounts import Allowance
from genlock.engine.context import EngineContext
from genlock.ports import EndJob


async def find(ctx: EngineContext, job_id: int) -> Job:
    """Return a job. Raises JobNotFound."""
    job = await ctx.store.job(job_id)
    if job is None:
        raise JobNotFound(f"there is no job {job_id}")
    return job


async def find_result(ctx: EngineContext, job_id: int) -> Job:
    """Return a job whose result was not erased. Raises JobNotFound and ActionNotAllowed."""
    job = await find(ctx, job_id)
    if job.erased and not job.parts:
        raise ActionNotAllowed(f"the result of job {job_id} was erased at the user's wish")
    return job


async def retry(ctx: EngineContext, job_id: int, by: str, *, resubmit: bool = False, token: int | None = None) -> Job:
    """Make the next step of an unfinished job due now, or a parked notice. Raises ActionNotAllowed.

    A parked submit is made again only with `resubmit`, because the provider may bill it twice; with the fencing token
    of an earlier read at most once.
    """
    job = await find(ctx, job_id)
    seen = job.lease_token if token is None else token
    if not await ctx.store.retry_job(job_id, resubmit=seen if resubmit else None):
        raise ActionNotAllowed(_why_not_retried(job))
    ctx.event(Event.OPERATOR_ACTION, job, action="retry", by=by)
    return await find(ctx, job_id)


def _why_not_retried(job: Job) -> str:
    if job.lease_owner:
        return f"job {job.id} is being processed at this moment"
    if job.is_parked_submit:
        return f"job {job.id} may have been accepted by the provider: an operator must decide to submit it again"
    return f"job {job.id} has ended ({job.state}, {job.delivery}): resend it, or have the user order again"


async def resend(ctx: EngineContext, job_id: int, by: str, *, token: int | None = None) -> Job:
    """Deliver an ended job's result again, on new messages, free of charge. Raises ActionNotAllowed.

    With the fencing token of an earlier read it is done at most once: the first resend uses the token up.
    """
    job = await find_result(ctx, job_id)
    if not await ctx.store.resend_job(job_id, again(job.parts), job.lease_token if token is None else token):
        raise ActionNotAllowed(_nothing_to_resend(job))
    ctx.event(Event.OPERATOR_ACTION, job, action="resend", by=by)
    return await find(ctx, job_id)


def _nothing_to_resend(job: Job) -> str:
    return f"job {job.id} has nothing to resend yet ({job.state}, {job.delivery})"


async def resend_for_user(ctx: EngineContext, job_id: int, by: str) -> Job:
    """Resend a result at its user's wish: free, unless it could not be delivered and its hold was therefore released.

    Then it costs its price now. Raises InsufficientBalance and ActionNotAllowed.
    """
    job = await find_result(ctx, job_id)
    if job.attention_code is AttentionCode.POISON:
        raise ActionNotAllowed(f"job {job_id}: {job.attention_reason}; only an operator may try again")
    if job.delivery in (Delivery.NONE, Delivery.PENDING, Delivery.SENDING):
        raise ActionNotAllowed(_nothing_to_resend(job))  # whether it will be paid for is not known yet
    if not job.unpaid:
        return await resend(ctx, job_id, by, token=job.lease_token)
    if not await ctx.store.resend_paid_job(job_id, again(job.parts), job.lease_token):
        raise ActionNotAllowed(f"job {job_id} is being resent already")
    ctx.event(Event.OPERATOR_ACTION, job, action="resend", by=by)
    return await find(ctx, job_id)


async def cancel(
    ctx: EngineContext,
    job_id: int,
    by: str,
    *,
    actor: Actor = Actor.OPERATOR,
    lease: bool = False,
    attempt: int | None = None,
) -> Job:
    """Stop waiting for a job and release its hold. What the provider bills for it is recorded as a loss.

    With `lease` the job is leased to this instance, which can inform the user at once. Raises ActionNotAllowed; with
    `attempt`, the number of attempts that the caller has seen, also JobWasSubmitted if another one has begun.
    """
    job = await find(ctx, job_id)
    ending = EndJob(
        job_id=job_id,
        state=State.CANCELLED,
        parts=MESSAGE_ONLY,
        error_code="cancelled",
        error_text=f"by {by}",
        cancelled_by=actor,
        attempt=attempt,
    )
    ended = await ctx.store.end_job(ending, ctx.lease if lease else None)
    if ended.verdict is Verdict.ABANDONED:
        raise JobWasSubmitted(f"job {job_id} was submitted meanwhile")
    if ended.verdict is not Verdict.WON or ended.job is None:
        raise ActionNotAllowed(f"job {job_id} has already ended ({(await find(ctx, job_id)).state})")
    ctx.event(Event.OPERATOR_ACTION, job, action="cancel", by=by)
    return ended.job


async def mark_handled(ctx: EngineContext, job_id: int, by: str, token: int) -> Job:
    """Take a job off the operator's list. Nothing else changes: neither its money nor its messages.

    `token` is the lease token that the operator saw: if the job has changed since, nothing is done. A job that still
    waits for work stays on the list, because nothing else would remind of its hold. A notice that failed in every
    attempt is given up. Raises ActionNotAllowed.
    """
    if not await ctx.store.clear_attention(job_id, token):
        raise ActionNotAllowed(_why_not_handled(await find(ctx, job_id), token))
    job = await find(ctx, job_id)
    ctx.event(Event.OPERATOR_ACTION, job, action="handled", by=by)
    return job


def _why_not_handled(job: Job, token: int) -> str:
    if job.attention_code is None:
        return f"job {job.id} is not on the operator's list any more: it was handled meanwhile"
    if job.lease_token != token:
        return f"job {job.id} has changed meanwhile ({job.state}, {job.delivery})"
    return f"job {job.id} still waits ({job.state}, {job.delivery}): retry or cancel it"


def refund_key(job_id: int) -> str:
    """Return the idempotency key of a job's refund: the user gets it once, however often operators ask for it."""
    return f"refund:{job_id}"


async def refund(
    ctx: EngineContext,
    job_id: int,
    by: str,
    *,
    allowance: Allowance | None = None,
    message: QueuedMessage | None = None,
) -> bool:
    """Return the credits of a paid job to its user. Returns False if that was done before.

    The price counts under the operator's allowance, if there is one, before it is returned. The result stays in the
    chat. The message to the user (`refund_message`) is queued in the commit that returns the credits; the caller sends
    it. Raises ActionNotAllowed and AllowanceExceeded.
    """
    job = await find(ctx, job_id)
    if job.hold_state is not HoldState.CAPTURED:
        raise ActionNotAllowed(f"job {job_id} was not paid for ({job.hold_state}): there is nothing to refund")
    if allowance is not None:
        if await ctx.store.ledger_entry(refund_key(job_id)) is not None:
            return False
        await ctx.store.use_allowance(allowance.name, job.price, allowance.most)
    refunded = await ctx.store.transfer(
        job.account_id, EntryKind.REFUND, job.price, refund_key(job_id), f"order {job_id} refunded", message=message
    )
    if allowance is not None and not refunded:  # another operator was faster
        await ctx.store.use_allowance(allowance.name, -job.price, allowance.most)
    if refunded:
        ctx.event(Event.OPERATOR_ACTION, job, action="refund", by=by)
    return refunded
