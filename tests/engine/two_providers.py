"""An instance with two providers that offer the same model."""

from typing import Any

from genlock.domain.job import Job, NewJob
from genlock.domain.offer import Offer
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.input_files import InputFiles
from genlock.engine.limits import RateLimiter
from tests.engine.fake_provider import FakeProvider
from tests.engine.world import World, idle

FIRST = Offer(provider="fake", model="flux")
SECOND = Offer(provider="other", model="other/flux", inputs={"prompt": "text"})


class TwoProviders:
    """An engine with two providers that can make the same order."""

    def __init__(self, world: World, input_files: InputFiles | None = None) -> None:
        self.world = world
        self._input_files = input_files
        self.first = world.provider
        self.second = FakeProvider()
        self.second.tag = "second"
        self.second.name = "other"
        self.offers: list[Offer] = [FIRST, SECOND]
        self.engine = self._engine()

    def _engine(self) -> Engine:
        world, rules = self.world, EngineRules()
        ctx = EngineContext(
            store=world.store,
            providers={"fake": self.first, "other": self.second},
            channels={"chat": world.channel},
            observer=world.recorder,
            instance="two",
            limits=RateLimiter(world.store, rules.limits),
            rules=rules,
            public_url="https://bot.example",
            offers=self._offers,
            input_files=self._input_files,
        )
        engine = Engine(ctx)
        world.engines.append(engine)
        return engine

    def _offers(self, _: Job | NewJob) -> list[Offer]:
        return self.offers

    async def order(self, **changes: Any) -> Job:
        job = await self.engine.order(self.world.order(**changes))
        await self.work()
        return await self.world.see(job)

    async def work(self) -> None:
        await idle(self.engine)
        await self.engine.worker.claim()
        await idle(self.engine)

    async def outcomes(self, job: Job) -> list[tuple[str, str | None]]:
        return [(attempt.provider, attempt.outcome) for attempt in await self.world.store.attempts(job.id)]
