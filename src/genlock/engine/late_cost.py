"""The bill: what a cancelled job's task still costs is the operator's loss, and somebody must ask for it."""

from genlock.domain.errors import ProviderBusy
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.result import Outcome
from genlock.engine.collect import ask, conclude
from genlock.engine.context import EngineContext
from genlock.ports import Reschedule


async def query_late_cost(ctx: EngineContext, job: Job) -> None:
    """Ask after the task of a cancelled job until it has ended; at the deadline, for the last time."""
    after = None if job.cost is not None else await _ask(ctx, job)
    if job.read_at >= job.deadline_at:
        after = None
    ctx.fenced(await ctx.store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=after)), job)


async def _ask(ctx: EngineContext, job: Job) -> float | None:
    """When to ask again, if the task still runs."""
    try:
        report = await ask(ctx, job)
    except ProviderBusy as busy:
        return busy.after
    except Exception as error:  # noqa: BLE001 - a query changes nothing: ask again later
        ctx.event(Event.POLL_STATE, job, error=type(error).__name__)
    else:
        if report.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
            await conclude(ctx, job.id, report, job.correlation_id)
            return None
    age = (job.read_at - (job.submitted_at or job.created_at)).total_seconds()
    return ctx.poll_interval.delay(age, ctx.rng.random())
