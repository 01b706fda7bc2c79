"""Four instances with their own pools on one PostgreSQL."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from genlock.domain.job import Delivery, Job, State, hash_secret
from genlock.domain.money import EntryKind, HoldState
from genlock.ports import JobEnd, Lease
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import PRICE, SECRET, account_with, end, finish, order
from tests.stores.conftest import RecordingObserver

T = TypeVar("T")
INSTANCES = 4
ACCOUNT_COUNT = 60
MONEY = 10**9


@dataclass(frozen=True)
class Instance:
    """One process of a deployment."""

    store: PostgresStore
    lease: Lease


@dataclass(frozen=True)
class Fleet:
    """All instances, the accounts they serve, and a source of randomness."""

    instances: list[Instance]
    accounts: list[int]
    observer: RecordingObserver
    rng: random.Random

    def any(self) -> Instance:
        return self.rng.choice(self.instances)

    async def at_once(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run all calls concurrently, in random order."""
        order = list(enumerate(calls))
        self.rng.shuffle(order)
        answers = await asyncio.gather(*(call for _, call in order))
        return [answer for _, answer in sorted(zip((place for place, _ in order), answers, strict=True), key=_place)]

    async def running_jobs(self, count: int) -> list[Job]:
        """Jobs that wait for their provider, without a lease."""

        async def start(number: int) -> Job:
            instance = self.any()
            wanted = order(self.accounts[number % ACCOUNT_COUNT], deadline_seconds=3600.0)
            job = (await instance.store.accept_job(wanted, instance.lease)).job
            assert await instance.store.begin_submit(job.id, job.lease_token, hash_secret(SECRET), None)
            assert await instance.store.mark_submitted(job.id, job.lease_token, f"task-{job.id}", 3600.0)
            return job

        return await self.at_once(start(number) for number in range(count))

    async def sending_jobs(self, count: int, holder: Instance | None) -> list[Job]:
        """Jobs whose result is being delivered, leased to the holder if one is given."""

        async def succeed(job: Job) -> Job:
            instance = holder or self.any()
            attempt = await end(instance.store, job, State.SUCCEEDED, holder.lease if holder else None)
            assert attempt.job is not None
            return attempt.job

        return await self.at_once(succeed(job) for job in await self.running_jobs(count))

    async def all_delivered_and_paid_once(self, jobs: list[Job]) -> None:
        store = self.instances[0].store
        rows = await store.jobs(limit=10 * len(jobs))
        assert {row.id for row in rows} == {job.id for job in jobs}
        assert {(row.delivery, row.hold_state) for row in rows} == {(Delivery.DELIVERED, HoldState.CAPTURED)}
        wallets = [await store.wallet(account_id) for account_id in self.accounts]
        assert sum(wallet.available for wallet in wallets) == ACCOUNT_COUNT * MONEY - PRICE * len(jobs)
        assert sum(wallet.held for wallet in wallets) == 0
        lines = await store.session.pool.fetch("SELECT job_id, kind FROM ledger WHERE job_id IS NOT NULL")
        assert Counter(map(tuple, lines)) == Counter(
            (job.id, kind) for job in jobs for kind in (EntryKind.HOLD.value, EntryKind.CAPTURE.value)
        )
        assert await store.violations(settled=False) == []
        assert self.observer.total("store_retries") == 0, "no deadlock, no time-out"


def _place(pair: tuple[int, object]) -> int:
    return pair[0]


def winners(attempts: Iterable[JobEnd]) -> list[Job]:
    return [attempt.job for attempt in attempts if attempt.job is not None]


async def deliver_claims(instance: Instance, wanted: int, done: list[int]) -> None:
    """Claim and deliver until all instances together have delivered `wanted` jobs."""
    while len(done) < wanted:
        jobs = await instance.store.claim_jobs(50, instance.lease)
        sent = await asyncio.gather(*(finish(instance.store, job, lease=instance.lease) for job in jobs))
        done += [job.id for job, ok in zip(jobs, sent, strict=True) if ok]


@asynccontextmanager
async def open_fleet(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[Fleet]:
    instances = [
        Instance(
            await PostgresStore.open(postgres_url, observer=observer, connections=10),
            Lease(owner=f"instance-{number}", seconds=600.0),
        )
        for number in range(INSTANCES)
    ]
    accounts = [await account_with(instances[0].store, MONEY) for _ in range(ACCOUNT_COUNT)]
    yield Fleet(instances, accounts, observer, random.Random(7))
    await asyncio.gather(*(instance.store.close() for instance in instances))
