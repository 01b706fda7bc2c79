"""Progress: what the person sees while waiting, at a few moments of the expected time. Droppable, never in the way.

Only the holder of a running job's lease shows it. The lease is seen to hold just before the call, and the call is over
`progress_seconds` later. So whoever ends the job from outside knows when the last such edit has come in, and puts the
result once more where one may have been on the wire (see deliver).
"""

from genlock.domain.errors import ChannelError
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.engine.context import EngineContext

#: a moment that is missed by more is dropped
LATE_SECONDS = 2.0
#: progress comes not sooner after the start, and not closer together
LEAST_SECONDS = 3.0
#: a store's clock has grains: a job must not come due just before its moment
TICK = 0.01
#: it is never said to be done before it is
MOST = 0.95


def next_progress_point(ctx: EngineContext, job: Job, age: float) -> float | None:
    """Seconds until progress is to be shown next, for a job that has run for `age` seconds."""
    ahead = [moment for moment in _progress_points(ctx, job) if moment > age]
    return ahead[0] - age + TICK if ahead else None


async def show(ctx: EngineContext, job: Job, age: float) -> None:
    """Show how far a running job is, if its moment has come."""
    if job.placeholder is None or not any(age - LATE_SECONDS < moment <= age for moment in _progress_points(ctx, job)):
        return
    asked = ctx.loop.time()
    ctx.fenced(await ctx.store.renew(job.id, job.lease_token, ctx.lease), job)
    expected = _expected(ctx, job)
    assert expected is not None
    try:
        until = asked + ctx.rules.progress_seconds
        await ctx.channels[job.channel].progress(job, min(age / expected, MOST), until)
    except ChannelError as error:
        ctx.observer.count("progress", 1, outcome=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - nothing about progress may hold up a job
        ctx.event(Event.STAGE_ERROR, job, step="progress", error=repr(error))
    else:
        ctx.observer.count("progress", 1, outcome="shown")


def _expected(ctx: EngineContext, job: Job) -> float | None:
    return ctx.expected(job) if ctx.expected else None


def _progress_points(ctx: EngineContext, job: Job) -> list[float]:
    """The job's moments, in seconds after its start."""
    expected = _expected(ctx, job)
    if not expected:
        return []
    progress_points: list[float] = []
    for fraction in ctx.channels[job.channel].progress_points(job):
        seconds = fraction * expected
        if seconds - (progress_points[-1] if progress_points else 0.0) >= LEAST_SECONDS:
            progress_points.append(seconds)
    return progress_points
