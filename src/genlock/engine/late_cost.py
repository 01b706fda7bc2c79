"""The late cost of cancelled jobs: what their tasks still cost is queried and recorded as the operator's loss."""

from genlock.domain.errors import ProviderBusy
from genlock.domain.events import Event
from genlock.domain.job import Job, State
from genlock.domain.result import Outcome
from genlock.domain.task import CancelOutcome, handle_of
from genlock.engine.collect import apply_report, query_status
from genlock.engine.context import EngineContext

#: how long after a job was cancelled its provider is asked to end the task; asking again does no harm
CANCEL_SECONDS = 60.0


async def query_late_cost(ctx: EngineContext, job: Job) -> float | None:
    """Query the task of a cancelled job until it has ended; at the deadline for the last time.

    Returns the seconds until the next query, or None if there is none.
    """
    if job.state is not State.CANCELLED or job.task_id is None or job.cost is not None:
        return None
    after = await _query(ctx, job)
    return None if job.read_at >= job.deadline_at else after


async def _cancel(ctx: EngineContext, job: Job) -> None:
    """Ask the provider to end the task, shortly after the cancellation: one that ends early may not be billed."""
    if job.ended_at is None or (job.read_at - job.ended_at).total_seconds() > CANCEL_SECONDS:
        return
    outcome = await ctx.providers[job.provider].cancel(handle_of(job), ctx.order_of(job))
    if outcome is not CancelOutcome.UNKNOWN:
        ctx.event(Event.TASK_CANCELLED, job, task_id=job.task_id, outcome=outcome)


async def _query(ctx: EngineContext, job: Job) -> float | None:
    """Return the seconds until the next query, or None if the task has ended."""
    try:
        await _cancel(ctx, job)
        report = await query_status(ctx, job)
    except ProviderBusy as busy:
        return busy.after
    except Exception as error:  # noqa: BLE001 - a query changes nothing, so it can be repeated
        ctx.event(Event.POLL_STATE, job, error=type(error).__name__)
    else:
        if report.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
            await apply_report(ctx, job.id, job.provider, report, job.correlation_id, attempt=job.attempt)
            return None
    age = (job.read_at - (job.submitted_at or job.created_at)).total_seconds()
    return ctx.poll_interval(job.provider).delay(age, ctx.rng.random())
