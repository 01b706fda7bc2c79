"""Poison jobs: a job during which several instances crashed is given to the operator instead of crashing more."""

from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.engine.context import EngineContext
from genlock.engine.deliver import abandon_delivery


def is_poison(ctx: EngineContext, job: Job) -> bool:
    """Whether `crashes_max` instances crashed while processing the job, so that it must not be tried again.

    An unknown submit only waits, and a notice is tried once: neither can crash instances again and again.
    """
    return (
        job.crash_count >= ctx.rules.crashes_max and job.state is not State.SUBMITTING and job.notice is not Notice.DUE
    )


async def park_poison_job(ctx: EngineContext, job: Job) -> None:
    """Stop processing a poison job and put it on the operator's list."""
    attention = AttentionCode.POISON, f"the worker crashed {job.crash_count} times while processing it"
    if job.delivery is Delivery.SENDING:
        await abandon_delivery(ctx, job, attention)
        return
    # An ended job, whose user has been informed, stays ended: only its late cost is no longer queried.
    await ctx.reschedule(job, after=None, attention=None if job.ended else attention)
    ctx.event(Event.ATTENTION, job, reason=attention[1])
