"""The simulated fleet: engines that start, and are killed, paused, stopped and cut off."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from genlock.domain.errors import StoreError
from genlock.domain.inbox import Callback
from genlock.engine.context import EngineContext, EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.ports import Store
from genlock.sandbox.simulation.bad_channel import BadChannel
from genlock.sandbox.simulation.bad_provider import BadProvider
from genlock.sandbox.simulation.crashes import CutOff, Fate, Life, proxies
from genlock.sandbox.simulation.world import RATES, Recorder, World

T = TypeVar("T")
INSTANCES_MAX = 12
#: what people are told a job takes; it takes as long as it takes
EXPECTED_SECONDS = 31.0


class Instance:
    """One engine of the simulated fleet."""

    def __init__(self, life: Life, engine: Engine) -> None:
        self.life = life
        self.engine = engine

    @property
    def store(self) -> Store:
        """As this instance reaches it."""
        return self.engine.ctx.store

    @property
    def up(self) -> bool:
        return not (self.life.dead or self.life.stopping)


class Fleet:
    """The instances of one run, over one store, one provider and one channel."""

    def __init__(
        self,
        world: World,
        store: Store,
        *,
        rng: Random,
        rules: EngineRules,
        fates: dict[str, Fate],
        providers: tuple[str, ...],
        public_url: str | None,
    ) -> None:
        self.instances: list[Instance] = []
        self.channel = BadChannel(world)
        self._provider = BadProvider(world, self._door)
        self._world = world
        self._store = store
        self._rng = rng
        self._rules = rules
        self._fates = fates
        self._providers = providers
        self._public_url = public_url
        self._stops: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        world = self._world
        name = f"i{len(self.instances) + 1}"
        life = Life(world, name, self._fates)
        store, provider, channel = proxies(
            world, life, self._store, self._provider, self.channel, grace_seconds=self._rules.grace_seconds
        )
        rng = world.stream(name)
        ctx = EngineContext(
            store=store,
            providers=dict.fromkeys(self._providers if self.instances else ("kie",), provider),
            channels={"chat": channel},
            observer=Recorder(world, name),
            instance=name,
            limits=RateLimiter(store, self._rules.limits),
            rules=self._rules,
            rng=rng,
            make_secret=lambda: f"{rng.getrandbits(64):x}",
            public_url=self._public_url,
            expected=lambda _: EXPECTED_SECONDS,
        )
        instance = Instance(life, Engine(ctx))
        self.instances.append(instance)
        world.note(name, "STARTED")
        try:
            await life.serve(instance.engine.start())
        except (CutOff, StoreError):
            life.kill("did not start")

    def someone(self) -> Instance | None:
        up = [instance for instance in self.instances if instance.up]
        return self._rng.choice(up) if up else None

    async def ask(self, request: Callable[[Instance], Coroutine[Any, Any, T]]) -> T:
        """Have somebody do it. Raises CutOff if there is nobody, or nobody answers."""
        instance = self.someone()
        if instance is None:
            raise CutOff
        return await instance.life.serve(request(instance))

    async def _door(self, provider: str, token: str | None, body: bytes) -> Callback | None:
        try:
            return await self.ask(lambda instance: instance.engine.callback(provider, token, body))
        except (CutOff, StoreError):
            return None

    async def trouble(self) -> None:
        """Kill, pause, stop, start and cut off instances, and keep at least one running."""
        kinds = [kind for kind in RATES if kind.startswith("instance: ")] + ["store: down"]
        while not self._world.calm:
            await asyncio.sleep(self._rng.uniform(0.3, 3.0))
            instance = self.someone()
            if instance is None:
                await self.start()
                continue
            kind = self._world.pick(kinds, instance.life.name)
            if kind == "instance: started" and len(self.instances) < INSTANCES_MAX:
                await self.start()
            elif kind:
                self._hurt(instance, kind)

    def _hurt(self, instance: Instance, kind: str) -> None:
        world, life = self._world, instance.life
        if kind == "instance: killed":
            life.kill("from outside")
        elif kind == "instance: all killed":
            for each in self.instances:
                each.life.kill("power cut")
        elif kind == "instance: paused":
            life.pause(self._rng.choice((1.0, 6.0, 30.0)) * self._rng.uniform(0.3, 1.5))
        elif kind == "instance: stopped":
            life.stopping = True
            self._stops.append(world.loop.create_task(self._stop(instance)))
        elif kind == "instance: cut off from the store":
            life.cut_off_until = world.loop.time() + self._rng.uniform(1.0, 15.0)
        elif kind == "store: down":
            world.store_down_until = world.loop.time() + self._rng.uniform(0.5, 8.0)

    async def _stop(self, instance: Instance) -> None:
        """A clean stop, as long as patience lasts."""
        try:
            await instance.life.serve(instance.engine.stop(), seconds=20.0)
        except (CutOff, StoreError):
            instance.life.kill("did not stop")
        else:
            self._world.note(instance.life.name, "STOPPED")
            instance.life.kill("stopped")
