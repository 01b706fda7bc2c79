"""Collect: callbacks and status answers become results, both in `apply_report`; the first terminal report wins."""

from typing import Any

from genlock.domain.attempt import ELSEWHERE, may_fail_over
from genlock.domain.delivery import MESSAGE_ONLY, plan
from genlock.domain.errors import ProviderBusy, ProviderError, StoreError
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Job, State, Verdict, hash_secret
from genlock.domain.result import Outcome, Report, settle_report
from genlock.domain.retry import backoff
from genlock.domain.task import handle_of
from genlock.engine.context import EngineContext
from genlock.engine.failover import leave_failed
from genlock.engine.progress import next_progress_point, show_progress
from genlock.engine.submit import expire
from genlock.ports import EndJob, JobEnd, NewCallback

#: a 64-bit id has at most this many decimal digits that always fit
_DIGITS_MAX = 18
#: our secrets are never shorter; a shorter one in a URL is not ours, and its body is stored unchanged
_SECRET_LENGTH_MIN = 16
#: entries of jobs that cost more than was charged for, by model; the statistics count them
COST_ABOVE_PRICE = "cost_above_price"
_TERMINAL = (Outcome.SUCCESS, Outcome.FAILURE)
_VERDICT_EVENTS = {
    Verdict.WON: Event.JOB_ENDED,
    Verdict.LATE: Event.RESULT_LATE,
    Verdict.CONTRADICTION: Event.RESULT_CONTRADICTION,
    Verdict.CANCELLED: Event.LOSS_RECORDED,
    Verdict.ABANDONED: Event.ATTEMPT_REPORT_LATE,
    Verdict.WRONG_TASK: Event.RESULT_WRONG_TASK,
}


# receiving callbacks


async def store_callback(ctx: EngineContext, provider: str, token: str | None, body: bytes) -> Callback:
    """Store the raw callback before parsing it, so that nothing received is ever lost."""
    job_id, secret = read_token(token)
    started = ctx.loop.time()
    callback = await ctx.store.store_callback(provider, job_id, hash_secret(secret), _mask_secret(secret, body))
    _report_received(ctx, callback, ctx.loop.time() - started)
    return callback


async def end_by_callback(ctx: EngineContext, provider: str, token: str | None, body: bytes) -> JobEnd | None:
    """Store a callback and end its job in one commit, where the body is terminal and the secret is the job's.

    Returns None for any other callback, having changed nothing: it must be stored with `store_callback`.
    """
    job_id, secret = read_token(token)
    if job_id is None or provider not in ctx.providers:
        return None
    masked = _mask_secret(secret, body)
    try:
        report = ctx.providers[provider].read_callback(masked)
        arrival = NewCallback(provider=provider, secret_hash=hash_secret(secret), body=masked.decode())
        if report.outcome not in _TERMINAL or may_fail_over(report):
            return None
        ending = _end_by(job_id, report, arrival=arrival)
        started = ctx.loop.time()
        ended = await ctx.store.end_job(ending, ctx.lease)
        took = ctx.loop.time() - started
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - nothing was written; process_callback reports what is wrong with the body
        return None
    if ended.callback is None:
        return None
    _report_received(ctx, ended.callback, took)
    _report_parsed(ctx, ended.callback, report)
    _report_verdict(ctx, provider, ending, ended, ended.callback.correlation_id)
    await _follow_end(ctx, provider, ended)
    return ended


def _mask_secret(secret: str, body: bytes) -> bytes:
    """Mask our secret: providers echo the callback URL in the body, and stored bodies must not contain it."""
    return body.replace(secret.encode(), b"*" * len(secret)) if len(secret) >= _SECRET_LENGTH_MIN else body


def read_token(token: str | None) -> tuple[int | None, str]:
    """Split the last part of a callback URL into job id and secret; (None, "") if it is not one of ours."""
    number, _, secret = (token or "").partition(".")
    if number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX:
        return int(number), secret
    return None, ""


# processing stored callbacks


async def process_callback(ctx: EngineContext, callback: Callback) -> Job | None:
    """Parse a stored callback and apply it. Returns the job if this ended it, leased to us for delivery."""
    provider = ctx.providers.get(callback.provider)
    if provider is None:
        await _defer_callback(ctx, callback)
        return None
    try:
        report = provider.read_callback(callback.body)
    except Exception as error:  # noqa: BLE001 - the body comes from outside: after any error it is stored for the operator
        ctx.observer.event(Event.CALLBACK_UNREADABLE, callback.correlation_id, callback=callback.id, error=str(error))
        ctx.observer.count("callbacks", 1, outcome="unreadable")
        await ctx.store.settle_callback(callback.id, InboxState.UNREADABLE, note=str(error)[:500])
        return None
    _report_parsed(ctx, callback, report)
    if callback.job_id is None:
        await _note_untrusted(ctx, callback, report)
        return None
    if report.outcome not in _TERMINAL:
        await _settle_running(ctx, callback, callback.job_id, report)
        return None
    if may_fail_over(report):
        job = await ctx.store.job(callback.job_id)
        if job is not None and await leave_failed(ctx, job, callback.attempt, report, callback_id=callback.id):
            ctx.observer.count("callbacks", 1, outcome="failed_over")
            return None
    return await apply_report(
        ctx,
        callback.job_id,
        callback.provider,
        report,
        callback.correlation_id,
        callback_id=callback.id,
        attempt=callback.attempt,
    )


