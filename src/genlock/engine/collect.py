"""Collect: callbacks and polls become results. Both end in `conclude`; the first terminal report wins."""

from dataclasses import replace
from typing import Any

from genlock.domain.delivery import MESSAGE_ONLY, plan
from genlock.domain.errors import ProviderBusy, ProviderError, StoreError
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Job, State, Verdict, hash_secret
from genlock.domain.result import Outcome, Report, settle_report
from genlock.domain.retry import backoff
from genlock.engine.context import EngineContext
from genlock.engine.progress import next_progress_point, show
from genlock.engine.submit import give_up
from genlock.ports import EndJob, JobEnd, NewCallback, Reschedule

#: what a 64-bit id has at the most
_DIGITS_MAX = 18
#: no secret of ours is shorter: anything else in an address is a stranger's, and their bytes are kept as they came
_SECRET_LEAST = 16
#: kept of those who know no secret, as long as an orphan waits
UNAUTHENTICATED_MAX = 1000
_VERDICT_EVENTS = {
    Verdict.WON: Event.JOB_ENDED,
    Verdict.LATE: Event.RESULT_LATE,
    Verdict.CONTRADICTION: Event.RESULT_CONTRADICTION,
    Verdict.CANCELLED: Event.LOSS_RECORDED,
    Verdict.WRONG_TASK: Event.RESULT_WRONG_TASK,
}


async def receive(ctx: EngineContext, provider: str, token: str | None, body: bytes) -> Callback:
    """The door: keep the callback, as it is, before anybody tries to understand it."""
    job_id, secret = read_token(token)
    started = ctx.loop.time()
    callback = await ctx.store.store_callback(provider, job_id, hash_secret(secret), _without(secret, body))
    _say_received(ctx, callback, ctx.loop.time() - started)
    return callback


class TooManyUnauthenticated(Exception):
    """Too many callbacks are waiting that no job vouches for."""


async def check_unauthenticated(ctx: EngineContext, provider: str, token: str | None) -> None:
    """Only so many callbacks are kept of those whom nothing vouches for. Raises TooManyUnauthenticated."""
    job_id, secret = read_token(token)
    if job_id is not None and await ctx.store.is_secret(job_id, provider, hash_secret(secret)):
        return
    if (
        await ctx.store.count_unauthenticated_callbacks(ctx.rules.orphan_expire_seconds, UNAUTHENTICATED_MAX)
        >= UNAUTHENTICATED_MAX
    ):
        raise TooManyUnauthenticated


async def receive_end(ctx: EngineContext, provider: str, token: str | None, body: bytes) -> JobEnd | None:
    """The short way through the door: a callback that ends the job it was sent for is kept in the commit of the end.

    None if it is not such a callback, or cannot be told to be; then it must be kept to be understood later.
    """
    job_id, secret = read_token(token)
    if job_id is None or provider not in ctx.providers:
        return None
    kept = _without(secret, body)
    try:
        report = ctx.providers[provider].read_callback(kept)
        arrival = NewCallback(provider=provider, secret_hash=hash_secret(secret), body=kept.decode())
        if report.outcome not in (Outcome.SUCCESS, Outcome.FAILURE):
            return None
        ending = _ending(job_id, report, arrival=arrival)
        started = ctx.loop.time()
        ended = await ctx.store.end_job(ending, ctx.lease)
        took = ctx.loop.time() - started
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - nothing has happened; the stage says what is wrong with these bytes
        return None
    if ended.callback is None:
        return None
    _say_received(ctx, ended.callback, took)
    _say_parsed(ctx, ended.callback, report)
    _say_verdict(ctx, ending, ended, ended.callback.correlation_id)
    return ended


def _without(secret: str, body: bytes) -> bytes:
    """Providers repeat the address they called. What is kept must not tell how to call us."""
    return body.replace(secret.encode(), b"*" * len(secret)) if len(secret) >= _SECRET_LEAST else body


def read_token(token: str | None) -> tuple[int | None, str]:
    """Job id and secret of a callback address; anything else is nobody's."""
    number, _, secret = (token or "").partition(".")
    if number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX:
        return int(number), secret
    return None, ""


