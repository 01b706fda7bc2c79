"""Erasure of accounts while their orders, deliveries, notices, refunds and late results are under way."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from genlock.domain.inbox import InboxState
from genlock.domain.job import Job
from genlock.domain.queued_message import ERASED, QUEUED, QueuedMessage
from genlock.engine.cancellation import uninterrupted
from genlock.engine.context import EngineContext
from genlock.engine.erasure import DAY, ERASURE, Erasure
from genlock.engine.periodic import PeriodicTask
from genlock.ports import Database, Violation
from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import InstanceLifecycle
from genlock.sandbox.simulation.users import Users
from genlock.sandbox.simulation.world import World

BOT = "bot"
PERIOD_SECONDS = 1.5
DELAY_SECONDS = 5.0
#: the age at which the inputs of orders are erased, without a request
INPUT_SECONDS = 25.0


class Erasures(Addition):
    calls = tuple(
        f"store.{name}"
        for name in (
            "open_jobs_until",
            "erase_jobs",
            "erase_messages",
            "erase_account",
            "erase_inputs",
            "kv_replace_by_message",
        )
    )

    def __init__(self, world: World, store: Database, fleet: Fleet, users: Users) -> None:
        self._world = world
        self._truth = world.truth
        self._store = store
        self._fleet = fleet
        self._users = users
        self._rng = world.stream("erasures")
        #: by account, up to which job erasures were certainly asked for, and up to which they are perhaps carried out
        self._asked: Counter[int] = Counter()
        self._stored: Counter[int] = Counter()
        self._requests = 0
        #: by account, how often an instance was asked for an erasure, and how often the end of one was told
        self._requested: Counter[int] = Counter()
        self._told: Counter[int] = Counter()
        #: when jobs were erased, and their fencing tokens then: a call with an older one may still be on the wire
        self._erased: dict[int, tuple[float, int]] = {}
        #: orders that were erased although every request was for earlier ones, up to this id
        self._too_new: dict[int, int] = {}
        world.truth.watchers.append(self._watch)

    async def prepare(self) -> None:
        for account_id in self._users.account_ids:
            await self._store.ensure_profile_and_draft(
                account_id, chat=None, language="en", name="", username="", referred_by=None
            )

    def tasks_of(self, lifecycle: InstanceLifecycle, ctx: EngineContext) -> Sequence[PeriodicTask]:
        async def send_queued(message: QueuedMessage) -> bool:
            """Send the message as `tell` does: at most once."""
            if not await ctx.store.kv_delete(message.key):
                return False
            self._told[message.account_id] += 1
            return True

        erasure = Erasure(cast("Database", ctx.store), send_queued=send_queued)

        async def run() -> None:
            for account_id in await uninterrupted(erasure.run(BOT, older_than=DELAY_SECONDS)):
                self._world.note(lifecycle.name, "ERASED", account=account_id)
            await erasure.erase_old_inputs(INPUT_SECONDS / DAY)

        return [PeriodicTask(name="erase_data", period_seconds=PERIOD_SECONDS, run=run, leader_only=True)]

    async def work(self) -> None:
        while not self._world.faults_over:
            await asyncio.sleep(self._rng.uniform(1.0, 12.0))
            await self._request(self._rng.choice(self._users.account_ids))

    async def _request(self, account_id: int) -> None:
        """Ask for an erasure until an instance answers."""
        self._requests += 1
        key, newest = f"erase:{self._requests}", await self._newest_job(account_id)

        async def ask(instance: Instance) -> None:
            self._requested[account_id] += 1
            await Erasure(cast("Database", instance.store)).request(account_id, "user", key)

        await self._fleet.ask_until_answered(ask, self._rng)
        self._asked[account_id] = newest
        self._world.note("user", "ERASE", account=account_id, until=newest)

    async def _newest_job(self, account_id: int) -> int:
        return max((job.id for job in await self._store.jobs(account_id=account_id, limit=1)), default=0)

    def _watch(self, name: str, args: tuple[Any, ...], answer: Any) -> None:
        if name in ("kv_put", "kv_put_if_absent") and args[0].startswith(ERASURE):
            account_id = int(args[0].removeprefix(ERASURE))
            self._stored[account_id] = max(self._stored[account_id], int(args[1]))
        if name == "erase_jobs" and answer:
            self._world.spawn(self._note_erased(args[0], self._stored[args[0]]))

    async def _note_erased(self, account_id: int, until: int) -> None:
        """Note which orders are erased; the requests so far were for those up to this id."""
        for job in await self._store.jobs(account_id=account_id, limit=1000):
            if job.erased and not job.parts:
                if job.id > until and job.id not in self._truth.erased:
                    self._too_new[job.id] = until
                self._truth.erased.add(job.id)
                self._erased.setdefault(job.id, (self._world.loop.time(), job.lease_token))

    # checking

    async def is_settled(self) -> bool:
        return not [entry for entry in await self._store.kv_list(ERASURE, BOT) if not await self._waits(entry.key)]

    async def _waits(self, key: str) -> int:
        """Return how many jobs an erasure waits for: an operator has to decide about them."""
        account_id = int(key.removeprefix(ERASURE))
        entry = await self._store.kv_get(key, BOT)
        return await self._store.open_jobs_until(account_id, int(entry.value)) if entry else 0

    async def check(self) -> list[Violation]:
        waiting = {int(entry.key.removeprefix(ERASURE)) for entry in await self._store.kv_list(ERASURE, BOT)}
        found = []
        for job in await self._store.jobs(limit=1000):
            if job.account_id not in waiting and job.id <= self._asked[job.account_id]:
                found += await self._check_erased(job)
        rule = "Only orders from before the request are erased."
        for job_id, until in self._too_new.items():
            found.append(Violation(rule=rule, subject=str(job_id), detail=f"the request was for those up to {until}"))
        return [*found, *self._check_shown(), *await self._check_told()]

    async def _check_told(self) -> list[Violation]:
        """Check that no user was told more ends of erasures than were asked for; the leader sends what is queued."""
        for entry in await self._store.kv_list(QUEUED):
            if f":{ERASED}" in entry.key:  # others tell of refunds
                self._told[QueuedMessage.load(entry.key, entry.value).account_id] += 1
        return [
            Violation(rule="The end of an erasure is told once.", subject=str(account_id), detail=f"{times} times")
            for account_id, times in self._told.items()
            if times > self._requested[account_id]
        ]

    async def _check_erased(self, job: Job) -> list[Violation]:
        """Check that nothing is left of what the user wrote and got."""
        left: list[object] = [job.input] if job.input != "null" else []
        left += [*job.parts, *([job.error_text] if job.error_text else [])]
        attempts = await self._store.attempts(job.id)
        left += [attempt.sent_input for attempt in attempts if attempt.sent_input is not None]
        tasks = {attempt.task_id for attempt in attempts if attempt.task_id is not None}
        for state in InboxState:
            for callback in await self._store.callbacks(state, 1000):
                mine = callback.job_id == job.id or (callback.job_id is None and callback.task_id in tasks)
                if mine and callback.body:
                    left.append(callback)
        rule = "Nothing is left of an erased order."
        return [Violation(rule=rule, subject=str(job.id), detail=repr(left))] if left else []

    def _check_shown(self) -> list[Violation]:
        """Check that no instance has shown or told anything of an order after its erasure."""
        rule = "An erased order is not shown any more."
        return [
            Violation(rule=rule, subject=str(fields["job"]), detail=f"{what} at {at:.3f}")
            for at, _, what, fields in self._world.history
            if what in ("SHOWN", "NOTICE") and fields["job"] in self._erased
            if (at, fields["token"]) >= self._erased[fields["job"]]
            and fields["token"] >= self._erased[fields["job"]][1]
        ]
