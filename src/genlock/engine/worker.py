"""The worker: claims due jobs, runs the stage each one is at, renews their leases, releases them when it stops."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.poison import ISOLATED_FROM, free_slots
from genlock.domain.retry import backoff
from genlock.engine.cancellation import cancel_and_wait
from genlock.engine.collect import poll, process_callback
from genlock.engine.context import EngineContext, LeaseLost, on_release
from genlock.engine.deliver import deliver, notify
from genlock.engine.late_cost import query_late_cost
from genlock.engine.poison import is_poison, park_poison_job
from genlock.engine.put_again import put_again
from genlock.engine.submit import settle_unknown, submit
from genlock.ports.call_fence import may_call

#: the longest time for which an instance leaves a job to others because it lacks the job's provider, channel or bot
UNCONFIGURED_SECONDS = 5.0


async def advance(ctx: EngineContext, job: Job, on_new_lease: Callable[[Job], None] = lambda _: None) -> None:
    """Process a leased job as far as possible now. `on_new_lease` gets the job again when its end renewed the lease."""
    if not ctx.is_configured(job):
        await _leave_to_others(ctx, job)
        return
    if is_poison(ctx, job):
        await park_poison_job(ctx, job)
        return
    current = await _advance_open(ctx, job)
    if current is None:
        return
    if current is not job:
        on_new_lease(current)
    if current.delivery is Delivery.SENDING:
        await deliver(ctx, current)
    elif current.notice is Notice.DUE:
        await notify(ctx, current)
    else:
        await _follow_up(ctx, current)


async def _follow_up(ctx: EngineContext, job: Job) -> None:
    """Do what an ended job still needs after its delivery."""
    put_after, query_after = await put_again(ctx, job), await query_late_cost(ctx, job)
    after = min((seconds for seconds in (put_after, query_after) if seconds is not None), default=None)
    # After a delivery whose outcome is unknown, a resend may still show the end that this message lacks.
    settled = put_after is None and job.delivery is not Delivery.UNKNOWN
    await ctx.reschedule(job, after=after, progress_settled=settled)


async def _advance_open(ctx: EngineContext, job: Job) -> Job | None:
    """Run the stage of an open job. Returns the job if it has ended, None if it waits for its next step."""
    if job.state is State.QUEUED:
        return await submit(ctx, job)
    if job.state is State.SUBMITTING:
        return await settle_unknown(ctx, job)
    if job.state is State.RUNNING:
        return await poll(ctx, job)
    return job


async def _leave_to_others(ctx: EngineContext, job: Job) -> None:
    """Release a job whose provider, channel or bot is configured on other instances only.

    The pause is random: with a fixed one, this instance could claim the job first again and again.
    """
    await ctx.reschedule(job, after=UNCONFIGURED_SECONDS * (0.5 + 0.5 * ctx.rng.random()), failed=None)


@dataclass(slots=True)
class RunningJob:
    """A job that this instance processes, with the lease it holds and the task that runs."""

    job: Job
    #: the loop's time when the task started
    since: float
    task: asyncio.Task[None]
    #: whether it has given its lease back and only sends the notice, which needs none
    released: bool = False


class Worker:
    """Runs one asyncio task for each job that is processed now, and none for jobs that wait."""

    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self._jobs: dict[int, RunningJob] = {}
        #: in the order in which they came
        self._callbacks: dict[asyncio.Task[None], None] = {}
        #: tasks that send the notice of a job that is leased again
        self._notifying: dict[asyncio.Task[None], None] = {}
        self._capacity_freed = asyncio.Event()
        #: set when jobs whose worker crashed may be due, so that the next claim of them comes at once
        self.crashes_found = asyncio.Event()
        #: calls that may yet lease a job to this instance and start on it
        self._leasing = 0
        self._stopping = False
        self._closed = False
        self._uncertain_commits = 0
        ctx.isolation.has_job = self._has_isolated

    def _has_isolated(self) -> bool:
        return any(running.job.crash_count >= ISOLATED_FROM for running in self._jobs.values())

    @property
    def free_capacity(self) -> int:
        """How many more jobs and callbacks this instance may process now."""
        return 0 if self._stopping else max(0, self._ctx.rules.capacity - self.busy)

    @property
    def busy(self) -> int:
        return len(self._jobs) + len(self._callbacks)

    # jobs

    @contextmanager
    def leasing(self) -> Iterator[bool]:
        """Yield whether a statement inside may lease a job to this instance; a stop waits until it is started."""
        lease = self.free_capacity > 0
        self._leasing += lease
        try:
            yield lease
        finally:
            self._leasing -= lease
            self._capacity_freed.set()

    def start(self, job: Job, is_held: Callable[[], bool] | None = None) -> None:
        """Process a job that is leased to this instance.

        `is_held` is what `Liveness.watch` returned before the job was leased.
        """
        if self._closed or not self._replace_older(job):
            return
        task = self._ctx.loop.create_task(self._process(job, is_held or self._ctx.liveness.watch()))
        self._jobs[job.id] = RunningJob(job, self._ctx.loop.time(), task)
        task.add_done_callback(lambda done: self._finished(job.id, done))

    def _replace_older(self, job: Job) -> bool:
        """Cancel the task of an older lease of this job, unless it only sends the notice.

        False if a newer lease is already being processed.
        """
        running = self._jobs.get(job.id)
        if running is None:
            return True
        if running.job.lease_token > job.lease_token:
            return False
        if running.released:
            self._notifying[running.task] = None
            running.task.add_done_callback(self._notice_finished)
        else:
            running.task.cancel()
        return True

    def _notice_finished(self, task: asyncio.Task[None]) -> None:
        self._notifying.pop(task, None)
        self._capacity_freed.set()

    def _release(self, job_id: int) -> None:
        """Note that the current task has given the lease of its job back."""
        running = self._jobs.get(job_id)
        if running is not None and running.task is asyncio.current_task():
            running.released = True

    def _finished(self, job_id: int, task: asyncio.Task[None]) -> None:
        running = self._jobs.get(job_id)
        if running is not None and running.task is task:
            del self._jobs[job_id]
            if running.job.crash_count:  # another one may have waited for its slot
                self.crashes_found.set()
        self._capacity_freed.set()

    async def _process(self, job: Job, is_held: Callable[[], bool]) -> None:
        ctx = self._ctx
        held = job
        may_call.set(is_held)
        on_release.set(partial(self._release, job.id))

        def on_new_lease(newer: Job) -> None:
            nonlocal held
            held = newer
            running = self._jobs.get(job.id)
            if running is not None and running.task is asyncio.current_task():
                running.job = newer

        try:
            await advance(ctx, job, on_new_lease)
        except LeaseLost:
            return
        except StoreError as error:
            # The row is unchanged; when the lease expires, an instance claims the job again.
            ctx.event(Event.STAGE_ERROR, held, error=str(error))
        except Exception as error:  # noqa: BLE001 - one broken job must not stop the others
            ctx.event(Event.STAGE_ERROR, held, error=repr(error), attempt=held.attempts)
            ctx.observer.count("stage_errors", 1, state=held.state)
            await self._retry_or_park(held, error)

    async def _retry_or_park(self, job: Job, error: Exception) -> None:
        """Retry a failed stage with back-off; after too many attempts put the job on the operator's list."""
        ctx = self._ctx
        exhausted = job.attempts + 1 >= ctx.rules.stage_attempts
        attention = (AttentionCode.STAGE_ERROR, ctx.mask(f"stage error: {error!r}")[:500]) if exhausted else None
        after = None if exhausted else backoff(job.attempts, ctx.rng.random())
        try:
            await ctx.reschedule(job, after=after, failed=True, attention=attention)
        except LeaseLost:
            return
        except StoreError as failure:
            ctx.event(Event.STAGE_ERROR, job, error=str(failure))
        else:
            if attention:
                ctx.event(Event.ATTENTION, job, reason=attention[1])

    # callbacks

    def start_callback(self, callback: Callback) -> None:
        """Process a stored callback. Without free capacity it stays in the inbox, where the sweeper finds it."""
        if self.free_capacity:
            task = self._ctx.loop.create_task(self._process_callback(callback))
            self._callbacks[task] = None
            task.add_done_callback(self._callback_finished)

    def _callback_finished(self, task: asyncio.Task[None]) -> None:
        self._callbacks.pop(task, None)
        self._capacity_freed.set()

    async def _process_callback(self, callback: Callback) -> None:
        is_held = self._ctx.liveness.watch()
        try:
            job = await process_callback(self._ctx, callback)
        except StoreError as error:
            # The callback stays in the inbox and becomes due again.
            self._ctx.observer.event(Event.STAGE_ERROR, callback.correlation_id, callback=callback.id, error=str(error))
            return
        except Exception as error:  # noqa: BLE001 - a callback that always fails must not become due forever
            await self._settle_unreadable(callback, error)
            return
        if job is not None:
            await self._continue_with(job, is_held)

    async def _settle_unreadable(self, callback: Callback, error: Exception) -> None:
        """Keep a callback that fails in an unexpected way for the operator."""
        ctx = self._ctx
        ctx.observer.event(Event.STAGE_ERROR, callback.correlation_id, callback=callback.id, error=repr(error))
        ctx.observer.count("stage_errors", 1, state="callback")
        try:
            await ctx.store.settle_callback(callback.id, InboxState.UNREADABLE, note=ctx.mask(repr(error))[:500])
        except Exception as failure:  # noqa: BLE001 - then the store is at fault, not the callback
            ctx.observer.event(Event.STAGE_ERROR, callback.correlation_id, callback=callback.id, error=repr(failure))

    async def _continue_with(self, job: Job, is_held: Callable[[], bool]) -> None:
        """Deliver a job in the task of the callback that ended it."""
        task = asyncio.current_task(self._ctx.loop)
        assert task is not None
        if not self._replace_older(job):
            return
        self._callbacks.pop(task, None)
        self._jobs[job.id] = RunningJob(job, self._ctx.loop.time(), task)
        try:
            await self._process(job, is_held)
        finally:
            self._finished(job.id, task)

    # periodic tasks (see engine.py)

    async def claim(self) -> None:
        """Claim due jobs. While more are due than fit, wait for capacity and claim again."""
        ctx = self._ctx
        while True:
            self._capacity_freed.clear()
            wanted, is_held = self.free_capacity, ctx.liveness.watch()
            jobs = await ctx.store.claim_jobs(wanted, ctx.lease) if wanted else []
            for job in jobs:
                self.start(job, is_held)
            await self._give_way(jobs)
            if len(jobs) < wanted:
                return
            await self._capacity_freed.wait()

    async def claim_poison_jobs(self) -> None:
        """Claim jobs whose worker crashed, a few at a time and outside the capacity limit.

        So a poison job cannot block healthy jobs, and healthy jobs cannot keep a poison job from being settled.
        """
        async with self._ctx.isolation.claiming:
            jobs = await self._claim_poison_jobs()
        if jobs:  # more of them may be due
            self.crashes_found.set()
        await self._give_way(jobs)

    async def _claim_poison_jobs(self) -> list[Job]:
        ctx = self._ctx
        slots = free_slots(running.job.crash_count for running in self._jobs.values())
        if ctx.isolation.has_updates():
            slots[-1] = 0
        is_held = ctx.liveness.watch()
        if self._stopping or not any(slots):
            return []
        jobs = await ctx.store.claim_poison_jobs(slots, ctx.lease)
        for job in jobs:
            if job.crash_count >= ISOLATED_FROM:
                ctx.event(
                    Event.POISON_SUSPECTED, job, crash_count=job.crash_count, state=job.state, delivery=job.delivery
                )
            self.start(job, is_held)
        return jobs

    async def _give_way(self, jobs: Iterable[Job]) -> None:
        """After a claim of jobs for other instances, claim at other moments: just before theirs, it would win again."""
        if not all(self._ctx.is_configured(job) for job in jobs):
            await asyncio.sleep(self._ctx.rules.claim_seconds * self._ctx.rng.random())

    async def heartbeat(self) -> bool:
        """Record that this instance is alive, and take over from those that are not; return whether any is not."""
        ctx = self._ctx
        dead = await ctx.heartbeat()
        await self.take_over(dead)
        if ctx.store.uncertain_commits != self._uncertain_commits:
            # A statement was retried after a lost connection, so we may own leases we never saw. Release every lease
            # that no local task uses.
            self._uncertain_commits = ctx.store.uncertain_commits
            await ctx.store.release_leases(ctx.instance, list(self._jobs) or [0])
        return bool(dead)

    async def take_over(self, dead: Iterable[str]) -> None:
        """Make the jobs of dead instances due for all instances."""
        ctx = self._ctx
        for instance in dead:
            jobs = await ctx.store.release_leases(instance, crashed=True)
            ctx.observer.event(Event.INSTANCE_DEAD, peer=instance, jobs=jobs)
            ctx.observer.count("takeovers", jobs)
            self.crashes_found.set()

    async def renew_leases(self) -> None:
        """Renew the leases of jobs that take long, and cancel the work on those that were lost."""
        ctx = self._ctx
        old = ctx.loop.time() - ctx.rules.lease_seconds / 3
        renewed = [(running, running.job) for running in self._jobs.values() if running.since < old]
        answers = await asyncio.gather(
            *(ctx.store.renew_lease(job.id, job.lease_token, ctx.lease) for _, job in renewed)
        )
        for (running, job), held in zip(renewed, answers, strict=True):
            if not held and await self._has_newer_lease(job) and self._is_current(running, job):
                ctx.event(Event.LEASE_LOST, job, token=job.lease_token)
                running.task.cancel()

    def _is_current(self, running: RunningJob, job: Job) -> bool:
        return self._jobs.get(job.id) is running and running.job is job and not running.released

    async def _has_newer_lease(self, job: Job) -> bool:
        """Whether a job that could not be renewed was claimed again. While its notice is sent it has no lease."""
        row = await self._ctx.store.job(job.id)
        return row is None or row.lease_token != job.lease_token

    # stopping

    async def finish(self) -> None:
        """Claim nothing new, and finish or cancel what runs within `stop_seconds`.

        The caller must keep the heartbeat and the renewal of leases running: an instance without a heartbeat is taken
        for dead, and other instances claim its jobs while its sends are still on their way.
        """
        self._stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._ctx.rules.stop_seconds):
                while self._leasing or self._tasks():
                    self._capacity_freed.clear()
                    await self._capacity_freed.wait()
        self._closed = True
        await cancel_and_wait(self._tasks())

    async def release(self) -> None:
        """Release all leases, so that other instances continue at once."""
        await self._ctx.store.release_leases(self._ctx.instance)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [*self._callbacks, *self._notifying, *(running.task for running in self._jobs.values())]
