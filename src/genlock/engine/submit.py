"""Submit: hand a queued job to its provider. The intent is committed before the call, the call is made once."""

import asyncio

from genlock.domain.delivery import MESSAGE_ONLY
from genlock.domain.errors import (
    AddressChanged,
    ChannelError,
    ProviderBusy,
    StoreUnavailable,
    SubmitRefused,
    TaskIdConflict,
)
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Job, State, hash_secret
from genlock.engine.context import EngineContext, UnknownSubmit
from genlock.engine.deliver import move
from genlock.engine.limits import PERMITS_MISSED_MAX
from genlock.engine.progress import next_progress_point
from genlock.ports import EndJob, JobEnd, Reschedule


async def submit(ctx: EngineContext, job: Job) -> Job | None:
    """From queued to running. Returns the job if it ended here and wants delivering."""
    if job.deadline_at <= job.read_at:
        return await give_up(ctx, job, "deadline", "the order waited too long to be started")
    try:
        turn = await ctx.limits.turn(f"create:{job.provider}")
    except ProviderBusy as busy:
        ctx.fenced(
            await ctx.store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=busy.after, failed=None)),
            job,
        )
        return None
    secret = ctx.make_secret()
    placeholder = None if job.placeholder else await _place(ctx, job)
    ctx.fenced(await ctx.store.begin_submit(job.id, job.lease_token, hash_secret(secret), placeholder), job)
    if turn.missed and job.placeholder and job.attempts < PERMITS_MISSED_MAX:
        # The commit took too long. Nothing was sent, so another turn may be waited for.
        again = Reschedule(job_id=job.id, token=job.lease_token, after=0.0, state=State.QUEUED, failed=True)
        ctx.fenced(await ctx.store.reschedule(again), job)
        return None
    ctx.event(Event.SUBMIT_START, job, provider=job.provider)
    return await _call(ctx, job, secret)


async def _place(ctx: EngineContext, job: Job) -> str | None:
    """A message to become the result. If it cannot be had now, the deliver stage tries again."""
    channel = ctx.channels[job.channel]
    try:
        try:
            return await channel.create_placeholder(job, 0)
        except AddressChanged as moved:
            return await channel.create_placeholder(await move(ctx, job, moved.address, job.parts), 0)
    except ChannelError as error:
        ctx.event(Event.DELIVER_FAIL, job, step="create_placeholder", reason=type(error).__name__)
        return None


def _callback_url(ctx: EngineContext, job: Job, secret: str) -> str | None:
    return f"{ctx.public_url}/callbacks/{job.provider}/{job.id}.{secret}" if ctx.public_url else None


async def _call(ctx: EngineContext, job: Job, secret: str) -> Job | None:
    started = ctx.loop.time()
    try:
        task_id = await ctx.providers[job.provider].create(job, _callback_url(ctx, job, secret))
    except SubmitRefused as refused:
        ctx.event(Event.SUBMIT_REFUSED, job, code=refused.code)
        ctx.observer.count("provider_errors", 1, provider=job.provider, call="create", reason=refused.code)
        return await _refused(ctx, job, refused)
    except ProviderBusy as busy:
        ctx.event(Event.SUBMIT_BUSY, job, after=busy.after)
        ctx.observer.count("provider_errors", 1, provider=job.provider, call="create", reason="ProviderBusy")
        back = Reschedule(job_id=job.id, token=job.lease_token, after=busy.after, state=State.QUEUED, failed=None)
        ctx.fenced(await ctx.store.reschedule(back), job)
        return None
    except Exception as error:  # noqa: BLE001 - whatever it was, the provider may have accepted: never call again
        await _unknown(ctx, job, type(error).__name__)
        return None
    ctx.event(Event.SUBMIT_OK, job, task_id=task_id, seconds=round(ctx.loop.time() - started, 3))
    await _keep(ctx, job, secret, task_id)
    return None


