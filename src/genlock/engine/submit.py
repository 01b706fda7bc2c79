"""Submit: create the provider's task of a queued job. The intent is committed before the call, which is made once."""

import asyncio
from dataclasses import replace

from genlock.domain.errors import (
    AddressChanged,
    ChannelError,
    ProviderBusy,
    ProviderError,
    RecipientUnreachable,
    StoreError,
    SubmitRefused,
    TaskIdConflict,
)
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Job, State, hash_secret
from genlock.domain.offer import Offer
from genlock.domain.retry import backoff
from genlock.domain.task import Handle, TaskOrder
from genlock.engine.context import EngineContext, UnknownSubmit
from genlock.engine.failover import choose_offer, is_full, leave_busy, leave_refused
from genlock.engine.file_storage import NoReadableStorage
from genlock.engine.input_files import FileUrls
from genlock.engine.limits import PERMITS_MISSED_MAX, Permit
from genlock.engine.progress import next_progress_point

#: how long an order waits, on average, before it asks again whether the provider may work on one more
SLOT_SECONDS = 3.0
#: the longest pause before an order's files are passed on to a provider again
FILES_SECONDS_MAX = 60.0


async def submit(ctx: EngineContext, job: Job) -> Job | None:
    """Take a job from queued to running. Returns it if it ended here and its message must be delivered."""
    if _is_too_late(ctx, job):
        return await _expire_queued(ctx, job)
    started = ctx.loop.time()
    try:
        offer, files = await _choose(ctx, job)
    except _NoProvider as none:
        return await ctx.end_job(job, State.FAILED, code=none.code, text=none.text)
    except ProviderError:
        await ctx.reschedule(job, after=backoff(job.attempts, ctx.rng.random(), most=FILES_SECONDS_MAX), failed=True)
        return None
    if _is_too_late(ctx, job, ctx.loop.time() - started):
        return await _expire_queued(ctx, job)  # passing on the files took too long
    return await _submit_order(ctx, TaskOrder(job=job, offer=offer, files=files))


def _is_too_late(ctx: EngineContext, job: Job, since_read: float = 0.0) -> bool:
    """Whether too little time is left until the deadline to start the order: a result after it is free.

    Otherwise a full queue, in which orders wait almost until their deadlines, would make most results free.
    """
    expected = (ctx.expected(job) if ctx.expected else None) or 0.0
    whole = (job.deadline_at - job.created_at).total_seconds()
    left = (job.deadline_at - job.read_at).total_seconds() - since_read
    return left <= min(ctx.rules.start_reserve * expected, whole / 2)


async def _expire_queued(ctx: EngineContext, job: Job) -> Job | None:
    return await expire(ctx, job, "deadline", "the order waited too long to be started")


async def _submit_order(ctx: EngineContext, order: TaskOrder) -> Job | None:
    """Call the offer's provider once, after the intent is committed; or reschedule the job if it may not be now."""
    job, offer = order.job, order.offer
    try:
        permit = await _acquire(ctx, offer.provider, is_new=job.read_at == job.created_at)
    except ProviderBusy as busy:
        await ctx.reschedule(job, after=busy.after, failed=None)
        return None
    secret = ctx.make_secret()
    try:
        placeholder = None if job.placeholder else await _create_placeholder(ctx, job)
    except RecipientUnreachable as unreachable:
        # Nothing could be shown, nor charged: without this, blocking the bot would cost only the operator.
        return await ctx.end_job(job, State.FAILED, code="user_unreachable", text=unreachable.reason[:500])
    if not await ctx.begin_submit(order, hash_secret(secret), placeholder):
        await ctx.reschedule(job, after=_slot_wait(ctx, offer.provider), failed=None)
        return None
    job = job if job.provider == offer.provider else replace(job, provider=offer.provider)
    if permit.missed and job.placeholder and job.attempts < PERMITS_MISSED_MAX:
        # The commit took too long for the permit. The provider was not called, so the job may wait for another one.
        await ctx.reschedule(job, after=0.0, state=State.QUEUED, failed=True)
        return None
    ctx.event(Event.SUBMIT_START, job, provider=job.provider)
    return await _create_task(ctx, replace(order, job=job, callback_url=_callback_url(ctx, job, secret)), secret)


