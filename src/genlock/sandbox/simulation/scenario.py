"""One seed, one run: orders, people, operators and instances in trouble; then calm, until nothing is left to do."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from genlock.domain.errors import GenlockError, NotEnoughMoney, Refusal, StoreError
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Job, NewJob
from genlock.domain.money import Kind
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.engine.kit import Kit, Rules, UnknownSubmit
from genlock.engine.limits import Limit, Limits
from genlock.ports import Store, Violation
from genlock.sandbox.simulation.bad_channel import BadChannel
from genlock.sandbox.simulation.bad_provider import BadProvider
from genlock.sandbox.simulation.crashes import CALLS, POINTS, CutOff, Fate, Life, proxies
from genlock.sandbox.simulation.verdict import check
from genlock.sandbox.simulation.world import RATES, Entry, Recorder, World

T = TypeVar("T")


def _rare(call: str) -> int:
    """How many times more often than others a call is a fate: few seeds come to it at all."""
    return {"expire_callback": 24, "spoil": 6, "progress": 3, "adopt_task": 2, "move": 2}.get(
        call.rpartition(".")[2], 0
    )


TROUBLE_SECONDS = 45.0
#: longer than any pause between two tries, and much longer than a queue in the inbox
SETTLE_SECONDS = 200.0
#: points of each kind per seed
FATES = 4
#: what instances do all the time
JANITORS = ("claim", "heartbeat", "take_role", "claim_callbacks", "match_orphans")
FATEFUL = [
    *POINTS,
    *(f"{side}{call}" for turn in range(24) for call in CALLS for side in ("before ", "after ") if turn < _rare(call)),
]
INSTANCES_MAX = 12
HEARTBEAT_SECONDS = 1.0
SILENT_SECONDS = 4.0
#: what people are told a job takes; it takes as long as it takes
EXPECTED_SECONDS = 31.0
#: a dead instance's work must be free after this long: silence, a heartbeat of a peer, and its way to the store
TAKEOVER_SECONDS = SILENT_SECONDS + 2 * HEARTBEAT_SECONDS + 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What became of one seed."""

    seed: int
    violations: list[Violation]
    history: list[Entry]
    faults: Counter[str]
    virtual_seconds: float


class Instance:
    """One engine of the simulated fleet."""

    def __init__(self, life: Life, engine: Engine) -> None:
        self.life = life
        self.engine = engine

    @property
    def up(self) -> bool:
        return not (self.life.dead or self.life.stopping)


