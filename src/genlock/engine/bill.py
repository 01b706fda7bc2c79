"""The bill: what a cancelled job's task still costs is the operator's loss, and somebody must ask for it."""

from genlock.domain.errors import ProviderBusy
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.result import Outcome
from genlock.engine.collect import ask, conclude
from genlock.engine.kit import Kit
from genlock.ports import Wait


async def ask_bill(kit: Kit, job: Job) -> None:
    """Ask after the task of a cancelled job until it has ended; at the deadline, for the last time."""
    after = None if job.cost is not None else await _ask(kit, job)
    if job.read_at >= job.deadline_at:
        after = None
    kit.fenced(await kit.store.wait(Wait(job_id=job.id, token=job.lease_token, after=after)), job)


async def _ask(kit: Kit, job: Job) -> float | None:
    """When to ask again, if the task still runs."""
    try:
        report = await ask(kit, job)
    except ProviderBusy as busy:
        return busy.after
    except Exception as error:  # noqa: BLE001 - a query changes nothing: ask again later
        kit.event(Event.POLL_STATE, job, error=type(error).__name__)
    else:
        if report.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
            await conclude(kit, job.id, report, job.correlation)
            return None
    age = (job.read_at - (job.submitted_at or job.created_at)).total_seconds()
    return kit.pace.delay(age, kit.chance.random())
