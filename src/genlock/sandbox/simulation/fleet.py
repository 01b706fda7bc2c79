"""The simulated instances: engines that are started, killed, paused, stopped and disconnected from the store."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar, cast

from genlock.domain.errors import StoreError
from genlock.domain.inbox import Callback
from genlock.domain.job import Job, NewJob
from genlock.domain.offer import Offer
from genlock.engine.context import EngineContext, EngineRules, own_offer
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.periodic import PeriodicTask
from genlock.engine.updates import UpdateWorker
from genlock.ports import Channel, Store
from genlock.sandbox.simulation.faulty_channel import FaultyChannel
from genlock.sandbox.simulation.faulty_provider import FaultyProvider
from genlock.sandbox.simulation.instances import InstanceFault, InstanceLifecycle, NoAnswer, OutsideProxy, proxies
from genlock.sandbox.simulation.world import FAULT_RATES, Recorder, World

T = TypeVar("T")
INSTANCES_MAX = 12
#: how long after a crash another process is started
RESTART_SECONDS = 1.0
#: the expected duration that progress is computed from; the real one differs
EXPECTED_SECONDS = 31.0
#: how often what a provider is asked for changes
EDITION_SECONDS = 10.0
#: the provider that makes the orders which the first one did not accept
SECOND = "second"


class Instance:
    """One engine of the simulated fleet."""

    def __init__(self, lifecycle: InstanceLifecycle, engine: Engine) -> None:
        self.lifecycle = lifecycle
        self.engine = engine

    @property
    def store(self) -> Store:
        """The store as this instance reaches it."""
        return self.engine.ctx.store

    @property
    def up(self) -> bool:
        return not (self.lifecycle.dead or self.lifecycle.stopping)


class Fleet:
    """The instances of one run, over one store, one provider and one channel."""

    def __init__(
        self,
        world: World,
        store: Store,
        *,
        rng: Random,
        rules: EngineRules,
        instance_faults: dict[str, InstanceFault],
        providers: tuple[str, ...],
        public_url: str | None,
    ) -> None:
        self.instances: list[Instance] = []
        self.channel = FaultyChannel(world)
        self._provider = FaultyProvider(world, self._receive_callback)
        self._world = world
        self._store = store
        self._rng = rng
        self._rules = rules
        self._faults = instance_faults
        self._providers = providers
        self._public_url = public_url
        self._stops: list[asyncio.Task[None]] = []
        #: makes the update worker of an instance; None: the instances take no updates
        self.make_updates: Callable[[EngineContext], UpdateWorker] | None = None
        #: the channels besides that of the chats, by name
        self.more_channels: dict[str, FaultyChannel] = {}
        #: what an instance closes after its engine has stopped, by its name
        self.closing: dict[str, list[Callable[[], Awaitable[None]]]] = defaultdict(list)
        #: make the further periodic tasks of an instance
        self.make_tasks: list[Callable[[InstanceLifecycle, EngineContext], Sequence[PeriodicTask]]] = []

    async def start(self) -> None:
        world = self._world
        name = f"i{len(self.instances) + 1}"
        lifecycle = InstanceLifecycle(world, name, self._faults)
        store, provider, channel = proxies(
            world, lifecycle, self._store, self._provider, self.channel, grace_seconds=self._rules.grace_seconds
        )
        rng = world.stream(name)
        ctx = EngineContext(
            store=store,
            providers=dict.fromkeys((*(self._providers if self.instances else ("kie",)), SECOND), provider),
            offers=self._offers,
            channels={
                "chat": channel,
                **{
                    name: cast("Channel", OutsideProxy(world, lifecycle, more, "channel", self._store))
                    for name, more in self.more_channels.items()
                },
            },
            observer=Recorder(world, name),
            instance=name,
            limits=RateLimiter(store, self._rules.limits),
            rules=self._rules,
            rng=rng,
            make_secret=lambda: f"{rng.getrandbits(64):x}",
            public_url=self._public_url,
            expected=lambda _: EXPECTED_SECONDS,
            concurrency=dict.fromkeys((*self._providers, SECOND), world.tasks_at_once) if world.tasks_at_once else {},
        )
        engine = Engine(ctx, self.make_updates(ctx) if self.make_updates else None)
        instance = Instance(lifecycle, engine)
        self.instances.append(instance)
        world.note(name, "STARTED")
        try:
            await lifecycle.serve(
                instance.engine.start([task for make in self.make_tasks for task in make(lifecycle, ctx)])
            )
        except (NoAnswer, StoreError):
            lifecycle.kill("did not start")

    def _offers(self, job: Job | NewJob) -> Sequence[Offer]:
        if self._world.two_providers and job.provider in ("kie", SECOND):
            offers = tuple(Offer(provider=name, model=f"{name}/model") for name in ("kie", SECOND))
        else:
            offers = tuple(own_offer(job))
        # The catalog and the URLs of files change while orders are open.
        edition = int(self._world.loop.time() // EDITION_SECONDS)
        return tuple(replace(offer, fixed={"edition": edition}) for offer in offers)

    def random_instance(self) -> Instance | None:
        up = [instance for instance in self.instances if instance.up]
        return self._rng.choice(up) if up else None

    async def ask(self, request: Callable[[Instance], Coroutine[Any, Any, T]]) -> T:
        """Send a request to a random instance. Raises NoAnswer if none runs or it does not answer."""
        instance = self.random_instance()
        if instance is None:
            raise NoAnswer
        return await instance.lifecycle.serve(request(instance))

    async def ask_until_answered(self, request: Callable[[Instance], Coroutine[Any, Any, T]], rng: Random) -> T:
        """Repeat a request until an instance answers it."""
        while True:
            try:
                return await self.ask(request)
            except (NoAnswer, StoreError):
                await asyncio.sleep(rng.uniform(0.2, 2.0))

    async def _receive_callback(self, provider: str, token: str | None, body: bytes) -> Callback | None:
        try:
            return await self.ask(lambda instance: instance.engine.callback(provider, token, body))
        except (NoAnswer, StoreError):
            return None

    async def inject_faults(self) -> None:
        """Kill, pause, stop, start and disconnect instances, and keep at least one running."""
        kinds = [kind for kind in FAULT_RATES if kind.startswith("instance: ")] + ["store: down"]
        while not self._world.faults_over:
            await asyncio.sleep(self._rng.uniform(0.3, 3.0))
            instance = self.random_instance()
            if instance is None:
                await self.start()
                continue
            kind = self._world.pick(kinds, instance.lifecycle.name)
            if kind == "instance: started" and len(self.instances) < INSTANCES_MAX:
                await self.start()
            elif kind:
                self._apply_fault(instance, kind)

    async def replace_crashed(self) -> None:
        """Keep two instances running, as the supervisor of processes does that crash by themselves.

        One that is paused does not count: it cannot take over the jobs of another one.
        """
        while not self._world.finished:
            await asyncio.sleep(RESTART_SECONDS)
            if sum(instance.up and not instance.lifecycle.asleep for instance in self.instances) < 2:
                await self.start()

    def _apply_fault(self, instance: Instance, kind: str) -> None:
        world, lifecycle = self._world, instance.lifecycle
        if kind == "instance: killed":
            lifecycle.kill("from outside")
        elif kind == "instance: all killed":
            for each in self.instances:
                each.lifecycle.kill("all killed")
        elif kind == "instance: paused":
            lifecycle.pause(self._rng.choice((1.0, 6.0, 30.0)) * self._rng.uniform(0.3, 1.5))
        elif kind == "instance: stopped":
            lifecycle.stopping = True
            self._stops.append(world.loop.create_task(self._stop(instance)))
        elif kind == "instance: disconnected from the store":
            lifecycle.disconnected_until = world.loop.time() + self._rng.uniform(1.0, 15.0)
        elif kind == "store: down":
            world.store_down_until = world.loop.time() + self._rng.uniform(0.5, 8.0)

    async def stop(self, instance: Instance) -> None:
        await instance.engine.stop()
        for close in self.closing[instance.lifecycle.name]:
            await close()

    async def _stop(self, instance: Instance) -> None:
        """Stop an instance cleanly; kill it if that takes too long."""
        try:
            await instance.lifecycle.serve(self.stop(instance), seconds=20.0)
        except (NoAnswer, StoreError):
            instance.lifecycle.kill("did not stop")
        else:
            self._world.note(instance.lifecycle.name, "STOPPED")
            instance.lifecycle.kill("stopped")
