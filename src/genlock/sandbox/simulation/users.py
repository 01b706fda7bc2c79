"""The users of a simulation: they order, cancel, delete messages, block the bot and repeat requests."""

import asyncio
import json
from dataclasses import replace
from random import Random

from genlock.domain.errors import GenlockError, InsufficientBalance, Refusal, StoreError
from genlock.domain.job import Actor, Delivery, Job, NewJob
from genlock.domain.money import EntryKind
from genlock.domain.result import PartKind
from genlock.ports import Store
from genlock.sandbox.simulation.fleet import Fleet
from genlock.sandbox.simulation.instances import NoAnswer
from genlock.sandbox.simulation.world import World

#: in every n-th seed, orders begin with results of others: chains everywhere would hide what orders alone can cause
CHAINS_EVERY, CHAINS_FIRST = 5, 3
CHAINED_SHARE = 0.9


class Users:
    """Four users: one without balance, one with little, two with more."""

    def __init__(
        self,
        world: World,
        fleet: Fleet,
        *,
        rng: Random,
        providers: tuple[str, ...],
        rush_seconds: float,
        deadlines: tuple[float, ...],
    ) -> None:
        #: their accounts in the store
        self.account_ids: list[int] = []
        #: the jobs they have ordered
        self.jobs: list[int] = []
        self._world = world
        self._truth = world.truth
        self._fleet = fleet
        self._rng = rng
        self._chains = world.stream("chains")
        self._has_chains = world.seed % CHAINS_EVERY == CHAINS_FIRST
        self._providers = providers
        self._rush_seconds = rush_seconds
        self._deadlines = deadlines

    async def create_accounts(self, store: Store) -> None:
        for number in range(4):
            account = await store.ensure_account("chat", "bot", f"u{number}")
            self.account_ids.append(account)
            if money := (0, 4000, 15000, 100000)[number]:
                await store.transfer(account, EntryKind.GRANT, money, f"grant:{account}")
                self._truth.granted[account] = money

    async def order_later(self, number: int) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, self._rush_seconds))
        await self.order(self._make_order(number))

    async def order(self, order: NewJob) -> None:
        copies = self._rng.choice((1, 1, 1, 2))
        answers = await asyncio.gather(*(self._order_until_answered(order) for _ in range(copies)))
        jobs = {job.id for job in answers if job}
        if len(jobs) > 1:
            self._truth.add_violation(
                "An idempotency key gives one job.", min(jobs), f"key {order.request_key} gave jobs {sorted(jobs)}"
            )
        for job_id in sorted(jobs):
            self._truth.orders[order.account_id, order.request_key] = job_id
            if order.placeholder:
                self._truth.placeholders[job_id].add(order.placeholder)
            self.jobs.append(job_id)
            self._world.spawn(self._wait(job_id, order))
            if self._has_chains and self._chains.random() < CHAINED_SHARE:
                self._world.spawn(self._order_next_step(job_id, order))

    async def _order_next_step(self, job_id: int, order: NewJob) -> None:
        """Order something from a result as soon as the user has it: the file comes from the engine's record."""
        while not self._world.faults_over:
            await asyncio.sleep(self._chains.uniform(0.5, 3.0))
            try:
                job = await self._fleet.ask(lambda instance: instance.store.job(job_id))
            except (NoAnswer, StoreError):
                continue
            if job is None or (job.ended and not job.has_result):
                return
            if job.is_received:
                await self._order_from(job, order)
                return

    async def _order_from(self, job: Job, order: NewJob) -> None:
        results = [part.value for part in job.parts if part.kind is not PartKind.MESSAGE]
        if not results:
            return
        chosen = self._chains.choice(results)
        # A result whose delivery is unknown is the user's for nothing, and so is a late one.
        is_free = not job.price or job.late or job.delivery is Delivery.UNKNOWN
        of_job = [
            self._truth.messages[name] for name in self._truth.placeholders[job.id]
        ]  # also of an earlier delivery
        if not is_free and not any(message.shows for message in of_job):
            self._truth.add_violation(
                "An order begins only with a result that its user has got.", job.id, f"{chosen!r} was not shown"
            )
        self._world.note("user", "NEXT_STEP", job=job.id, file=chosen)
        await self.order(
            replace(
                order,
                request_key=f"{order.request_key}+",
                correlation_id=f"{order.correlation_id}+",
                address=job.address,
                input=json.dumps({"file": chosen}),
                placeholder=None,
            )
        )

    def _make_order(self, number: int) -> NewJob:
        rng = self._rng
        address = f"u{rng.choices(range(4), (1, 3, 4, 4))[0]}"
        return NewJob(
            account_id=self.account_ids[int(address[1])],
            request_key=f"k{number}",
            provider=rng.choice(self._providers),
            channel="chat",
            address=address,
            model="model",
            input="{}",
            price=rng.choice((0, 1000, 3000)),
            deadline_seconds=rng.choice(self._deadlines) * rng.uniform(0.5, 1.5),
            placeholder=self._fleet.channel.post(address) if rng.random() < 0.6 else None,
            notice=rng.random() < 0.8,
            correlation_id=f"o{number}",
        )

    async def _order_until_answered(self, order: NewJob) -> Job | None:
        """Repeat the order until an instance that has the provider answers; the idempotency key makes it one order."""
        while True:
            try:
                return await self._fleet.ask(lambda instance: instance.engine.order(order))
            except InsufficientBalance as refusal:
                self._check_refusal(refusal, order)
                return None
            except (NoAnswer, StoreError, Refusal):
                await asyncio.sleep(self._rng.uniform(0.2, 3.0))

    def _check_refusal(self, refusal: InsufficientBalance, order: NewJob) -> None:
        if refusal.available >= order.price:
            self._truth.add_violation(
                "An order is refused only for lack of balance.", 0, f"{order.request_key}: {refusal!r}"
            )

    async def _wait(self, job_id: int, order: NewJob) -> None:
        """Do what a user does while waiting: cancel, reuse the key, block the bot, delete messages."""
        await asyncio.sleep(self._rng.uniform(0.0, 15.0))
        roll = self._rng.random()
        if roll < 0.15:
            await self._cancel(job_id)
        elif roll < 0.25:
            await self._reuse_key(order)
        if self._world.happens("chat: unreachable", job=job_id):
            self._truth.unreachable.setdefault(order.address, self._world.loop.time())
        moved = order.address in self._truth.moved.values()  # a chat moves once
        if self._world.happens("chat: address changed", job=job_id) and not moved:
            self._truth.moved.setdefault(order.address, f"{order.address}-moved")
        for name, message in list(self._truth.messages.items()):
            mine = message.address == order.address and not message.deleted
            if mine and self._world.happens("message: deleted", message=name):
                message.deleted = True

    async def _cancel(self, job_id: int) -> None:
        try:
            await self._fleet.ask(lambda instance: instance.engine.cancel(job_id, "user", Actor.USER))
        except (NoAnswer, GenlockError):
            return
        self._truth.cancelled.add(job_id)

    async def _reuse_key(self, order: NewJob) -> None:
        try:
            await self._fleet.ask(lambda instance: instance.engine.order(replace(order, input='{"other": 1}')))
        except (NoAnswer, StoreError, Refusal):
            return
        self._truth.add_violation(
            "An idempotency key stands for one order.", 0, f"{order.request_key} was accepted for another order"
        )