async def _settle_running(ctx: EngineContext, callback: Callback, job_id: int, report: Report) -> None:
    """Settle a callback that does not end its job, and take from it a task id that we did not know."""
    _report_unknown_state(ctx, report, callback.correlation_id)
    if report.task_id and await ctx.store.adopt_task(job_id, None, report.task_id, attempt=callback.attempt):
        # The create call's answer was lost, or arrives after the task's first callback.
        ctx.observer.event(Event.SUBMIT_OK, callback.correlation_id, job=job_id, task_id=report.task_id)
    if report.incomplete and report.task_id:
        await _note_untrusted(ctx, callback, report)  # it makes the job due for a status query
        return
    ctx.observer.count("callbacks", 1, outcome=report.outcome)
    await ctx.store.settle_callback(callback.id, InboxState.DONE, report.task_id, report.outcome)


async def _defer_callback(ctx: EngineContext, callback: Callback) -> None:
    """Leave a callback to an instance that has its provider configured; expire it if none took it in time."""
    note = f"no instance has the provider {callback.provider!r} configured"
    if await ctx.store.expire_callback(callback.id, ctx.rules.unknown_provider_expire_seconds, note):
        ctx.observer.event(Event.ORPHAN_EXPIRED, callback.correlation_id, callback=callback.id, reason=note)


async def _note_untrusted(ctx: EngineContext, callback: Callback, report: Report) -> None:
    """Handle a callback without a job's secret: it may cause a status query of its task, and nothing else."""
    if not report.task_id:
        ctx.observer.count("callbacks", 1, outcome="unreadable")
        await ctx.store.settle_callback(callback.id, InboxState.UNREADABLE, note="no task id")
        return
    job_id = await ctx.store.note_untrusted_callback(callback.id, callback.provider, report.task_id)
    event = Event.ORPHAN_STORED if job_id is None else Event.ORPHAN_MATCHED
    ctx.observer.count("callbacks", 1, outcome="orphan" if job_id is None else "untrusted")
    ctx.observer.event(event, callback.correlation_id, callback=callback.id, task_id=report.task_id, job=job_id)


# polling


async def poll(ctx: EngineContext, job: Job) -> Job | None:
    """Query the status of a running task. Past the deadline, expire the job once the provider has answered."""
    age = (job.read_at - (job.submitted_at or job.created_at)).total_seconds()
    answered, failed = False, None
    try:
        report = await query_status(ctx, job)
    except ProviderBusy as busy:
        _count_error(ctx, job, "ProviderBusy")
        after = busy.after
    except Exception as error:  # noqa: BLE001 - a query changes nothing, so it can be repeated
        ctx.event(Event.POLL_STATE, job, error=type(error).__name__)
        _count_error(ctx, job, type(error).__name__)
        after, failed = backoff(job.attempts, ctx.rng.random(), base=2.0, most=60.0), True
    else:
        if report.outcome in _TERMINAL:
            if await leave_failed(ctx, job, job.attempt, report):
                return None
            return await apply_report(ctx, job.id, job.provider, report, job.correlation_id, attempt=job.attempt)
        _report_unknown_state(ctx, report, job.correlation_id)
        after = ctx.poll_interval(job.provider).delay(age, ctx.rng.random())
        point = next_progress_point(ctx, job, age)
        after = after if point is None else min(after, point)
        answered, failed = True, False
    overdue = (job.read_at - job.deadline_at).total_seconds()
    if overdue >= (0.0 if answered else ctx.rules.last_answer_seconds):
        return await expire(ctx, job, "deadline", "the provider took too long")
    settled = await show_progress(ctx, job, age)
    await ctx.reschedule(job, after=after, failed=failed, progress_settled=settled)
    return None


async def query_status(ctx: EngineContext, job: Job) -> Report:
    """Return what the provider reports about the job's task. Raises ProviderBusy and ProviderError."""
    assert job.task_id is not None, "the job has no task to query"
    await ctx.limits.acquire(f"status:{job.provider}")
    ctx.event(Event.POLL_TICK, job, task_id=job.task_id)
    report = await ctx.providers[job.provider].status(handle_of(job), ctx.order_of(job))
    if report.task_id not in (None, job.task_id):
        raise ProviderError(f"asked for {job.task_id}, answered for {report.task_id}")
    ctx.event(Event.POLL_STATE, job, word=report.word, outcome=report.outcome)
    return report


