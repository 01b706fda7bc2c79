"""Progress: what the person sees while waiting, at a few moments of the expected time. Droppable, never in the way.

Only the holder of a running job's lease shows it. The lease is seen to hold just before the call, and the call is over
`progress_seconds` later. So whoever ends the job from outside knows when the last such edit has come in, and puts the
result once more where one may have been on the wire (see deliver).
"""

from genlock.domain.errors import ChannelError
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.engine.kit import Kit

#: a moment that is missed by more is dropped
LATE_SECONDS = 2.0
#: progress comes not sooner after the start, and not closer together
LEAST_SECONDS = 3.0
#: a store's clock has grains: a job must not come due just before its moment
TICK = 0.01
#: it is never said to be done before it is
MOST = 0.95


def next_moment(kit: Kit, job: Job, age: float) -> float | None:
    """Seconds until progress is to be shown next, for a job that has run for `age` seconds."""
    ahead = [moment for moment in _moments(kit, job) if moment > age]
    return ahead[0] - age + TICK if ahead else None


async def show(kit: Kit, job: Job, age: float) -> None:
    """Show how far a running job is, if its moment has come."""
    if job.placeholder is None or not any(age - LATE_SECONDS < moment <= age for moment in _moments(kit, job)):
        return
    asked = kit.loop.time()
    kit.fenced(await kit.store.renew(job.id, job.lease_token, kit.lease), job)
    expected = _expected(kit, job)
    assert expected is not None
    try:
        until = asked + kit.rules.progress_seconds
        await kit.channels[job.channel].progress(job, min(age / expected, MOST), until)
    except ChannelError as error:
        kit.observer.count("progress", 1, outcome=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - nothing about progress may hold up a job
        kit.event(Event.STAGE_ERROR, job, step="progress", error=repr(error))
    else:
        kit.observer.count("progress", 1, outcome="shown")


def _expected(kit: Kit, job: Job) -> float | None:
    return kit.expected(job) if kit.expected else None


def _moments(kit: Kit, job: Job) -> list[float]:
    """The job's moments, in seconds after its start."""
    expected = _expected(kit, job)
    if not expected:
        return []
    moments: list[float] = []
    for fraction in kit.channels[job.channel].moments(job):
        seconds = fraction * expected
        if seconds - (moments[-1] if moments else 0.0) >= LEAST_SECONDS:
            moments.append(seconds)
    return moments