async def _unknown(ctx: EngineContext, job: Job, reason: str, **told: str) -> None:
    ctx.event(Event.SUBMIT_UNKNOWN, job, reason=reason, **told)
    ctx.observer.count("submits_unknown", 1, provider=job.provider)
    ctx.observer.count("provider_errors", 1, provider=job.provider, call="create", reason=reason)
    grace = Reschedule(job_id=job.id, token=job.lease_token, after=ctx.rules.grace_seconds, grace=True)
    ctx.fenced(await ctx.store.reschedule(grace), job)


async def _keep(ctx: EngineContext, job: Job, secret: str, task_id: str) -> None:
    """Write the task down. Its id is all we have of something that is being billed, so we try as long as we live."""
    while True:
        try:
            if not await ctx.store.mark_submitted(job.id, job.lease_token, task_id, _first_look(ctx, job)):
                # The callback was faster, the person cancelled, or we slept: the row has moved on without us.
                adopted = await ctx.store.adopt_task(job.id, hash_secret(secret), task_id)
                ctx.event(Event.LEASE_LOST, job, task_id=task_id, adopted=adopted)
        except TaskIdConflict as taken:
            # The provider repeats itself: what it says about this task may be meant for the other job.
            await _unknown(ctx, job, type(taken).__name__, task_id=task_id)
            return
        except StoreUnavailable as error:
            ctx.event(Event.STAGE_ERROR, job, error=str(error), task_id=task_id)
            await asyncio.sleep(ctx.rules.claim_seconds)
        else:
            return


def _first_look(ctx: EngineContext, job: Job) -> float:
    """Seconds until the task is asked after, or its progress shown, for the first time."""
    after = ctx.poll_interval.delay(0.0, ctx.rng.random())
    moment = next_progress_point(ctx, job, 0.0)
    return after if moment is None else min(after, moment)


async def _refused(ctx: EngineContext, job: Job, refused: SubmitRefused) -> Job | None:
    ending = EndJob(
        job_id=job.id,
        token=job.lease_token,
        state=State.FAILED,
        parts=MESSAGE_ONLY,
        error_code=refused.code,
        error_text=refused.text,
    )
    return await end_own(ctx, job, ending)


async def settle_unknown(ctx: EngineContext, job: Job) -> Job | None:
    """A submit that may have been accepted: wait for its callback, then settle it by policy."""
    if job.grace_until is None:
        ctx.event(Event.SUBMIT_UNKNOWN, job, reason="taken over")
        after = ctx.rules.grace_seconds
        wait = Reschedule(job_id=job.id, token=job.lease_token, after=after, grace=True)
        ctx.fenced(await ctx.store.reschedule(wait), job)
        return None
    remaining = (job.grace_until - job.read_at).total_seconds()
    if remaining > 0:
        wait = Reschedule(job_id=job.id, token=job.lease_token, after=remaining, grace=True)
        ctx.fenced(await ctx.store.reschedule(wait), job)
        return None
    if ctx.rules.unknown_submit is UnknownSubmit.PARK:
        ctx.event(Event.ATTENTION, job, reason="submit_unknown")
        park = Reschedule(
            job_id=job.id,
            token=job.lease_token,
            after=None,
            attention_reason="submit_unknown",
            attention_code=AttentionCode.PARKED,
        )
        ctx.fenced(await ctx.store.reschedule(park), job)
        return None
    return await give_up(ctx, job, "submit_unknown", "the provider never said whether it took the order")


async def give_up(ctx: EngineContext, job: Job, code: str, text: str) -> Job | None:
    """Stop waiting: money back, person told; a result that still comes is shown for free."""
    ending = EndJob(
        job_id=job.id, token=job.lease_token, state=State.EXPIRED, parts=MESSAGE_ONLY, error_code=code, error_text=text
    )
    return await end_own(ctx, job, ending)


async def end_own(ctx: EngineContext, job: Job, ending: EndJob) -> Job | None:
    """End a job whose lease we hold."""
    ended: JobEnd = await ctx.store.end_job(ending, ctx.lease)
    ctx.fenced(ended.job is not None, job)
    ctx.event(Event.JOB_ENDED, job, state=ending.state, code=ending.error_code)
    return ended.job