async def digest(ctx: EngineContext, callback: Callback) -> Job | None:
    """Understand a stored callback. Returns the job if this ended it and it is ours to deliver."""
    provider = ctx.providers.get(callback.provider)
    if provider is None:
        await _leave(ctx, callback)
        return None
    try:
        report = provider.read_callback(callback.body)
    except Exception as error:  # noqa: BLE001 - a stranger's bytes: whatever they break, they are kept and shown
        ctx.observer.event(Event.CALLBACK_UNREADABLE, callback.correlation_id, callback=callback.id, error=str(error))
        ctx.observer.count("callbacks", 1, outcome="unreadable")
        await ctx.store.settle_callback(callback.id, InboxState.UNREADABLE, note=str(error)[:500])
        return None
    _say_parsed(ctx, callback, report)
    if callback.job_id is None:
        await _hint(ctx, callback, report)
        return None
    if report.outcome in (Outcome.RUNNING, Outcome.UNKNOWN):
        _say_unknown(ctx, report, callback.correlation_id)
        if report.task_id and await ctx.store.adopt_task(callback.job_id, None, report.task_id):
            # The answer of the create call was lost, or is slower than its task: here is what we wait for.
            ctx.observer.event(Event.SUBMIT_OK, callback.correlation_id, job=callback.job_id, task_id=report.task_id)
        ctx.observer.count("callbacks", 1, outcome=report.outcome)
        await ctx.store.settle_callback(callback.id, InboxState.DONE, report.task_id, report.outcome)
        return None
    return await conclude(ctx, callback.job_id, report, callback.correlation_id, callback_id=callback.id)


async def _leave(ctx: EngineContext, callback: Callback) -> None:
    """Another instance may know this provider: the callback comes due again, but not for ever."""
    note = f"nobody here knows the provider {callback.provider!r}"
    if await ctx.store.expire_callback(callback.id, ctx.rules.unknown_provider_expire_seconds, note):
        ctx.observer.event(Event.ORPHAN_EXPIRED, callback.correlation_id, callback=callback.id, reason=note)


async def _hint(ctx: EngineContext, callback: Callback, report: Report) -> None:
    """Nobody vouches for this callback: it may cause a status query, never an effect."""
    if not report.task_id:
        ctx.observer.count("callbacks", 1, outcome="unreadable")
        await ctx.store.settle_callback(callback.id, InboxState.UNREADABLE, note="no task id")
        return
    job_id = await ctx.store.note_untrusted_callback(callback.id, callback.provider, report.task_id)
    event = Event.ORPHAN_STORED if job_id is None else Event.ORPHAN_MATCHED
    ctx.observer.count("callbacks", 1, outcome="orphan" if job_id is None else "hint")
    ctx.observer.event(event, callback.correlation_id, callback=callback.id, task_id=report.task_id, job=job_id)


async def poll(ctx: EngineContext, job: Job) -> Job | None:
    """Ask the provider about a running task; at the deadline, for the last time."""
    age = (job.read_at - (job.submitted_at or job.created_at)).total_seconds()
    asked = False
    try:
        report = await ask(ctx, job)
    except ProviderBusy as busy:
        ctx.observer.count("provider_errors", 1, provider=job.provider, call="status", reason="ProviderBusy")
        again = Reschedule(job_id=job.id, token=job.lease_token, after=busy.after, failed=None)
    except Exception as error:  # noqa: BLE001 - a query changes nothing: ask again later
        ctx.event(Event.POLL_STATE, job, error=type(error).__name__)
        ctx.observer.count("provider_errors", 1, provider=job.provider, call="status", reason=type(error).__name__)
        after = backoff(job.attempts, ctx.rng.random(), base=2.0, most=60.0)
        again = Reschedule(job_id=job.id, token=job.lease_token, after=after, failed=True)
    else:
        if report.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
            return await conclude(ctx, job.id, report, job.correlation_id, holder=job)
        _say_unknown(ctx, report, job.correlation_id)
        after = ctx.poll_interval.delay(age, ctx.rng.random())
        moment = next_progress_point(ctx, job, age)
        again = Reschedule(job_id=job.id, token=job.lease_token, after=after if moment is None else min(after, moment))
        asked = True
    overdue = (job.read_at - job.deadline_at).total_seconds()
    if overdue >= (0.0 if asked else ctx.rules.last_answer_seconds):
        return await give_up(ctx, job, "deadline", "the provider took too long")
    await show(ctx, job, age)
    ctx.fenced(await ctx.store.reschedule(again), job)
    return None