def _count_error(ctx: EngineContext, job: Job, reason: str) -> None:
    ctx.observer.count("provider_errors", 1, provider=job.provider, call="status", reason=reason)


# applying terminal reports


async def apply_report(
    ctx: EngineContext,
    job_id: int,
    provider: str,
    report: Report,
    correlation_id: str,
    *,
    callback_id: int | None = None,
    attempt: int | None = None,
) -> Job | None:
    """End a job by a terminal report. Returns the job if this report ended it, leased to us for delivery."""
    ending = _end_by(job_id, report, callback_id=callback_id, attempt=attempt)
    ended = await ctx.store.end_job(ending, ctx.lease)
    _report_verdict(ctx, provider, ending, ended, correlation_id)
    await _follow_end(ctx, provider, ended)
    if ended.verdict is Verdict.MISSING and callback_id is not None:
        await ctx.store.settle_callback(callback_id, InboxState.DONE, report.task_id, ended.verdict)
    return ended.job


def _end_by(job_id: int, report: Report, **source: Any) -> EndJob:
    """Make the write that a terminal report leads to, from a callback or a poll alike."""
    report = settle_report(report)
    succeeded = report.outcome is Outcome.SUCCESS
    return EndJob(
        job_id=job_id,
        state=State.SUCCEEDED if succeeded else State.FAILED,
        parts=plan(report.pieces) if succeeded else MESSAGE_ONLY,
        task_id=report.task_id,
        error_code="" if succeeded else report.error_code or "failed",
        error_text="" if succeeded else report.error_text[:500],
        cost=report.cost,
        **source,
    )


# events and counters


def _report_received(ctx: EngineContext, callback: Callback, seconds: float) -> None:
    ctx.observer.event(
        Event.CALLBACK_RECEIVED,
        callback.correlation_id,
        callback=callback.id,
        job=callback.job_id,
        seconds=round(seconds, 4),
    )


def _report_parsed(ctx: EngineContext, callback: Callback, report: Report) -> None:
    ctx.observer.event(
        Event.CALLBACK_PARSED, callback.correlation_id, callback=callback.id, task_id=report.task_id, word=report.word
    )


def _report_unknown_state(ctx: EngineContext, report: Report, correlation_id: str) -> None:
    if report.outcome is Outcome.UNKNOWN:
        ctx.observer.event(Event.UNKNOWN_STATE, correlation_id, word=report.word)
        ctx.observer.count("unknown_states", 1, word=report.word[:40])


def _report_verdict(ctx: EngineContext, provider: str, ending: EndJob, ended: JobEnd, correlation_id: str) -> None:
    job_id, verdict = ending.job_id, ended.verdict
    event = _VERDICT_EVENTS.get(verdict, Event.RESULT_DUPLICATE)
    took = None if ended.job is None else (ended.job.read_at - ended.job.created_at).total_seconds()
    ctx.observer.event(
        event, correlation_id, job=job_id, state=ending.state, verdict=verdict, task_id=ending.task_id, seconds=took
    )
    ctx.observer.count("results", 1, verdict=verdict)
    if verdict is Verdict.LATE and ended.job and ended.job.state is State.FAILED:
        ctx.observer.event(Event.RESULT_CONTRADICTION, correlation_id, job=job_id, state=ending.state, verdict=verdict)
    by_callback = ending.arrival is not None or ending.callback_id is not None
    if by_callback:
        ctx.observer.count("callbacks", 1, outcome=verdict)
    if verdict is Verdict.WON:
        ctx.poll_interval(provider).record_result(by_callback=by_callback)
    if ended.job is None:
        ctx.observer.event(Event.DELIVER_LOCK_SKIP, correlation_id, job=job_id, verdict=verdict)


async def _follow_end(ctx: EngineContext, provider: str, ended: JobEnd) -> None:
    """Count the end for the provider's breaker, and compare its cost with the price."""
    job = ended.job
    if job is not None and ended.verdict is Verdict.WON:
        if job.state is State.SUCCEEDED:
            await ctx.breakers.succeeded(provider, job.model)
        elif job.error_code in ELSEWHERE:
            await ctx.breakers.failed(provider, job.model, job.error_code)
    await _compare_cost(ctx, ended)


async def _compare_cost(ctx: EngineContext, ended: JobEnd) -> None:
    """Report a cost above the one the price was calculated from, and record it for the alarm: one entry per model."""
    job = ended.job if ended.verdict is Verdict.WON else None
    paid_for = ctx.paid_for(job) if ctx.paid_for and job else None
    if job is None or paid_for is None or job.cost is None or job.cost <= paid_for:
        return
    ctx.event(Event.COST_ABOVE_PRICE, job, model=job.model, cost=job.cost, paid_for=paid_for)
    try:
        await ctx.store.kv_put(f"{COST_ABOVE_PRICE}:{job.model}", str(job.id))
    except StoreError as error:  # the result is shown all the same; the next such bill raises the alarm
        ctx.event(Event.STAGE_ERROR, job, step="compare cost", error=type(error).__name__)
