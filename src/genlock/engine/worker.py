"""The worker: takes due jobs, runs the stage each one is at, keeps their leases, hands over when it stops."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.poison import ISOLATED_FROM, free_slots
from genlock.domain.retry import backoff
from genlock.engine.collect import digest, poll
from genlock.engine.context import EngineContext, LeaseLost
from genlock.engine.deliver import abandon, deliver, notify
from genlock.engine.late_cost import query_late_cost
from genlock.engine.submit import settle_unknown, submit
from genlock.ports import Reschedule

#: how long, at the most, a job whose provider or channel we do not have is left to others
STRANGE_SECONDS = 5.0


async def advance(ctx: EngineContext, job: Job, hold: Callable[[Job], None] = lambda _: None) -> None:
    """Bring a leased job as far as it goes now. `hold` is told of the newer lease that the end of a job brings."""
    current: Job | None = job
    if await _leave(ctx, job):
        return
    if job.state is State.QUEUED:
        current = await submit(ctx, job)
    elif job.state is State.SUBMITTING:
        current = await settle_unknown(ctx, job)
    elif job.state is State.RUNNING:
        current = await poll(ctx, job)
    if current is None:
        return
    if current is not job:
        hold(current)
    if current.delivery is Delivery.SENDING:
        await deliver(ctx, current)
    elif current.notice is Notice.DUE:
        await notify(ctx, current)
    elif current.state is State.CANCELLED:
        await query_late_cost(ctx, current)


async def _leave(ctx: EngineContext, job: Job) -> bool:
    """Leave a job that we do not know how to work on to those who do, and one that processes die of to the operator."""
    if job.provider not in ctx.providers or job.channel not in ctx.channels:
        # A newer instance took this order. Not for whole rounds of our own claims: we would come back first, again
        # and again.
        after = STRANGE_SECONDS * (0.5 + 0.5 * ctx.rng.random())
        ctx.fenced(
            await ctx.store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=after, failed=None)), job
        )
        return True
    # An unknown submit only waits, and a notice is tried once: nobody dies of those again and again.
    if job.crash_count >= ctx.rules.crashes_max and job.state is not State.SUBMITTING and job.notice is not Notice.DUE:
        await _give_up(ctx, job)
        return True
    return False


async def _give_up(ctx: EngineContext, job: Job) -> None:
    reason = f"its work ended the process {job.crash_count} times"
    if job.delivery is Delivery.SENDING:
        await abandon(ctx, job, reason, AttentionCode.POISON)
        return
    # An end that the person was told of stays one: then only the bill is not asked for any more.
    attention = None if job.ended else reason
    ctx.fenced(
        await ctx.store.reschedule(
            Reschedule(
                job_id=job.id,
                token=job.lease_token,
                after=None,
                attention_reason=attention,
                attention_code=AttentionCode.POISON,
            )
        ),
        job,
    )
    ctx.event(Event.ATTENTION, job, reason=reason)


class Worker:
    """Runs work as tasks: one for each job somebody must act on now, none for those that wait."""

    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self._jobs: dict[int, tuple[Job, float, asyncio.Task[None]]] = {}
        self._callbacks: set[asyncio.Task[None]] = set()
        self._due = asyncio.Event()
        self._stopping = False
        self._uncertain_commits = 0

    @property
    def room(self) -> int:
        """How many more jobs may be taken."""
        busy = len(self._jobs) + len(self._callbacks)
        return 0 if self._stopping else max(0, self._ctx.rules.capacity - busy)

    @property
    def busy(self) -> int:
        return len(self._jobs) + len(self._callbacks)

    def take(self, job: Job) -> None:
        """Work on a job that is leased to us."""
        if not self._replace(job):
            return
        loop = self._ctx.loop
        task = loop.create_task(self._work(job))
        self._jobs[job.id] = (job, loop.time(), task)
        task.add_done_callback(partial(self._done, job))

    def _replace(self, job: Job) -> bool:
        """Make way for a job's newer lease. False if this one was overtaken: its answer came after a newer one's."""
        entry = self._jobs.get(job.id)
        if entry is None:
            return True
        if entry[0].lease_token > job.lease_token:
            return False
        entry[2].cancel()  # its lease is gone: we have just been given a newer one
        return True

    def _done(self, job: Job, task: asyncio.Task[None]) -> None:
        entry = self._jobs.get(job.id)
        if entry is not None and entry[2] is task:
            del self._jobs[job.id]
        self._due.set()

    def take_callback(self, callback: Callback) -> None:
        """Understand a stored callback. What finds no room waits in the inbox for the sweep."""
        if self.room:
            task = self._ctx.loop.create_task(self._digest(callback))
            self._callbacks.add(task)
            task.add_done_callback(self._digested)

    def _digested(self, task: asyncio.Task[None]) -> None:
        self._callbacks.discard(task)
        self._due.set()

    async def _digest(self, callback: Callback) -> None:
        try:
            job = await digest(self._ctx, callback)
        except StoreError as error:
            # It stays in the inbox and comes due again.
            self._ctx.observer.event(Event.STAGE_ERROR, callback.correlation_id, callback=callback.id, error=str(error))
            return
        except Exception as error:  # noqa: BLE001 - a poison callback must not come due for ever
            await self._put_away(callback, error)
            return
        if job is not None:
            await self._adopt(job)

    async def _put_away(self, callback: Callback, error: Exception) -> None:
        """Keep a callback that breaks its stage for the operator."""
        ctx = self._ctx
        ctx.observer.event(Event.STAGE_ERROR, callback.correlation_id, callback=callback.id, error=repr(error))
        ctx.observer.count("stage_errors", 1, state="callback")
        try:
            await ctx.store.settle_callback(callback.id, InboxState.UNREADABLE, note=repr(error)[:500])
        except Exception as failure:  # noqa: BLE001 - then it was the store that is broken, not the callback
            ctx.observer.event(Event.STAGE_ERROR, callback.correlation_id, callback=callback.id, error=repr(failure))

    async def _adopt(self, job: Job) -> None:
        """Go on, in the task that ended the job, with its delivery."""
        task = asyncio.current_task(self._ctx.loop)
        assert task is not None
        if not self._replace(job):
            return
        self._callbacks.discard(task)
        self._jobs[job.id] = (job, self._ctx.loop.time(), task)
        try:
            await self._work(job)
        finally:
            self._done(job, task)

    async def _work(self, job: Job) -> None:
        ctx = self._ctx
        held = job

        def hold(newer: Job) -> None:
            nonlocal held
            held = newer
            entry = self._jobs.get(job.id)
            if entry is not None and entry[2] is asyncio.current_task():
                self._jobs[job.id] = (newer, *entry[1:])

        try:
            await advance(ctx, job, hold)
        except LeaseLost:
            return
        except StoreError as error:
            # The row is as it was; its lease runs out and somebody goes on.
            ctx.event(Event.STAGE_ERROR, held, error=str(error))
        except Exception as error:  # noqa: BLE001 - a bug or a poison row must not take the others with it
            ctx.event(Event.STAGE_ERROR, held, error=repr(error), attempt=held.attempts)
            ctx.observer.count("stage_errors", 1, state=held.state)
            await self._set_aside(held, error)

    async def _set_aside(self, job: Job, error: Exception) -> None:
        """Try again later; after too many tries leave it to the operator."""
        ctx = self._ctx
        hopeless = job.attempts + 1 >= ctx.rules.stage_attempts
        wait = Reschedule(
            job_id=job.id,
            token=job.lease_token,
            after=None if hopeless else backoff(job.attempts, ctx.rng.random()),
            failed=True,
            attention_reason=f"stage error: {error!r}"[:500] if hopeless else None,
            attention_code=AttentionCode.STAGE_ERROR,
        )
        try:
            kept = await ctx.store.reschedule(wait)
        except StoreError as failure:
            ctx.event(Event.STAGE_ERROR, job, error=str(failure))
        else:
            if kept and hopeless:
                ctx.event(Event.ATTENTION, job, reason=wait.attention_reason)

    # the loops

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        poison = every(self._ctx.rules.claim_seconds, self.claim_poison_jobs, self._ctx)
        return [self._claim_loop(), poison, *self._signs_of_life()]

    def _signs_of_life(self) -> list[Coroutine[Any, Any, None]]:
        rules = self._ctx.rules
        return [
            every(rules.heartbeat_seconds, self._beat, self._ctx),
            every(rules.lease_seconds / 6, self._renew, self._ctx),
        ]

    async def _claim_loop(self) -> None:
        """Claim when something is due: at a steady pace, and at once while there is more than fits."""
        ctx = self._ctx
        while True:
            self._due.clear()
            wanted = self.room
            got = 0
            if wanted:
                try:
                    jobs = await ctx.store.claim(wanted, ctx.lease)
                except Exception as error:  # noqa: BLE001 - as in `every`
                    ctx.observer.event(Event.STAGE_ERROR, error=repr(error), step="claim")
                    jobs = []
                got = len(jobs)
                for job in jobs:
                    self.take(job)
            if got == wanted:
                await self._due.wait()  # full: go on as soon as there is room
            else:
                await asyncio.sleep(ctx.rules.claim_seconds)

    async def claim_poison_jobs(self) -> None:
        """Claim what others died with, a few at a time. Beside the capacity: the others' work does not hold it up."""
        ctx = self._ctx
        slots = free_slots(job.crash_count for job, _, _ in self._jobs.values())
        if self._stopping or not any(slots):
            return
        for job in await ctx.store.claim_poison_jobs(slots, ctx.lease):
            if job.crash_count >= ISOLATED_FROM:
                ctx.event(
                    Event.POISON_SUSPECTED, job, crash_count=job.crash_count, state=job.state, delivery=job.delivery
                )
            self.take(job)

    async def take_over(self, dead: Iterable[str]) -> None:
        ctx = self._ctx
        for peer in dead:
            freed = await ctx.store.release_leases(peer, died=True)
            ctx.observer.event(Event.PEER_DEAD, peer=peer, jobs=freed)
            ctx.observer.count("takeovers", freed)

    async def _beat(self) -> None:
        """Say that we live; take over from those who do not."""
        ctx = self._ctx
        await self.take_over(await ctx.store.heartbeat(ctx.instance, ctx.rules.silent_seconds))
        if ctx.store.uncertain_commits != self._uncertain_commits:
            # A commit was made twice: a lease may be ours without our knowing. Let go of what we do not work on.
            self._uncertain_commits = ctx.store.uncertain_commits
            await ctx.store.release_leases(ctx.instance, list(self._jobs) or [0])

    async def _renew(self) -> None:
        """Keep the leases of work that takes long."""
        ctx = self._ctx
        old = ctx.loop.time() - ctx.rules.lease_seconds / 3
        long = [(job, task) for job, since, task in self._jobs.values() if since < old]
        kept = await asyncio.gather(*(ctx.store.renew(job.id, job.lease_token, ctx.lease) for job, _ in long))
        for (job, task), still_ours in zip(long, kept, strict=True):
            if not still_ours and await self._was_taken(job) and self._jobs.get(job.id, (None,))[0] is job:
                ctx.event(Event.LEASE_LOST, job, token=job.lease_token)
                task.cancel()

    async def _was_taken(self, job: Job) -> bool:
        """Whether a job that we could not renew went to another, or has no lease because its notice is on the wire."""
        row = await self._ctx.store.job(job.id)
        return row is None or row.lease_token != job.lease_token

    async def stop(self, *beside: Coroutine[Any, Any, None]) -> None:
        """Take nothing new, finish what can be finished (and what goes on beside), hand the rest over at once."""
        self._stopping = True
        # Whoever falls silent is taken for dead, with a send on the wire.
        living = [asyncio.get_running_loop().create_task(sign) for sign in self._signs_of_life()]
        try:
            await asyncio.gather(self._finish(), *beside)
        finally:
            for sign in living:
                sign.cancel()
            await asyncio.gather(*living, return_exceptions=True)
        await self._ctx.store.release_leases(self._ctx.instance)

    async def _finish(self) -> None:
        tasks = [*self._callbacks, *(task for _, _, task in self._jobs.values())]
        if tasks:
            await asyncio.wait(tasks, timeout=self._ctx.rules.stop_seconds)
        left = [*self._callbacks, *(task for _, _, task in self._jobs.values())]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def run_forever(ctx: EngineContext, *loops: Coroutine[Any, Any, None]) -> list[asyncio.Task[None]]:
    """Start loops. One that ends by a failure says so: nobody waits for it who could."""

    def tell(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            ctx.observer.event(Event.STAGE_ERROR, step=task.get_name(), error=repr(error))

    tasks = [ctx.loop.create_task(loop, name=getattr(loop, "__qualname__", None)) for loop in loops]
    for task in tasks:
        task.add_done_callback(tell)
    return tasks


async def every(seconds: float, action: Callable[[], Coroutine[Any, Any, None]], ctx: EngineContext) -> None:
    """Repeat an action for ever. A failure is told and does not end it."""
    while True:
        try:
            await action()
        except Exception as error:  # noqa: BLE001 - a janitor that dies takes the house with it
            ctx.observer.event(Event.STAGE_ERROR, step=action.__name__, error=repr(error))
            ctx.observer.count("stage_errors", 1, state=action.__name__)
        await asyncio.sleep(seconds)
