"""The world of the engine tests: instances that share a store, a fake provider, a fake channel and a clock."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any, cast

from genlock.domain.delivery import plan
from genlock.domain.inbox import Callback
from genlock.domain.job import Job, NewJob, State, Verdict
from genlock.domain.money import Wallet
from genlock.domain.poison import SLOTS
from genlock.engine.collect import store_callback
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.worker import Worker
from genlock.ports import EndJob, Store
from genlock.stores.database import SqlDatabase
from tests.changes import PATIENCE_SECONDS
from tests.engine.fake_channel import FakeChannel
from tests.engine.fake_provider import URL, FakeProvider, callback_body, success
from tests.engine.faults import FaultProxy
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder

PRICE = 100
FUNDS = 1_000_000
#: the rules of an instance unless a test says otherwise: a leader that a test elects keeps its role, however slow the
#: machine is
RULES = EngineRules(role_seconds=3600.0)
LEASE = RULES.lease_seconds
SILENT = RULES.silent_seconds
_instances = count(1)


@dataclass
class World:
    store: SqlDatabase
    clock: ManualClock
    recorder: Recorder
    account: int
    provider: FakeProvider = field(default_factory=FakeProvider)
    channel: FakeChannel = field(default_factory=FakeChannel)
    engines: list[Engine] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def engine(
        self,
        rules: EngineRules | None = None,
        *,
        store: FaultProxy | None = None,
        provider: FaultProxy | None = None,
        channel: FaultProxy | None = None,
        public_url: str | None = "https://bot.example",
        expected: float | None = None,
    ) -> Engine:
        """Create another instance. It does nothing by itself until it is started."""
        rules = rules or RULES
        number = next(_instances)
        reached = cast("Store", store or self.store)
        engine = Engine(
            EngineContext(
                store=reached,
                providers={"fake": cast("Any", provider or self.provider)},
                channels={"chat": cast("Any", channel or self.channel)},
                observer=self.recorder,
                instance=f"instance-{number}",
                limits=RateLimiter(reached, rules.limits),
                rules=rules,
                rng=Random(number),
                public_url=public_url,
                expected=(lambda _: expected) if expected else None,
            )
        )
        self.engines.append(engine)
        return engine

    def order(self, **changes: Any) -> NewJob:
        """Make an order of a tapped button, whose message will become the result."""
        number = next(self._numbers)
        plain = NewJob(
            account_id=self.account,
            request_key=f"key-{number}",
            provider="fake",
            channel="chat",
            address="42",
            model="flux",
            input='{"prompt":"a fox"}',
            price=PRICE,
            deadline_seconds=600,
            placeholder=self.channel.new_message(),
            correlation_id=f"c-{number}",
        )
        return replace(plain, **changes)

    async def see(self, job: Job | int) -> Job:
        found = await self.store.job(job if isinstance(job, int) else job.id)
        assert found is not None
        return found

    async def wallet(self) -> Wallet:
        return await self.store.wallet(self.account)

    async def spent(self) -> int:
        """Return what the account has paid; fails if anything is still held."""
        wallet = await self.wallet()
        assert wallet.held == 0, "something is still held"
        return FUNDS - wallet.available

    # jobs at a certain stage

    async def running(self, engine: Engine, **changes: Any) -> Job:
        """Return a job whose task runs at the provider."""
        job = await engine.order(self.order(**changes))
        await idle(engine)
        job = await self.see(job)
        assert job.state is State.RUNNING
        return job

    async def ended(self, engine: Engine, *urls: str, **changes: Any) -> Job:
        """Return a job with a result whose delivery has not begun."""
        job = await self.running(engine, **changes)
        assert job.task_id is not None
        parts = plan(success(job.task_id, *urls).pieces)
        ending = EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts, task_id=job.task_id)
        assert (await self.store.end_job(ending, None)).verdict is Verdict.WON
        return await self.see(job)

    async def claim_one(self, engine: Engine) -> Job:
        """Let an instance claim the one job that is due."""
        [taken] = await self.store.claim_jobs(1, engine.ctx.lease)
        engine.worker.start(taken)
        return taken

    async def call_back(self, engine: Engine, job: Job, **said: Any) -> Callback:
        """Call the job's callback URL, and wait until the instance has processed it."""
        body = callback_body(**({"task": job.task_id, "urls": [URL]} | said))
        callback = await engine.callback("fake", self.provider.token(job), body)
        await idle(engine)
        return callback


async def process_stored(engine: Engine, token: str, body: bytes) -> None:
    """Store a callback first, and process it afterwards."""
    engine.worker.start_callback(await store_callback(engine.ctx, "fake", token, body))


def tasks_of(worker: Worker) -> set[asyncio.Task[None]]:
    return set(worker._tasks())


async def idle(*engines: Engine) -> None:
    """Wait until the instances have finished their running tasks."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while tasks := set().union(*(tasks_of(engine.worker) for engine in engines)):
            await asyncio.wait(tasks)


async def work(engine: Engine) -> list[Job]:
    """Let an instance claim and process what is due."""
    jobs = await engine.ctx.store.claim_jobs(engine.worker.free_capacity, engine.ctx.lease)
    jobs += await engine.ctx.store.claim_poison_jobs(SLOTS, engine.ctx.lease)
    for job in jobs:
        engine.worker.start(job)
    await idle(engine)
    return jobs


async def die(engine: Engine) -> None:
    """Crash an instance, as kill -9 does: nothing of it runs any more, nothing was released."""
    tasks = {*engine._runner._running, *tasks_of(engine.worker)}
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