class Scenario:
    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self._truth = world.truth
        self._chance = world.stream("people")
        self._channel = BadChannel(world)
        self._provider = BadProvider(world, self._door)
        self._fleet: list[Instance] = []
        self._stops: list[asyncio.Task[None]] = []
        self._people: list[int] = []
        self._jobs: list[int] = []
        self._rules = self._make_rules()
        #: sometimes everybody orders at once
        self._rush_seconds = self._chance.choice((0.1, 20.0, 20.0, 20.0))
        #: in seconds, what people order with; sometimes nobody has any
        self._patience = self._chance.choice(((6.0,), (6.0, 20.0, 60.0), (6.0, 20.0, 60.0)))
        self._public_url = "https://sim" if self._chance.random() < 0.9 else None
        #: in a deploy, only the newer instances know a new provider
        self._providers = ("kie", "new") if self._chance.random() < 0.2 else ("kie",)
        self._fates = {**self._make_fates("slept", 11), **self._make_fates("killed", 0)}
        if self._chance.random() < 0.8:
            # What only somebody does who slept through the answer of the provider.
            nap = Fate(kind="slept", passings=self._chance.randint(1, 4), seconds=self._chance.uniform(7.0, 20.0))
            self._fates.setdefault("after provider.create", nap)

    def _make_rules(self) -> Rules:
        chance = self._chance
        limited = chance.random() < 0.3
        return Rules(
            lease_seconds=12.0,
            heartbeat_seconds=HEARTBEAT_SECONDS,
            silent_seconds=SILENT_SECONDS,
            role_seconds=SILENT_SECONDS,
            claim_seconds=0.5,
            sweep_seconds=2.0,
            orphan_expire_seconds=30.0,
            grace_seconds=chance.choice((5.0, 20.0)),
            last_answer_seconds=chance.choice((0.0, 20.0)),
            unknown_submit=UnknownSubmit.PARK if chance.random() < 0.2 else UnknownSubmit.RELEASE,
            delivery_attempts=chance.choice((3, 40)),
            stage_attempts=chance.choice((2, 10)),
            capacity=chance.choice((2, 1000, 1000)),
            stop_seconds=5.0,
            limits_idle_seconds=20.0,
            limits={"create:kie": Limit(interval=0.5, burst=2), "status:kie": Limit(interval=0.2)} if limited else {},
        )

    def _make_fates(self, kind: str, offset: int) -> dict[str, Fate]:
        """Seeds take turns, so that every point is met by somebody, soon or late."""
        fates = {}
        for place in range(FATES):
            point = FATEFUL[((self.world.seed + offset) * FATES + place) % len(FATEFUL)]
            often = point.rpartition(".")[2] in JANITORS
            passings = self._chance.randint(1, 40) if often else self._chance.choice((1, 1, 1, 2))
            fates[point] = Fate(kind=kind, passings=passings, seconds=self._chance.uniform(3.0, 15.0))
        return fates

    # the run

    async def run(self) -> list[Violation]:
        await self._invite_people()
        for _ in range(self._chance.randint(2, 3)):
            await self._start_instance()
        for number in range(self._chance.randint(6, 12)):
            self.world.spawn(self._order_later(number))
        self.world.spawn(self._trouble())
        for _ in range(2):
            self.world.spawn(self._operator())
        await asyncio.sleep(TROUBLE_SECONDS)
        await self._calm_down()
        if not await self._settle():
            subjects = [str(job.id) for job in await self.store.jobs(limit=1000) if job.due_at is not None]
            return [
                Violation(rule="Work comes to an end.", subject=subject, detail=f"not after {SETTLE_SECONDS} s of calm")
                for subject in subjects or ["-"]
            ]
        await asyncio.gather(*(instance.engine.stop() for instance in self._fleet if instance.up))
        return [
            *self._truth.broken,
            *await check(self._truth, self.store, self._people, self._rules),
            *self._check_epochs(),
        ]

    def _check_epochs(self) -> list[Violation]:
        """A role's epoch has one holder."""
        holders = defaultdict(set)
        for _, who, what, facts in self.world.history:
            if what == Event.LOCK_ACTIVE:
                holders[facts["epoch"]].add(who)
        return [
            Violation(rule="An epoch has one holder.", subject="-", detail=f"epoch {epoch}: {sorted(names)}")
            for epoch, names in holders.items()
            if len(names) > 1
        ]

    async def _invite_people(self) -> None:
        for number in range(4):
            person = await self.store.person("chat", "bot", f"u{number}")
            self._people.append(person)
            if money := (0, 4000, 15000, 100000)[number]:
                await self.store.transfer(person, Kind.GRANT, money, f"grant:{person}")
                self._truth.granted[person] = money

    async def _calm_down(self) -> None:
        """No new trouble: some die once more, as in a deploy, and fresh ones start. Sleepers wake when they wake."""
        for instance in self._fleet:
            if self._chance.random() < 0.3:
                instance.life.kill("deploy")
        self.world.calm = True
        self.world.store_down_until = 0.0
        for instance in self._fleet:
            instance.life.cut_off_until = 0.0
        self.world.note("world", "CALM")
        for _ in range(2):
            await self._start_instance()
        await asyncio.sleep(TAKEOVER_SECONDS)
        dead = {instance.life.name for instance in self._fleet if instance.life.missed}
        for job in await self.store.jobs(limit=1000):
            if job.lease_owner in dead:
                rule = "A dead instance's work is taken over within seconds."
                self._truth.breaks(rule, job.id, f"leased to {job.lease_owner} {TAKEOVER_SECONDS} s after")

    async def _settle(self) -> bool:
        """Wait until nothing is due anywhere."""
        give_up = self.world.loop.time() + SETTLE_SECONDS
        while self.world.loop.time() < give_up:
            await asyncio.sleep(2.0)
            asleep = any(instance.life.asleep for instance in self._fleet)
            counts = await self.store.counts()
            counts.pop("attention")
            if not (self.world.busy or asleep or any(counts.values())):
                return True
        return False

    # instances

    async def _start_instance(self) -> None:
        world = self.world
        name = f"i{len(self._fleet) + 1}"
        life = Life(world, name, self._fates)
        store, provider, channel = proxies(
            world, life, self.store, self._provider, self._channel, grace_seconds=self._rules.grace_seconds
        )
        chance = world.stream(name)
        kit = Kit(
            store=store,
            providers=dict.fromkeys(self._providers if self._fleet else ("kie",), provider),
            channels={"chat": channel},
            observer=Recorder(world, name),
            instance=name,
            limits=Limits(store, self._rules.limits),
            rules=self._rules,
            chance=chance,
            make_secret=lambda: f"{chance.getrandbits(64):x}",
            public_url=self._public_url,
            expected=lambda _: EXPECTED_SECONDS,
        )
        instance = Instance(life, Engine(kit))
        self._fleet.append(instance)
        world.note(name, "STARTED")
        try:
            await life.serve(instance.engine.start())
        except (CutOff, StoreError):
            life.kill("did not start")

    def _someone(self) -> Instance | None:
        up = [instance for instance in self._fleet if instance.up]
        return self._chance.choice(up) if up else None

    async def _trouble(self) -> None:
        """Kill, pause, stop, start and cut off instances, and keep at least one running."""
        kinds = [kind for kind in RATES if kind.startswith("instance: ")] + ["store: down"]
        while not self.world.calm:
            await asyncio.sleep(self._chance.uniform(0.3, 3.0))
            instance = self._someone()
            if instance is None:
                await self._start_instance()
                continue
            kind = self.world.pick(kinds, instance.life.name)
            if kind == "instance: started" and len(self._fleet) < INSTANCES_MAX:
                await self._start_instance()
            elif kind:
                self._hurt(instance, kind)

    def _hurt(self, instance: Instance, kind: str) -> None:
        world, life = self.world, instance.life
        if kind == "instance: killed":
            life.kill("from outside")
        elif kind == "instance: all killed":
            for each in self._fleet:
                each.life.kill("power cut")
        elif kind == "instance: paused":
            life.pause(self._chance.choice((1.0, 6.0, 30.0)) * self._chance.uniform(0.3, 1.5))
        elif kind == "instance: stopped":
            life.stopping = True
            self._stops.append(world.loop.create_task(self._stop(instance)))
        elif kind == "instance: cut off from the store":
            life.cut_off_until = world.loop.time() + self._chance.uniform(1.0, 15.0)
        elif kind == "store: down":
            world.store_down_until = world.loop.time() + self._chance.uniform(0.5, 8.0)

    async def _stop(self, instance: Instance) -> None:
        """A clean stop, as long as patience lasts."""
        try:
            await instance.life.serve(instance.engine.stop(), seconds=20.0)
        except (CutOff, StoreError):
            instance.life.kill("did not stop")
        else:
            self.world.note(instance.life.name, "STOPPED")
            instance.life.kill("stopped")

    # people

    async def _order_later(self, number: int) -> None:
        await asyncio.sleep(self._chance.uniform(0.0, self._rush_seconds))
        order = self._make_order(number)
        copies = self._chance.choice((1, 1, 1, 2))
        answers = await asyncio.gather(*(self._insist(order) for _ in range(copies)))
        jobs = {job.id for job in answers if job}
        if len(jobs) > 1:
            self._truth.breaks("One key is one job.", min(jobs), f"key {order.request_key} gave jobs {sorted(jobs)}")
        for job_id in sorted(jobs):
            self._truth.orders[order.person_id, order.request_key] = job_id
            self._jobs.append(job_id)
            self.world.spawn(self._person(job_id, order))

    def _make_order(self, number: int) -> NewJob:
        chance = self._chance
        address = f"u{chance.choices(range(4), (1, 3, 4, 4))[0]}"
        return NewJob(
            person_id=self._people[int(address[1])],
            request_key=f"k{number}",
            provider=chance.choice(self._providers),
            channel="chat",
            address=address,
            model="model",
            input="{}",
            price=chance.choice((0, 1000, 3000)),
            deadline_seconds=chance.choice(self._patience) * chance.uniform(0.5, 1.5),
            placeholder=self._channel.post(address) if chance.random() < 0.6 else None,
            notice=chance.random() < 0.8,
            correlation=f"o{number}",
        )

    async def _insist(self, order: NewJob) -> Job | None:
        """Order until somebody answers who knows the provider; the key makes it one order."""
        while True:
            try:
                return await self._ask(lambda instance: instance.engine.order(order))
            except NotEnoughMoney as refusal:
                self._check_refusal(refusal, order)
                return None
            except (CutOff, StoreError, Refusal):
                await asyncio.sleep(self._chance.uniform(0.2, 3.0))

    def _check_refusal(self, refusal: NotEnoughMoney, order: NewJob) -> None:
        if refusal.available >= order.price:
            self._truth.breaks("Only the poor are refused.", 0, f"{order.request_key}: {refusal!r}")

    async def _ask(self, request: Callable[[Instance], Coroutine[Any, Any, T]]) -> T:
        instance = self._someone()
        if instance is None:
            raise CutOff
        return await instance.life.serve(request(instance))

    async def _person(self, job_id: int, order: NewJob) -> None:
        """What a person does while waiting: lose patience, delete messages, block the bot, press twice."""
        await asyncio.sleep(self._chance.uniform(0.0, 15.0))
        roll = self._chance.random()
        if roll < 0.15:
            await self._cancel(job_id)
        elif roll < 0.25:
            await self._reuse_key(order)
        if self.world.happens("chat: closed", job=job_id):
            self._truth.closed.setdefault(order.address, self.world.loop.time())
        if self.world.happens("chat: moved", job=job_id):
            self._truth.moved.setdefault(order.address, f"{order.address}-moved")
        for name, message in list(self._truth.messages.items()):
            mine = message.address == order.address and not message.deleted
            if mine and self.world.happens("message: deleted", message=name):
                message.deleted = True

    async def _cancel(self, job_id: int) -> None:
        try:
            await self._ask(lambda instance: instance.engine.cancel(job_id, "person"))
        except (CutOff, GenlockError):
            return
        self._truth.cancelled.add(job_id)

    async def _reuse_key(self, order: NewJob) -> None:
        try:
            await self._ask(lambda instance: instance.engine.order(replace(order, input='{"other": 1}')))
        except (CutOff, StoreError, Refusal):
            return
        self._truth.breaks("A key stands for one order.", 0, f"{order.request_key} was taken for another order")

    # the operator

    async def _operator(self) -> None:
        """Looks around, and sometimes does something."""
        looks: list[Callable[[Store], Awaitable[Any]]] = [
            lambda store: store.counts(),
            lambda store: store.attention(10),
            lambda store: store.jobs(limit=10),
            lambda store: store.callbacks(InboxState.ORPHAN, 10),
            lambda store: store.wallet(self._people[1]),
            lambda store: store.movements(self._people[1], 10),
            lambda store: store.violations(settled=False),
            lambda store: store.person("chat", "bot", "u1"),
        ]
        for turn in range(24):
            await asyncio.sleep(self._chance.uniform(0.2, 2.5))
            if self._chance.random() < 0.05:
                await self._top_up()
            instance = self._someone()
            if instance is None:
                continue
            try:
                if self._jobs and self._chance.random() < 0.5:
                    await instance.life.serve(self._interfere(instance))
                else:
                    await instance.life.serve(self._look(instance, looks[(self.world.seed + turn) % len(looks)]))
            except (CutOff, GenlockError):
                continue

    async def _look(self, instance: Instance, look: Callable[[Store], Awaitable[Any]]) -> None:
        found = await look(_store(instance))
        if found and isinstance(found, list) and isinstance(found[0], Violation):
            self._truth.broken += found

    async def _top_up(self) -> None:
        """Pay once; ask again until it is certain."""
        person = self._people[1]
        self._truth.granted[person] += 500
        key = f"topup:{self._truth.granted[person]}"
        while True:
            try:
                await self._ask(lambda instance: _store(instance).transfer(person, Kind.TOPUP, 500, key))
            except (CutOff, StoreError):
                await asyncio.sleep(1.0)
            else:
                return

    async def _interfere(self, instance: Instance) -> None:
        kit = instance.engine.kit
        job_id = self._chance.choice(self._jobs[-5:])
        roll = self._chance.random()
        if roll < 0.6:
            await operate.resend(kit, job_id, "operator")
        elif roll < 0.65:
            await operate.cancel(kit, job_id, "operator")
            self._truth.cancelled.add(job_id)
        else:
            await operate.retry(kit, job_id, "operator")

    # callbacks

    async def _door(self, provider: str, token: str | None, body: bytes) -> Callback | None:
        try:
            return await self._ask(lambda instance: instance.engine.callback(provider, token, body))
        except (CutOff, StoreError):
            return None


def _store(instance: Instance) -> Store:
    return instance.engine.kit.store
