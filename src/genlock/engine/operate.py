"""What an operator, or a person, can do to a job by hand: the one set of actions for every door."""

from genlock.domain.delivery import WORDS, again
from genlock.domain.errors import NoSuchJob, NotPossible
from genlock.domain.events import Event
from genlock.domain.job import Job, State, Verdict
from genlock.domain.suspicion import is_given_up
from genlock.engine.kit import Kit
from genlock.ports import Ending


async def find(kit: Kit, job_id: int) -> Job:
    job = await kit.store.job(job_id)
    if job is None:
        raise NoSuchJob(f"there is no job {job_id}")
    return job


async def retry(kit: Kit, job_id: int, by: str) -> Job:
    """Do the next step of an unfinished job now instead of later."""
    job = await find(kit, job_id)
    if not await kit.store.retry(job_id):
        if job.lease_owner:
            raise NotPossible(f"job {job_id} is being worked on at this moment")
        raise NotPossible(f"job {job_id} has ended ({job.state}, {job.delivery}); resend it or let it be ordered again")
    kit.event(Event.OPERATOR, job, action="retry", by=by)
    return await find(kit, job_id)


async def resend(kit: Kit, job_id: int, by: str) -> Job:
    """Show an ended job's result again, on new messages, free."""
    job = await find(kit, job_id)
    if not await kit.store.resend(job_id, again(job.parts), job.lease_token):
        raise NotPossible(f"job {job_id} has nothing to resend yet ({job.state}, {job.delivery})")
    kit.event(Event.OPERATOR, job, action="resend", by=by)
    return await find(kit, job_id)


async def show_again(kit: Kit, job_id: int, by: str) -> Job:
    """A person's own resend: free, unless nobody has paid for the result yet. Raises NotEnoughMoney."""
    job = await find(kit, job_id)
    if is_given_up(job.attention):
        raise NotPossible(f"job {job_id}: {job.attention}; only an operator may try again")
    if not job.unpaid:
        return await resend(kit, job_id, by)
    if not await kit.store.resend_paid(job_id, again(job.parts), job.lease_token):
        raise NotPossible(f"job {job_id} is being resent already")
    kit.event(Event.OPERATOR, job, action="resend", by=by)
    return await find(kit, job_id)


async def cancel(kit: Kit, job_id: int, by: str, *, keep: bool = False) -> Job:
    """Stop waiting for a job and give the money back. What the provider bills for it is the operator's loss."""
    job = await find(kit, job_id)
    ending = Ending(job_id=job_id, state=State.CANCELLED, parts=WORDS, error_code="cancelled", error_text=f"by {by}")
    ended = await kit.store.end(ending, kit.lease if keep else None)
    if ended.verdict is not Verdict.WON or ended.job is None:
        raise NotPossible(f"job {job_id} has already ended ({(await find(kit, job_id)).state})")
    kit.event(Event.OPERATOR, job, action="cancel", by=by)
    return ended.job