class _NoProvider(Exception):
    """No provider is left that could make the order."""

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text


async def _choose(ctx: EngineContext, job: Job) -> tuple[Offer, FileUrls]:
    """Return the offer for the next attempt, and the URLs at which its provider reads the order's files.

    A provider that cannot get the files is passed over. Raises ProviderError if none can get them for now, and
    _NoProvider if none is left, or if none could get them for long, or ever.
    """
    without: set[str] = set()
    error: ProviderError | None = None
    while (offer := await choose_offer(ctx, job, without)) is not None:
        if ctx.input_files is None:
            return offer, ()
        try:
            return offer, await ctx.input_files.prepare(job, offer.provider)
        except ProviderError as failure:
            ctx.event(Event.STAGE_ERROR, job, step="files", provider=offer.provider, error=str(failure))
            _count_error(ctx, offer.provider, "upload", type(failure).__name__)
            without.add(offer.provider)
            error = failure if error is None or isinstance(error, NoReadableStorage) else error
    if error is None:
        raise _NoProvider("model_unavailable", "no provider is left to ask")
    if job.attempts + 1 >= ctx.rules.stage_attempts or isinstance(error, NoReadableStorage):
        raise _NoProvider("file_unreachable", ctx.mask(f"no provider got the files: {error}")[:500])
    raise error


async def _acquire(ctx: EngineContext, provider: str, *, is_new: bool) -> Permit:
    """Wait for a permit of the create call. Raises ProviderBusy if none is near, or the provider has no free slot."""
    if await is_full(ctx, provider):
        raise ProviderBusy(_slot_wait(ctx, provider), "it works on as many tasks as it may")
    return await ctx.limits.acquire(f"create:{provider}", is_new=is_new)


def _slot_wait(ctx: EngineContext, provider: str) -> float:
    """Return how long an order waits for a slot: a random time, and longer if many orders wait."""
    return max(SLOT_SECONDS * (0.5 + ctx.rng.random()), ctx.limits.slot_wait(provider))


async def _create_placeholder(ctx: EngineContext, job: Job) -> str | None:
    """Send the message that will become the result. If that fails for now, the deliver stage tries again.

    Raises RecipientUnreachable.
    """
    channel = ctx.channels[job.channel]
    try:
        try:
            return await channel.create_placeholder(job, 0)
        except AddressChanged as change:
            return await channel.create_placeholder(await ctx.change_address(job, change.address, job.parts), 0)
    except RecipientUnreachable:
        raise
    except ChannelError as error:
        ctx.event(Event.DELIVER_FAIL, job, step="create_placeholder", reason=type(error).__name__)
        return None


def _callback_url(ctx: EngineContext, job: Job, secret: str) -> str | None:
    return f"{ctx.public_url}/callbacks/{job.provider}/{job.id}.{secret}" if ctx.public_url else None


async def _create_task(ctx: EngineContext, order: TaskOrder, secret: str) -> Job | None:
    job, started = order.job, ctx.loop.time()
    try:
        handle = await ctx.providers[job.provider].create(order)
    except SubmitRefused as refused:
        ctx.event(Event.SUBMIT_REFUSED, job, code=refused.code)
        _count_error(ctx, job.provider, "create", refused.code)
        if await leave_refused(ctx, job, refused.code):
            return None
        return await ctx.end_job(job, State.FAILED, code=refused.code, text=refused.text.replace(secret, "***"))
    except ProviderBusy as busy:
        ctx.event(Event.SUBMIT_BUSY, job, after=busy.after)
        _count_error(ctx, job.provider, "create", "ProviderBusy")
        if await leave_busy(ctx, job, busy):
            return None
        await ctx.reschedule(job, after=busy.after, state=State.QUEUED, failed=None)
        return None
    except Exception as error:  # noqa: BLE001 - whatever failed, the provider may have accepted: never call again
        await _wait_for_callback(ctx, job, type(error).__name__)
        await ctx.breakers.failed(job.provider, job.model, "submit_unknown")
        return None
    ctx.event(Event.SUBMIT_OK, job, task_id=handle.task_id, seconds=round(ctx.loop.time() - started, 3))
    await _store_handle(ctx, job, secret, handle)
    await ctx.breakers.accepted(job.provider)
    return None


