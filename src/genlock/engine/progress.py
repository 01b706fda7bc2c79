"""Progress: edits of the placeholder at a few points of the expected time. They may be dropped and never delay a job.

Only the holder of a running job's lease shows progress. The statement that renews its lease also records in the job the
message that is edited; the statement that releases the lease clears the record, but only if the channel has answered.
So whichever instance ends the job sees whether an edit may still take effect, and puts the end again (see
put_again.py).
"""

from genlock.domain.errors import ChannelError, ChannelOutcomeUnknown
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.engine.context import EngineContext

#: a progress point missed by more than this is dropped
LATE_SECONDS = 2.0
#: before the first progress point, and between two of them
SPACING_SECONDS_MIN = 3.0
#: the store's clock has a resolution: a job must not become due just before its progress point
TICK = 0.01
#: the largest fraction shown: a running job is never shown as complete
FRACTION_MAX = 0.95


def next_progress_point(ctx: EngineContext, job: Job, age: float) -> float | None:
    """Return the seconds until the next progress edit of a job that has run for `age` seconds, or None."""
    ahead = [point for point in _progress_points(ctx, job) if point > age]
    return ahead[0] - age + TICK if ahead else None


async def show_progress(ctx: EngineContext, job: Job, age: float) -> bool:
    """Show how far a running job is, if one of its progress points has just been reached.

    Returns whether no progress edit of the job is on its way, neither this one nor an earlier one.
    """
    settled = job.progress_message is None
    if job.placeholder is None or not any(age - LATE_SECONDS < point <= age for point in _progress_points(ctx, job)):
        return settled
    until = ctx.loop.time() + ctx.rules.progress_seconds
    await ctx.begin_progress(job)
    return await _edit(ctx, job, age, until) and settled


async def _edit(ctx: EngineContext, job: Job, age: float, until: float) -> bool:
    """Make the edit. Returns whether its outcome is known, so that it cannot take effect later."""
    expected = _expected(ctx, job)
    assert expected is not None
    try:
        await ctx.channels[job.channel].progress(job, min(age / expected, FRACTION_MAX), until)
    except ChannelError as error:
        ctx.observer.count("progress", 1, outcome=type(error).__name__)
        return not isinstance(error, ChannelOutcomeUnknown)
    except Exception as error:  # noqa: BLE001 - a failing progress edit must not delay the job
        ctx.event(Event.STAGE_ERROR, job, step="progress", error=repr(error))
        return False
    ctx.observer.count("progress", 1, outcome="shown")
    return True


def _expected(ctx: EngineContext, job: Job) -> float | None:
    return ctx.expected(job) if ctx.expected else None


def _progress_points(ctx: EngineContext, job: Job) -> list[float]:
    """Return the job's progress points in seconds after its start."""
    expected = _expected(ctx, job)
    if not expected:
        return []
    points: list[float] = []
    for fraction in ctx.channels[job.channel].progress_points(job):
        seconds = fraction * expected
        if seconds - (points[-1] if points else 0.0) >= SPACING_SECONDS_MIN:
            points.append(seconds)
    return points
