"""Submit: hand a queued job to its provider. The intent is committed before the call, the call is made once."""

import asyncio

from genlock.domain.delivery import WORDS
from genlock.domain.errors import ChannelError, ChatMoved, ProviderBusy, StoreUnavailable, SubmitRefused, TaskTaken
from genlock.domain.events import Event
from genlock.domain.job import Job, State, hash_secret
from genlock.engine.deliver import move
from genlock.engine.kit import Kit, UnknownSubmit
from genlock.engine.limits import TURNS_MISSED_MAX
from genlock.engine.progress import next_moment
from genlock.ports import Ended, Ending, Wait


async def submit(kit: Kit, job: Job) -> Job | None:
    """From queued to running. Returns the job if it ended here and wants delivering."""
    if job.deadline_at <= job.read_at:
        return await give_up(kit, job, "deadline", "the order waited too long to be started")
    try:
        turn = await kit.limits.turn(f"create:{job.provider}")
    except ProviderBusy as busy:
        kit.fenced(await kit.store.wait(Wait(job_id=job.id, token=job.lease_token, after=busy.after, failed=None)), job)
        return None
    secret = kit.make_secret()
    placeholder = None if job.placeholder else await _place(kit, job)
    kit.fenced(await kit.store.begin_submit(job.id, job.lease_token, hash_secret(secret), placeholder), job)
    if turn.missed and job.placeholder and job.attempts < TURNS_MISSED_MAX:
        # The commit took too long. Nothing was sent, so another turn may be waited for.
        again = Wait(job_id=job.id, token=job.lease_token, after=0.0, state=State.QUEUED, failed=True)
        kit.fenced(await kit.store.wait(again), job)
        return None
    kit.event(Event.SUBMIT_START, job, provider=job.provider)
    return await _call(kit, job, secret)


async def _place(kit: Kit, job: Job) -> str | None:
    """A message to become the result. If it cannot be had now, the deliver stage tries again."""
    channel = kit.channels[job.channel]
    try:
        try:
            return await channel.place(job, 0)
        except ChatMoved as moved:
            return await channel.place(await move(kit, job, moved.address, job.parts), 0)
    except ChannelError as error:
        kit.event(Event.DELIVER_FAIL, job, step="place", reason=type(error).__name__)
        return None


def _callback_url(kit: Kit, job: Job, secret: str) -> str | None:
    return f"{kit.public_url}/callbacks/{job.provider}/{job.id}.{secret}" if kit.public_url else None


async def _call(kit: Kit, job: Job, secret: str) -> Job | None:
    started = kit.loop.time()
    try:
        task_id = await kit.providers[job.provider].create(job, _callback_url(kit, job, secret))
    except SubmitRefused as refused:
        kit.event(Event.SUBMIT_REFUSED, job, code=refused.code)
        kit.observer.count("provider_errors", 1, provider=job.provider, call="create", reason=refused.code)
        return await _refused(kit, job, refused)
    except ProviderBusy as busy:
        kit.event(Event.SUBMIT_BUSY, job, after=busy.after)
        kit.observer.count("provider_errors", 1, provider=job.provider, call="create", reason="ProviderBusy")
        back = Wait(job_id=job.id, token=job.lease_token, after=busy.after, state=State.QUEUED, failed=None)
        kit.fenced(await kit.store.wait(back), job)
        return None
    except Exception as error:  # noqa: BLE001 - whatever it was, the provider may have accepted: never call again
        await _unknown(kit, job, type(error).__name__)
        return None
    kit.event(Event.SUBMIT_OK, job, task_id=task_id, seconds=round(kit.loop.time() - started, 3))
    await _keep(kit, job, secret, task_id)
    return None


async def _unknown(kit: Kit, job: Job, reason: str, **told: str) -> None:
    kit.event(Event.SUBMIT_UNKNOWN, job, reason=reason, **told)
    kit.observer.count("submits_unknown", 1, provider=job.provider)
    kit.observer.count("provider_errors", 1, provider=job.provider, call="create", reason=reason)
    grace = Wait(job_id=job.id, token=job.lease_token, after=kit.rules.grace_seconds, grace=True)
    kit.fenced(await kit.store.wait(grace), job)


async def _keep(kit: Kit, job: Job, secret: str, task_id: str) -> None:
    """Write the task down. Its id is all we have of something that is being billed, so we try as long as we live."""
    while True:
        try:
            if not await kit.store.submitted(job.id, job.lease_token, task_id, _first_look(kit, job)):
                # The callback was faster, the person cancelled, or we slept: the row has moved on without us.
                adopted = await kit.store.adopt_task(job.id, hash_secret(secret), task_id)
                kit.event(Event.LEASE_LOST, job, task_id=task_id, adopted=adopted)
        except TaskTaken as taken:
            # The provider repeats itself: what it says about this task may be meant for the other job.
            await _unknown(kit, job, type(taken).__name__, task_id=task_id)
            return
        except StoreUnavailable as error:
            kit.event(Event.STAGE_ERROR, job, error=str(error), task_id=task_id)
            await asyncio.sleep(kit.rules.claim_seconds)
        else:
            return


def _first_look(kit: Kit, job: Job) -> float:
    """Seconds until the task is asked after, or its progress shown, for the first time."""
    after = kit.pace.delay(0.0, kit.chance.random())
    moment = next_moment(kit, job, 0.0)
    return after if moment is None else min(after, moment)


async def _refused(kit: Kit, job: Job, refused: SubmitRefused) -> Job | None:
    ending = Ending(
        job_id=job.id,
        token=job.lease_token,
        state=State.FAILED,
        parts=WORDS,
        error_code=refused.code,
        error_text=refused.text,
    )
    return await end_own(kit, job, ending)


async def settle_unknown(kit: Kit, job: Job) -> Job | None:
    """A submit that may have been accepted: wait for its callback, then settle it by policy."""
    if job.grace_until is None:
        kit.event(Event.SUBMIT_UNKNOWN, job, reason="taken over")
        after = kit.rules.grace_seconds
        wait = Wait(job_id=job.id, token=job.lease_token, after=after, grace=True)
        kit.fenced(await kit.store.wait(wait), job)
        return None
    remaining = (job.grace_until - job.read_at).total_seconds()
    if remaining > 0:
        wait = Wait(job_id=job.id, token=job.lease_token, after=remaining, grace=True)
        kit.fenced(await kit.store.wait(wait), job)
        return None
    if kit.rules.unknown_submit is UnknownSubmit.PARK:
        kit.event(Event.ATTENTION, job, reason="submit_unknown")
        park = Wait(job_id=job.id, token=job.lease_token, after=None, attention="submit_unknown")
        kit.fenced(await kit.store.wait(park), job)
        return None
    return await give_up(kit, job, "submit_unknown", "the provider never said whether it took the order")


async def give_up(kit: Kit, job: Job, code: str, text: str) -> Job | None:
    """Stop waiting: money back, person told; a result that still comes is shown for free."""
    ending = Ending(
        job_id=job.id, token=job.lease_token, state=State.EXPIRED, parts=WORDS, error_code=code, error_text=text
    )
    return await end_own(kit, job, ending)


async def end_own(kit: Kit, job: Job, ending: Ending) -> Job | None:
    """End a job whose lease we hold."""
    ended: Ended = await kit.store.end(ending, kit.lease)
    kit.fenced(ended.job is not None, job)
    kit.event(Event.JOB_ENDED, job, state=ending.state, code=ending.error_code)
    return ended.job
