"""A random history of a store: orders, payments, refunds, and what operators do later."""

from collections.abc import Sequence
from random import Random
from typing import Any

from genlock.domain.delivery import again
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import EntryKind
from genlock.stores.database import SqlDatabase
from tests.engine.manual_clock import ManualClock
from tests.stores.builders import RESULT, account_with, claimed, end, ended, finish, queued, running, see

MODELS = (("kie", "cat"), ("kie", "dog"), ("other", "cat"))
HOUR = 3600.0


class History:
    """Random orders, payments and what operators do later, through the port of the store alone."""

    #: seconds between two steps
    pauses: Sequence[float] = (0.3, 1.0, 40.0, 900.0, 2 * HOUR, 30 * HOUR, 120 * HOUR)

    def __init__(self, store: SqlDatabase, clock: ManualClock, rng: Random) -> None:
        self.store, self.clock, self.rng = store, clock, rng
        self.accounts: list[int] = []
        self.jobs: list[int] = []
        self.charges: list[str] = []

    async def step(self) -> None:
        if not self.accounts or self.rng.random() < 0.15:
            self.accounts.append(await account_with(self.store, 100_000))
        await self.rng.choice([self.order, self.order, self.order, self.pay, self.refund, self.change_later])()
        self.clock.advance(self.rng.choice(self.pauses))

    async def order(self) -> None:
        provider, model = self.rng.choice(MODELS)
        wanted = {
            "account_id": self.rng.choice(self.accounts), "provider": provider, "model": model,
            "price": self.rng.choice([0, 100, 250]), "notice": False, "deadline_seconds": 1e9,
            "bot": self.rng.choice(["bot", "bot", "second"]),
        }  # fmt: skip
        make = self.rng.choice([self._queue, self._deliver, self._deliver, self._lose, self._fail, self._cancel])
        self.jobs.append((await make(wanted)).id)

    async def _queue(self, wanted: dict[str, Any]) -> Job:
        return await queued(self.store, **wanted)

    async def _deliver(self, wanted: dict[str, Any]) -> Job:
        job = await running(self.store, **wanted)
        self.clock.advance(self.rng.uniform(1.0, 300.0))
        found = (await end(self.store, job, State.SUCCEEDED, cost=self.rng.choice([None, 700]))).job
        assert found
        self.clock.advance(self.rng.uniform(0.01, 2.0))
        assert await finish(self.store, found)
        return found

    async def _lose(self, wanted: dict[str, Any]) -> Job:
        job = await ended(self.store, **wanted)
        assert await finish(self.store, job, Delivery.UNDELIVERABLE)
        return job

    async def _fail(self, wanted: dict[str, Any]) -> Job:
        job = await ended(self.store, self.rng.choice([State.FAILED, State.EXPIRED]), **wanted)
        assert await finish(self.store, job)
        return job

    async def _cancel(self, wanted: dict[str, Any]) -> Job:
        job = (await end(self.store, await running(self.store, **wanted), State.CANCELLED)).job
        assert job
        assert await finish(self.store, job)
        return job

    async def change_later(self) -> None:
        """A resend, a late result, a late cost, or the end of an open job."""
        if not self.jobs:
            return
        job = await see(self.store, self.rng.choice(self.jobs))
        if not job.ended:
            await end(self.store, job, self.rng.choice([State.SUCCEEDED, State.FAILED]))
        elif job.state is State.CANCELLED:
            await end(self.store, job, State.SUCCEEDED, task_id=job.task_id, cost=self.rng.randrange(1, 500))
        elif job.state in (State.FAILED, State.EXPIRED) and not job.late:
            await end(self.store, job, State.SUCCEEDED, task_id=job.task_id, cost=300)
        elif job.unpaid:
            await self.store.resend_paid_job(job.id, again(RESULT), job.lease_token)
        else:
            await self.store.resend_job(job.id, again(RESULT), job.lease_token)
        if self.rng.random() < 0.7:
            await self.finish_deliveries(job.id)

    async def finish_deliveries(self, only: int | None = None) -> None:
        self.clock.advance(40.0)  # leases expire
        for job_id in [only] if only else self.jobs:
            job = await see(self.store, job_id)
            if job.ended and job.delivery in (Delivery.PENDING, Delivery.SENDING):
                await finish(self.store, await claimed(self.store, job))
                self.clock.advance(40.0)

    async def pay(self) -> None:
        self.charges.append(charge := f"charge-{len(self.charges)}")
        account_id = self.rng.choice(self.accounts)
        stars = self.rng.randrange(1, 500)
        assert await self.store.transfer(account_id, EntryKind.TOPUP, stars * 10, charge)
        assert await self.store.add_payment(charge, account_id, stars, stars * 10)

    async def refund(self) -> None:
        if self.charges and await self.store.begin_refund(charge := self.rng.choice(self.charges), "asked"):
            if self.rng.random() < 0.5:
                await self.store.finish_refund(charge)
            else:
                await self.store.undo_refund(charge, 1, "refused")
