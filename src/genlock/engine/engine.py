"""The engine: the worker, leader, sweeper and update worker of one instance, started and stopped together."""

import asyncio
from collections.abc import Sequence

from genlock.domain.inbox import Callback
from genlock.domain.job import Actor, Job, NewJob
from genlock.engine import breakers, operate
from genlock.engine.accept import accept
from genlock.engine.collect import end_by_callback, store_callback
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.engine.periodic import PeriodicRunner, PeriodicTask
from genlock.engine.sweeper import Sweeper
from genlock.engine.unauthenticated import UnauthenticatedCallbacks
from genlock.engine.updates import UpdateWorker
from genlock.engine.worker import Worker

#: how often orphans are checked in the time after which they expire
ORPHAN_CHECKS = 60
#: the name of a periodic task
ELECTION = "elect_leader"


class Engine:
    """One instance. Any number of them may share a PostgreSQL store, and each may crash at any line."""

    def __init__(self, ctx: EngineContext, updates: UpdateWorker | None = None) -> None:
        self.ctx = ctx
        self.worker = Worker(ctx)
        self.leader = Leader(ctx)
        self.updates = updates
        self.sweeper = Sweeper(ctx, self.leader, self.worker.start_callback, lambda: self.worker.free_capacity)
        self._unauthenticated = UnauthenticatedCallbacks(ctx)
        self._runner = PeriodicRunner(ctx.observer, is_leader=lambda: self.active)

    @property
    def active(self) -> bool:
        """Whether this instance is the leader."""
        return self.leader.role is not None

    def periodic_tasks(self) -> list[PeriodicTask]:
        """Return everything this instance does by itself, with its periods."""
        rules = self.ctx.rules
        return [
            PeriodicTask(name="claim_jobs", period_seconds=rules.claim_seconds, run=self.worker.claim),
            # The instance that takes over from a crashed one claims at once; the period is for the others.
            PeriodicTask(
                name="claim_poison_jobs",
                period_seconds=2 * rules.claim_seconds,
                run=self.worker.claim_poison_jobs,
                wake=self.worker.crashes_found,
            ),
            *self._keep_alive_tasks(),
            # Twice per heartbeat, so that a role that was given up is taken at once.
            PeriodicTask(name=ELECTION, period_seconds=rules.heartbeat_seconds / 2, run=self.leader.elect_when_due),
            # With jitter: an instance that lacks a callback's provider could otherwise always be the first to claim it.
            PeriodicTask(
                name="sweep_callbacks",
                period_seconds=rules.sweep_seconds,
                run=self.sweeper.sweep,
                jitter=self.ctx.rng,
            ),
            PeriodicTask(
                name="expire_orphans",
                period_seconds=max(rules.sweep_seconds, rules.orphan_expire_seconds / ORPHAN_CHECKS),
                run=self.sweeper.expire_orphans,
                leader_only=True,
            ),
            PeriodicTask(name="read_breakers", period_seconds=breakers.PERIOD_SECONDS, run=self.ctx.breakers.read),
            PeriodicTask(
                name="prune_limits",
                period_seconds=rules.limits_idle_seconds / 10,
                run=self.sweeper.prune_limits,
                leader_only=True,
            ),
            *self._update_tasks(),
        ]

    def _update_tasks(self) -> list[PeriodicTask]:
        if self.updates is None:
            return []
        claim_seconds = self.ctx.rules.claim_seconds
        return [
            # An update is leased when it is stored: a claim is for those that were postponed or left by a crash.
            PeriodicTask(
                name="claim_updates",
                period_seconds=2 * claim_seconds,
                run=self.updates.claim,
                wake=self.updates.wake,
            ),
            # Isolated queues wait for seconds anyway; two statements twice a second would be most of an idle load.
            PeriodicTask(
                name="claim_poison_updates", period_seconds=4 * claim_seconds, run=self.updates.claim_poison_queues
            ),
        ]

    def _keep_alive_tasks(self) -> list[PeriodicTask]:
        """Return the tasks that must also run while the instance stops: without them it is taken for dead."""
        rules = self.ctx.rules
        tasks = [
            PeriodicTask(name="heartbeat", period_seconds=rules.heartbeat_seconds, run=self._heartbeat),
            PeriodicTask(name="renew_leases", period_seconds=rules.lease_seconds / 6, run=self.worker.renew_leases),
        ]
        if self.updates:
            tasks.append(
                PeriodicTask(
                    name="renew_update_leases", period_seconds=rules.lease_seconds / 6, run=self.updates.renew_leases
                )
            )
        return tasks

    async def _heartbeat(self) -> None:
        if await self.worker.heartbeat() and self.updates:
            self.updates.wake.set()  # updates of a dead instance are due now

    async def order(self, order: NewJob) -> Job:
        """Accept an order and start on it. The same idempotency key again returns the same job."""
        is_held = self.ctx.liveness.watch()
        with self.worker.leasing() as lease:
            accepted = await accept(self.ctx, order, lease=lease)
            if accepted.created and accepted.job.lease_owner:
                self.worker.start(accepted.job, is_held)
        return accepted.job

    async def callback(self, provider: str, token: str | None, body: bytes, *, authenticated: bool = True) -> Callback:
        """Store a callback. When this returns, it may be acknowledged. Raises TooManyUnauthenticated."""
        is_held = self.ctx.liveness.watch()
        with self.worker.leasing() as lease:
            if lease and (ended := await end_by_callback(self.ctx, provider, token, body)):
                if ended.job:
                    self.worker.start(ended.job, is_held)
                assert ended.callback
                return ended.callback
        if authenticated:
            callback = await store_callback(self.ctx, provider, token, body)
        else:
            callback = await self._unauthenticated.store(provider, token, body)
        self.worker.start_callback(callback)
        return callback

    async def cancel(self, job_id: int, by: str, actor: Actor = Actor.OPERATOR, *, attempt: int | None = None) -> Job:
        """Cancel a job and inform its user. Raises ActionNotAllowed."""
        is_held = self.ctx.liveness.watch()
        with self.worker.leasing() as lease:
            job = await operate.cancel(self.ctx, job_id, by, actor=actor, lease=lease, attempt=attempt)
            if job.lease_owner:
                self.worker.start(job, is_held)
        return job

    async def start(self, extra: Sequence[PeriodicTask] = ()) -> None:
        """Start the periodic tasks, and `extra` ones. The first heartbeat is written before the first claim."""
        ctx = self.ctx
        await ctx.heartbeat()
        if self.updates:
            self.updates.open()
        dead = await ctx.store.orphaned_instances()
        await self.worker.take_over(dead)
        await self.leader.take_over(dead)
        self._runner.start([*self.periodic_tasks(), *extra])

    async def stop(self) -> None:
        """Stop claiming, finish what can be finished, and release the rest for the other instances."""
        staying_alive = PeriodicRunner(self.ctx.observer, is_leader=lambda: False)
        staying_alive.start(self._keep_alive_tasks())
        try:
            await self._finish()
        finally:
            await staying_alive.stop()
            await self.worker.release()

    async def _finish(self) -> None:
        """Pass on the leader's role first: what runs may take a while."""
        try:
            await self._runner.stop(ELECTION)
            await self.leader.resign()
        finally:
            updates = [self.updates.finish()] if self.updates else []
            await asyncio.gather(self._runner.stop(), self.worker.finish(), *updates)
