"""The engine: the stages and janitors of one instance, started and stopped together."""

import asyncio

from genlock.domain.inbox import Callback
from genlock.domain.job import Actor, Job, NewJob
from genlock.engine import operate
from genlock.engine.accept import accept
from genlock.engine.collect import check_unauthenticated, receive, receive_end
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.engine.sweeper import Sweeper
from genlock.engine.updates import Updates
from genlock.engine.worker import Worker, every, run_forever


class Engine:
    """One instance. Any number of them may share a PostgreSQL store; any of them may die at any line."""

    def __init__(self, ctx: EngineContext) -> None:
        self.ctx = ctx
        self.worker = Worker(ctx)
        self.leader = Leader(ctx)
        self.sweeper = Sweeper(ctx, self.leader, self.worker.take_callback, lambda: self.worker.room)
        #: set before the start by whoever has a chat that sends updates
        self.updates: Updates | None = None
        self._loops: list[asyncio.Task[None]] = []

    @property
    def active(self) -> bool:
        return self.leader.role is not None

    async def order(self, order: NewJob) -> Job:
        """Accept an order and start on it. The same key again gives the same job."""
        acceptance = await accept(self.ctx, order, keep=self.worker.room > 0)
        if acceptance.fresh and acceptance.job.lease_owner:
            self.worker.take(acceptance.job)
        return acceptance.job

    async def callback(self, provider: str, token: str | None, body: bytes, *, authenticated: bool = True) -> Callback:
        """Keep a callback; when this returns it may be acknowledged. Raises TooManyUnauthenticated."""
        if self.worker.room and (ended := await receive_end(self.ctx, provider, token, body)):
            if ended.job:
                self.worker.take(ended.job)
            assert ended.callback
            return ended.callback
        if not authenticated:
            await check_unauthenticated(self.ctx, provider, token)
        callback = await receive(self.ctx, provider, token, body)
        self.worker.take_callback(callback)
        return callback

    async def cancel(self, job_id: int, by: str, actor: Actor = Actor.OPERATOR) -> Job:
        """Cancel a job and tell its person."""
        job = await operate.cancel(self.ctx, job_id, by, actor=actor, keep=self.worker.room > 0)
        if job.lease_owner:
            self.worker.take(job)
        return job

    async def start(self) -> None:
        """Begin to work. Before the first claim the instance is known to its peers."""
        ctx = self.ctx
        await ctx.store.heartbeat(ctx.instance, ctx.rules.silent_seconds)
        dead = await ctx.store.orphaned_instances()
        await self.worker.take_over(dead)
        await self.leader.take_over(dead)
        loops = [
            *self.worker.loops(),
            every(ctx.rules.heartbeat_seconds / 2, self.leader.round, ctx),  # a role given up is taken at once
            every(ctx.rules.sweep_seconds, self.sweeper.round, ctx),
            every(ctx.rules.limits_idle_seconds / 10, self.sweeper.limits, ctx),
            *(self.updates.loops() if self.updates else []),
        ]
        self._loops = run_forever(ctx, *loops)

    async def stop(self) -> None:
        """Stop cleanly: what is left is taken over by the others at once."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._loops = []
        try:
            await self.leader.stop()  # first: what the worker finishes may take a while
        finally:
            await self.worker.stop(*([self.updates.drain()] if self.updates else []))
