"""The scenario of one seed: users, operators and faulty instances; then no more faults, until no work is left."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from genlock.domain.events import Event
from genlock.engine.context import EngineRules, UnknownSubmit
from genlock.ports import Database, Store, Violation
from genlock.ports.provider import RateLimit
from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.afterwards import Afterwards
from genlock.sandbox.simulation.api_clients import ApiClients
from genlock.sandbox.simulation.broadcast_runs import BroadcastRuns
from genlock.sandbox.simulation.chats import Chats
from genlock.sandbox.simulation.checker import check
from genlock.sandbox.simulation.clocks import WRONG_SECONDS_MAX, Clocks
from genlock.sandbox.simulation.erasures import Erasures
from genlock.sandbox.simulation.fleet import Fleet
from genlock.sandbox.simulation.instances import CALLS, POINTS, InstanceFault
from genlock.sandbox.simulation.operator import Operator
from genlock.sandbox.simulation.payment_runs import PaymentRuns
from genlock.sandbox.simulation.users import Users
from genlock.sandbox.simulation.world import Entry, World


def _extra_weight(call: str) -> int:
    """Return how often a call is added to the fault points, because few seeds reach it at all."""
    often = {"expire_callback": 24, "mark_result_invalid": 6, "settle_callback": 3, "progress": 3, "begin_progress": 2}
    often |= {"adopt_task": 2, "change_address": 2, "send": 2, "release_role": 2, "notify": 1}
    return often.get(call.rpartition(".")[2], 0)


FAULT_SECONDS = 45.0
#: longer than any back-off, and much longer than it takes to empty the inbox
SETTLE_SECONDS = 200.0
#: fault points of each kind per seed
FAULTS_PER_KIND = 6
#: fault points of each kind at the calls of an addition
FURTHER_FAULTS_PER_KIND = 3
#: calls that instances repeat all the time
FREQUENT_CALLS = ("claim_jobs", "claim_poison_jobs", "heartbeat", "take_role", "claim_callbacks", "match_orphans")
FAULT_POINTS = [
    *POINTS,
    *(
        f"{side}{call}"
        for turn in range(24)
        for call in CALLS
        for side in ("before ", "after ")
        if turn < _extra_weight(call)
    ),
]
HEARTBEAT_SECONDS = 1.0
#: longer than any late progress edit of the faulty channel
LATE_PROGRESS_SECONDS = 40.0
SILENT_SECONDS = 4.0
#: a dead instance's jobs must be released after this long: missed heartbeats, another instance's next one, its call
TAKEOVER_SECONDS = SILENT_SECONDS + 2 * HEARTBEAT_SECONDS + 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """The outcome of one seed."""

    seed: int
    violations: list[Violation]
    history: list[Entry]
    faults: Counter[str]
    virtual_seconds: float


class Scenario:
    """What a seed decides in advance, and the run that follows."""

    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self._truth = world.truth
        self._rng = world.stream("people")
        self._rules = self._make_rules()
        # What is due after the database's clock was set back waits until it is that time again, but for jobs of a dead
        # instance: its heartbeat of the future counts as one of now.
        self._settle_seconds = SETTLE_SECONDS + (2 * WRONG_SECONDS_MAX if world.has("clocks") else 0.0)
        self._takeover_seconds = TAKEOVER_SECONDS + (SILENT_SECONDS if world.has("clocks") else 0.0)
        #: sometimes all users order at once
        rush_seconds = self._rng.choice((0.1, 20.0, 20.0, 20.0))
        #: deadlines of orders, in seconds; sometimes all are short
        deadlines = self._rng.choice(((6.0,), (6.0, 20.0, 60.0), (6.0, 20.0, 60.0)))
        public_url = "https://sim" if self._rng.random() < 0.9 else None
        #: during a rolling deploy only the newer instances have a new provider
        providers = ("kie", "new") if self._rng.random() < 0.2 else ("kie",)
        instance_faults = self._make_instance_faults("paused", 11) | self._make_instance_faults("killed", 0)
        if self._rng.random() < 0.8:
            # Exercises what only an instance does that was paused during the provider's answer.
            pause = InstanceFault(
                kind="paused", passes_left=self._rng.randint(1, 4), seconds=self._rng.uniform(7.0, 20.0)
            )
            instance_faults.setdefault("after provider.create", pause)
        self._fleet = Fleet(
            world,
            store,
            rng=self._rng,
            rules=self._rules,
            instance_faults=instance_faults,
            providers=providers,
            public_url=public_url,
        )
        self._users = Users(
            world,
            self._fleet,
            rng=self._rng,
            providers=providers,
            rush_seconds=rush_seconds,
            deadlines=deadlines,
        )
        self._operator = Operator(world, self._fleet, self._users, rng=self._rng)
        self._additions = self._make_additions(cast("Database", store))
        for addition in self._additions:
            self._fleet.make_tasks.append(addition.tasks_of)
            self._add_instance_faults(instance_faults, addition.calls)

    def _make_additions(self, store: Database) -> list[Addition]:
        world, more = self.world, list[Addition]()
        if world.has_chats:
            more.append(Chats(world, store, self._fleet, self._users))
        if world.has("erasures"):
            more.append(Erasures(world, store, self._fleet, self._users))
        if world.has("broadcasts"):
            more.append(BroadcastRuns(world, store, self._fleet))
        if world.has("clients"):
            more.append(ApiClients(world, store, self._fleet))
        if world.has("clocks"):
            more.append(Clocks(world, self._fleet))
        if world.has("payments"):
            more.append(PaymentRuns(world, store, self._fleet, self._users))
        return more

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
            start_reserve=0.0,  # so that many results are late
            unknown_submit=UnknownSubmit.PARK if rng.random() < 0.2 else UnknownSubmit.RELEASE,
            delivery_attempts=rng.choice((3, 40)),
            stage_attempts=rng.choice((2, 10)),
            capacity=rng.choice((2, 1000, 1000)),
            stop_seconds=5.0,
            late_progress_seconds=LATE_PROGRESS_SECONDS,
            limits_idle_seconds=20.0,
            limits={"create:kie": RateLimit(interval=0.5, burst=2), "status:kie": RateLimit(interval=0.2)}
            if limited
            else {},
        )

    def _make_instance_faults(self, kind: str, offset: int) -> dict[str, InstanceFault]:
        """Choose fault points; seeds take turns, so that every point is hit by some seed."""
        instance_faults = {}
        for place in range(FAULTS_PER_KIND):
            point = FAULT_POINTS[((self.world.seed + offset) * FAULTS_PER_KIND + place) % len(FAULT_POINTS)]
            often = point.rpartition(".")[2] in FREQUENT_CALLS
            passes_left = self._rng.randint(1, 40) if often else self._rng.choice((1, 1, 1, 2))
            instance_faults[point] = InstanceFault(
                kind=kind, passes_left=passes_left, seconds=self._rng.uniform(3.0, 15.0)
            )
        return instance_faults

    def _add_instance_faults(self, instance_faults: dict[str, InstanceFault], calls: Sequence[str]) -> None:
        """Choose further fault points at these calls."""
        rng = self.world.stream("further faults")
        for kind in ("killed", "paused") * FURTHER_FAULTS_PER_KIND if calls else ():
            point = f"{rng.choice(('before', 'after'))} {rng.choice(calls)}"
            fault = InstanceFault(kind=kind, passes_left=rng.choice((1, 1, 2, 4)), seconds=rng.uniform(3.0, 15.0))
            instance_faults.setdefault(point, fault)

    async def run(self) -> list[Violation]:
        supervisor = self.world.loop.create_task(self._fleet.replace_crashed()) if self.world.poison else None
        try:
            return await self._run()
        finally:
            if supervisor:
                supervisor.cancel()

    async def _run(self) -> list[Violation]:
        await self._users.create_accounts(self.store)
        for addition in self._additions:
            await addition.prepare()
        for _ in range(self._rng.randint(2, 3)):
            await self._fleet.start()
        for number in range(self._rng.randint(6, 12)):
            self.world.spawn(self._users.order_later(number))
        self.world.spawn(self._fleet.inject_faults())
        for _ in range(2):
            self.world.spawn(self._operator.work())
        if self.world.resends_after_progress:
            self.world.spawn(self._operator.resend_after_progress())
        if self.world.afterwards:
            afterwards = Afterwards(self.world, self._fleet, self._users)
            self.world.spawn(afterwards.work())
        for addition in self._additions:
            self.world.spawn(addition.work())
        await asyncio.sleep(FAULT_SECONDS)
        await self._stop_faults()
        if not await self._settle():
            subjects = [str(job.id) for job in await self.store.jobs(limit=1000) if job.due_at is not None]
            return [
                Violation(
                    rule="All work ends.", subject=subject, detail=f"not after {self._settle_seconds} s without faults"
                )
                for subject in subjects or ["-"]
            ]
        await asyncio.gather(*(self._fleet.stop(instance) for instance in self._fleet.instances if instance.up))
        # First: the additions know what else was granted.
        further = [violation for addition in self._additions for violation in await addition.check()]
        accounts = sorted({*self._users.account_ids, *self._truth.granted})
        return [
            *self._truth.violations,
            *await check(self._truth, self.store, accounts, self._rules),
            *self._check_epochs(),
            *further,
        ]

    def _check_epochs(self) -> list[Violation]:
        """Check that each epoch of the leader role had one holder."""
        holders = defaultdict(set)
        for _, who, what, fields in self.world.history:
            if what == Event.LOCK_ACTIVE:
                holders[fields["epoch"]].add(who)
        return [
            Violation(rule="An epoch has one holder.", subject="-", detail=f"epoch {epoch}: {sorted(names)}")
            for epoch, names in holders.items()
            if len(names) > 1
        ]

    async def _stop_faults(self) -> None:
        """Stop injecting faults: kill some instances a last time, as a deploy does, and start fresh ones."""
        for instance in self._fleet.instances:
            if self._rng.random() < 0.3:
                instance.lifecycle.kill("deploy")
        self.world.faults_over = True
        self.world.store_down_until = 0.0
        for instance in self._fleet.instances:
            instance.lifecycle.disconnected_until = 0.0
        self.world.note("world", "FAULTS_OVER")
        for _ in range(2):
            await self._fleet.start()
        await self._check_takeovers()

    async def _check_takeovers(self) -> None:
        """Check the jobs of each dead instance some seconds after its crash, which may follow the end of the faults."""
        faults_over, checked = max(self.world.loop.time(), self.world.clock_set_at), set[str]()
        while True:
            await asyncio.sleep(max(0.0, self._takeover_due(faults_over, checked) - self.world.loop.time()))
            now = self.world.loop.time()
            dead = {
                instance.lifecycle.name
                for instance in self._fleet.instances
                if instance.lifecycle.missed
                and now >= max(instance.lifecycle.died_at, faults_over) + self._takeover_seconds
            }
            for job in await self.store.jobs(limit=1000):
                if job.lease_owner in dead - checked:
                    rule = "A dead instance's jobs are taken over within seconds."
                    self._truth.add_violation(
                        rule, job.id, f"leased to {job.lease_owner} {self._takeover_seconds} s after"
                    )
            checked |= dead
            if all(
                instance.lifecycle.name in checked for instance in self._fleet.instances if instance.lifecycle.missed
            ):
                return

    def _takeover_due(self, faults_over: float, checked: set[str]) -> float:
        """Return when the jobs of the next dead instance must have been taken over."""
        crashed_at = [
            instance.lifecycle.died_at
            for instance in self._fleet.instances
            if instance.lifecycle.missed and instance.lifecycle.name not in checked
        ]
        return max(min(crashed_at, default=0.0), faults_over) + self._takeover_seconds

    async def _settle(self) -> bool:
        """Wait until no job, callback or background task is left. False if that takes too long."""
        give_up = self.world.loop.time() + self._settle_seconds
        while self.world.loop.time() < give_up:
            await asyncio.sleep(2.0)
            asleep = any(instance.lifecycle.asleep for instance in self._fleet.instances)
            counts = await self.store.counts()
            counts.pop("attention")
            waits = self.world.busy or asleep or any(counts.values())
            if not waits and all([await addition.is_settled() for addition in self._additions]):
                return True
        return False