async def ask(ctx: EngineContext, job: Job) -> Report:
    """What the provider says of the job's own task."""
    assert job.task_id is not None, "only a task can be asked after"
    await ctx.limits.turn(f"status:{job.provider}")
    ctx.event(Event.POLL_TICK, job, task_id=job.task_id)
    report = await ctx.providers[job.provider].status(job.task_id, job)
    if report.task_id not in (None, job.task_id):
        raise ProviderError(f"asked for {job.task_id}, answered for {report.task_id}")
    ctx.event(Event.POLL_STATE, job, word=report.word, outcome=report.outcome)
    return report


def _say_received(ctx: EngineContext, callback: Callback, took: float) -> None:
    ctx.observer.event(
        Event.CALLBACK_RECEIVED,
        callback.correlation_id,
        callback=callback.id,
        job=callback.job_id,
        seconds=round(took, 4),
    )


def _say_parsed(ctx: EngineContext, callback: Callback, report: Report) -> None:
    ctx.observer.event(
        Event.CALLBACK_PARSED, callback.correlation_id, callback=callback.id, task_id=report.task_id, word=report.word
    )


def _say_unknown(ctx: EngineContext, report: Report, correlation_id: str) -> None:
    if report.outcome is Outcome.UNKNOWN:
        ctx.observer.event(Event.UNKNOWN_STATE, correlation_id, word=report.word)
        ctx.observer.count("unknown_states", 1, word=report.word[:40])


async def conclude(
    ctx: EngineContext,
    job_id: int,
    report: Report,
    correlation_id: str,
    *,
    callback_id: int | None = None,
    holder: Job | None = None,
) -> Job | None:
    """A terminal report takes effect. Returns the job if this report ended it, leased to us for delivery.

    `holder` is the job as we held it: then nobody was interrupted by its end.
    """
    ending = _ending(job_id, report, callback_id=callback_id)
    ended = await ctx.store.end_job(ending, ctx.lease)
    _say_verdict(ctx, ending, ended, correlation_id)
    if ended.verdict is Verdict.MISSING and callback_id is not None:
        await ctx.store.settle_callback(callback_id, InboxState.DONE, report.task_id, ended.verdict)
    if ended.job and holder and ended.job.lease_token == holder.lease_token + 1:
        return replace(ended.job, interrupted=False)
    return ended.job


def _ending(job_id: int, report: Report, **by: Any) -> EndJob:
    """What every terminal report comes to, whichever way it came."""
    report = settle_report(report)
    good = report.outcome is Outcome.SUCCESS
    return EndJob(
        job_id=job_id,
        state=State.SUCCEEDED if good else State.FAILED,
        parts=plan(report.pieces) if good else MESSAGE_ONLY,
        task_id=report.task_id,
        error_code="" if good else report.error_code or "failed",
        error_text="" if good else report.error_text[:500],
        cost=report.cost,
        **by,
    )


def _compare_cost(ctx: EngineContext, job: Job | None) -> None:
    """Say if the bill is above what the price was made from: somebody got more than they paid for."""
    paid_for = ctx.paid_for(job) if ctx.paid_for and job else None
    if job and paid_for is not None and job.cost is not None and job.cost > paid_for:
        ctx.event(Event.COST_ABOVE_PRICE, job, model=job.model, cost=job.cost, paid_for=paid_for)


def _say_verdict(ctx: EngineContext, ending: EndJob, ended: JobEnd, correlation_id: str) -> None:
    job_id, verdict = ending.job_id, ended.verdict
    event = _VERDICT_EVENTS.get(verdict, Event.RESULT_DUPLICATE)
    took = None if ended.job is None else (ended.job.read_at - ended.job.created_at).total_seconds()
    ctx.observer.event(
        event, correlation_id, job=job_id, state=ending.state, verdict=verdict, task_id=ending.task_id, seconds=took
    )
    ctx.observer.count("results", 1, verdict=verdict)
    by_callback = ending.arrival is not None or ending.callback_id is not None
    if by_callback:
        ctx.observer.count("callbacks", 1, outcome=verdict)
    if verdict is Verdict.WON:
        ctx.poll_interval.found(by_callback=by_callback)
        _compare_cost(ctx, ended.job)
    if ended.job is None:
        ctx.observer.event(Event.DELIVER_LOCK_SKIP, correlation_id, job=job_id, verdict=verdict)
