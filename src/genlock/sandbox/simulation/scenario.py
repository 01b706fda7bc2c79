"""One seed, one run: orders, people, operators and instances in trouble; then calm, until nothing is left to do."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass

from genlock.domain.events import Event
from genlock.engine.context import EngineRules, UnknownSubmit
from genlock.engine.limits import RateLimit
from genlock.ports import Store, Violation
from genlock.sandbox.simulation.crashes import CALLS, POINTS, Fate
from genlock.sandbox.simulation.fleet import Fleet
from genlock.sandbox.simulation.operator import Operator
from genlock.sandbox.simulation.people import People
from genlock.sandbox.simulation.verdict import check
from genlock.sandbox.simulation.world import Entry, World


def _rare(call: str) -> int:
    """How many times more often than others a call is a fate: few seeds come to it at all."""
    often = {"expire_callback": 24, "mark_result_invalid": 6, "settle_callback": 3, "progress": 3}
    often |= {"adopt_task": 2, "change_address": 2, "send": 2, "leave_role": 2, "notify": 1}
    return often.get(call.rpartition(".")[2], 0)


TROUBLE_SECONDS = 45.0
#: longer than any pause between two tries, and much longer than a queue in the inbox
SETTLE_SECONDS = 200.0
#: points of each kind per seed
FATES = 6
#: what instances do all the time
JANITORS = ("claim", "claim_poison_jobs", "heartbeat", "take_role", "claim_callbacks", "match_orphans")
FATEFUL = [
    *POINTS,
    *(f"{side}{call}" for turn in range(24) for call in CALLS for side in ("before ", "after ") if turn < _rare(call)),
]
HEARTBEAT_SECONDS = 1.0
SILENT_SECONDS = 4.0
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


class Scenario:
    """What a seed decides before anything happens, and the run that comes of it."""

    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self._truth = world.truth
        self._rng = world.stream("people")
        self._rules = self._make_rules()
        #: sometimes everybody orders at once
        rush_seconds = self._rng.choice((0.1, 20.0, 20.0, 20.0))
        #: in seconds, what people order with; sometimes nobody has any
        patience = self._rng.choice(((6.0,), (6.0, 20.0, 60.0), (6.0, 20.0, 60.0)))
        public_url = "https://sim" if self._rng.random() < 0.9 else None
        #: in a deploy, only the newer instances know a new provider
        providers = ("kie", "new") if self._rng.random() < 0.2 else ("kie",)
        fates = {**self._make_fates("slept", 11), **self._make_fates("killed", 0)}
        if self._rng.random() < 0.8:
            # What only somebody does who slept through the answer of the provider.
            nap = Fate(kind="slept", passings=self._rng.randint(1, 4), seconds=self._rng.uniform(7.0, 20.0))
            fates.setdefault("after provider.create", nap)
        self._fleet = Fleet(
            world,
            store,
            rng=self._rng,
            rules=self._rules,
            fates=fates,
            providers=providers,
            public_url=public_url,
        )
        self._people = People(
            world,
            self._fleet,
            rng=self._rng,
            providers=providers,
            rush_seconds=rush_seconds,
            patience=patience,
        )
        self._operator = Operator(world, self._fleet, self._people, rng=self._rng)

    def _make_rules(self) -> EngineRules:
        rng = self._rng
        limited = rng.random() < 0.3
        return EngineRules(
            lease_seconds=12.0,
            heartbeat_seconds=HEARTBEAT_SECONDS,
            silent_seconds=SILENT_SECONDS,
            role_seconds=SILENT_SECONDS,
            claim_seconds=0.5,
            sweep_seconds=2.0,
            orphan_expire_seconds=30.0,
            grace_seconds=rng.choice((5.0, 20.0)),
            last_answer_seconds=rng.choice((0.0, 20.0)),
            unknown_submit=UnknownSubmit.PARK if rng.random() < 0.2 else UnknownSubmit.RELEASE,
            delivery_attempts=rng.choice((3, 40)),
            stage_attempts=rng.choice((2, 10)),
            capacity=rng.choice((2, 1000, 1000)),
            stop_seconds=5.0,
            limits_idle_seconds=20.0,
            limits={"create:kie": RateLimit(interval=0.5, burst=2), "status:kie": RateLimit(interval=0.2)}
            if limited
            else {},
        )

    def _make_fates(self, kind: str, offset: int) -> dict[str, Fate]:
        """Seeds take turns, so that every point is met by somebody, soon or late."""
        fates = {}
        for place in range(FATES):
            point = FATEFUL[((self.world.seed + offset) * FATES + place) % len(FATEFUL)]
            often = point.rpartition(".")[2] in JANITORS
            passings = self._rng.randint(1, 40) if often else self._rng.choice((1, 1, 1, 2))
            fates[point] = Fate(kind=kind, passings=passings, seconds=self._rng.uniform(3.0, 15.0))
        return fates

    async def run(self) -> list[Violation]:
        await self._people.arrive(self.store)
        for _ in range(self._rng.randint(2, 3)):
            await self._fleet.start()
        for number in range(self._rng.randint(6, 12)):
            self.world.spawn(self._people.order_later(number))
        self.world.spawn(self._fleet.trouble())
        for _ in range(2):
            self.world.spawn(self._operator.work())
        await asyncio.sleep(TROUBLE_SECONDS)
        await self._calm_down()
        if not await self._settle():
            subjects = [str(job.id) for job in await self.store.jobs(limit=1000) if job.due_at is not None]
            return [
                Violation(rule="Work comes to an end.", subject=subject, detail=f"not after {SETTLE_SECONDS} s of calm")
                for subject in subjects or ["-"]
            ]
        await asyncio.gather(*(instance.engine.stop() for instance in self._fleet.instances if instance.up))
        return [
            *self._truth.broken,
            *await check(self._truth, self.store, self._people.numbers, self._rules),
            *self._check_epochs(),
        ]

    def _check_epochs(self) -> list[Violation]:
        """A role's epoch has one holder."""
        account_summaries = defaultdict(set)
        for _, who, what, facts in self.world.history:
            if what == Event.LOCK_ACTIVE:
                account_summaries[facts["epoch"]].add(who)
        return [
            Violation(rule="An epoch has one holder.", subject="-", detail=f"epoch {epoch}: {sorted(names)}")
            for epoch, names in account_summaries.items()
            if len(names) > 1
        ]

    async def _calm_down(self) -> None:
        """No new trouble: some die once more, as in a deploy, and fresh ones start. Sleepers wake when they wake."""
        for instance in self._fleet.instances:
            if self._rng.random() < 0.3:
                instance.life.kill("deploy")
        self.world.calm = True
        self.world.store_down_until = 0.0
        for instance in self._fleet.instances:
            instance.life.cut_off_until = 0.0
        self.world.note("world", "CALM")
        for _ in range(2):
            await self._fleet.start()
        await asyncio.sleep(TAKEOVER_SECONDS)
        dead = {instance.life.name for instance in self._fleet.instances if instance.life.missed}
        for job in await self.store.jobs(limit=1000):
            if job.lease_owner in dead:
                rule = "A dead instance's work is taken over within seconds."
                self._truth.breaks(rule, job.id, f"leased to {job.lease_owner} {TAKEOVER_SECONDS} s after")

    async def _settle(self) -> bool:
        """Wait until nothing is due anywhere."""
        give_up = self.world.loop.time() + SETTLE_SECONDS
        while self.world.loop.time() < give_up:
            await asyncio.sleep(2.0)
            asleep = any(instance.life.asleep for instance in self._fleet.instances)
            counts = await self.store.counts()
            counts.pop("attention")
            if not (self.world.busy or asleep or any(counts.values())):
                return True
        return False