def _count_error(ctx: EngineContext, provider: str, call: str, reason: str) -> None:
    ctx.observer.count("provider_errors", 1, provider=provider, call=call, reason=reason)


async def _wait_for_callback(ctx: EngineContext, job: Job, reason: str, **fields: str) -> None:
    """Start the grace period of a submit whose outcome is unknown."""
    ctx.event(Event.SUBMIT_UNKNOWN, job, reason=reason, **fields)
    ctx.observer.count("submits_unknown", 1, provider=job.provider)
    _count_error(ctx, job.provider, "create", reason)
    await ctx.reschedule(job, after=ctx.rules.grace_seconds, grace=True)


async def _store_handle(ctx: EngineContext, job: Job, secret: str, handle: Handle) -> None:
    """Store the handle. Only it finds a task that is billed, so a failing store is retried without end."""
    task_id, details = handle.task_id, handle.details
    while True:
        try:
            first_poll = _first_poll(ctx, job)
            if not await ctx.store.mark_submitted(job.id, job.lease_token, task_id, first_poll, details):
                # The callback was faster, the user cancelled, or this instance paused and lost its lease.
                adopted = await ctx.store.adopt_task(job.id, hash_secret(secret), task_id, details)
                ctx.event(Event.LEASE_LOST, job, task_id=task_id, adopted=adopted)
        except TaskIdConflict as conflict:
            # The provider returned the id of another job's task: its reports may be about that job.
            await _wait_for_callback(ctx, job, type(conflict).__name__, task_id=task_id)
            return
        except StoreError as error:
            ctx.event(Event.STAGE_ERROR, job, error=str(error), task_id=task_id)
            await asyncio.sleep(ctx.rules.claim_seconds)
        else:
            return


def _first_poll(ctx: EngineContext, job: Job) -> float:
    """Return the seconds until the first status query, or the first progress edit if that is sooner."""
    after = ctx.poll_interval(job.provider).delay(0.0, ctx.rng.random())
    point = next_progress_point(ctx, job, 0.0)
    return after if point is None else min(after, point)


async def settle_unknown(ctx: EngineContext, job: Job) -> Job | None:
    """Handle a submit that may have been accepted: wait for its callback, then apply the configured policy."""
    if job.grace_until is None:
        ctx.event(Event.SUBMIT_UNKNOWN, job, reason="taken over")
        await ctx.reschedule(job, after=ctx.rules.grace_seconds, grace=True)
        return None
    remaining = (job.grace_until - job.read_at).total_seconds()
    if remaining > 0:
        await ctx.reschedule(job, after=remaining, grace=True)
        return None
    if await _adopt_found(ctx, job):
        return None
    if ctx.rules.unknown_submit is UnknownSubmit.PARK:
        ctx.event(Event.ATTENTION, job, reason="submit_unknown")
        await ctx.reschedule(job, after=None, attention=(AttentionCode.PARKED, "submit_unknown"))
        return None
    return await expire(ctx, job, "submit_unknown", "the provider never confirmed that it accepted the order")


async def _adopt_found(ctx: EngineContext, job: Job) -> bool:
    """Ask the provider for the task of a lost answer. It is adopted only if no other task could be meant."""
    order = await ctx.sent_order(job)
    try:
        found = await ctx.providers[job.provider].find(order, job.submitted_at or job.created_at)
    except ProviderError as error:
        ctx.event(Event.STAGE_ERROR, job, step="find", error=type(error).__name__)
        return False
    handles = {handle.task_id: handle for handle in found}
    if not handles:
        return False
    known = await ctx.store.known_tasks(job.provider, list(handles))
    left = [handle for task_id, handle in handles.items() if task_id not in known]
    if len(left) != 1:
        return False
    adopted = await ctx.store.adopt_task(job.id, None, left[0].task_id, left[0].details, job.attempt)
    ctx.event(Event.SUBMIT_OK, job, task_id=left[0].task_id, adopted=adopted)
    return adopted


async def expire(ctx: EngineContext, job: Job, code: str, text: str) -> Job | None:
    """Stop waiting: release the hold and inform the user. A result that still arrives is delivered free of charge."""
    return await ctx.end_job(job, State.EXPIRED, code=code, text=text)
