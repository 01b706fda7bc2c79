"""Poison jobs: crashes of their workers are counted, and they are claimed a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from genlock.domain.delivery import again
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.poison import ISOLATED_FROM, SLOTS
from genlock.ports import Lease, Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
    RESULT,
    ManualClock,
    claimed,
    delivered,
    end,
    ended,
    finish,
    queued,
    running,
    see,
    submitting,
)
from tests.stores.conftest import Raw

MANY = (100,) * len(SLOTS)


async def taken(store: Store, job: Job, lease: Lease = ME) -> Job:
    """Claim the due poison jobs and return this one."""
    [found] = [leased for leased in await store.claim_poison_jobs(MANY, lease) if leased.id == job.id]
    return found


async def poison_job(store: Store, clock: ManualClock, crash_count: int) -> Job:
    """A due job with this many crashes, without a lease."""
    job = await ended(store)
    for number in range(crash_count):
        if number:
            job = await taken(store, job)
        assert await store.release_leases(ME.owner, crashed=True) >= 1
        job = await see(store, job)
        assert job.due_at is not None
        clock.advance((job.due_at - clock.now()).total_seconds())
    return await see(store, job)


async def test_a_crash_counts_for_every_leased_job_and_a_clean_stop_does_not(store: Store) -> None:
    held = [await queued(store), await ended(store)]
    waiting, others = await running(store, poll_after=60.0), await queued(store, lease=OTHER)

    assert await store.release_leases(ME.owner) == 2
    assert [(await see(store, job)).crash_count for job in held] == [0, 0]
    assert len(await store.claim_jobs(10, ME)) == 2
    assert await store.release_leases(ME.owner, crashed=True) == 2
    assert await store.release_leases(ME.owner, crashed=True) == 0, "the second call finds no lease"

    assert [(await see(store, job)).crash_count for job in (*held, waiting, others)] == [1, 1, 0, 0]


async def test_an_expired_lease_counts_as_a_crash(store: Store, clock: ManualClock) -> None:
    mine, others = await queued(store), await queued(store, lease=OTHER)
    clock.advance(60)

    assert {job.id: job.crash_count for job in await store.claim_jobs(10, ME)} == {mine.id: 0, others.id: 1}
    clock.advance(60)
    assert (await taken(store, others, OTHER)).crash_count == 2


async def test_poison_jobs_are_claimed_separately(store: Store, clock: ManualClock) -> None:
    job, healthy = await poison_job(store, clock, 1), await queued(store, lease=None)

    assert [leased.id for leased in await store.claim_jobs(10, ME)] == [healthy.id]
    [one] = await store.claim_poison_jobs(MANY, OTHER)

    assert (one.id, one.crash_count, one.delivery) == (job.id, 1, Delivery.SENDING)
    assert (one.lease_owner, one.lease_token, one.due_at) == (OTHER.owner, job.lease_token + 1, clock.after(30.0))
    assert await store.claim_poison_jobs(MANY, ME) == []


async def test_each_number_of_crashes_is_claimed_up_to_its_slots(store: Store, clock: ManualClock, raw: Raw) -> None:
    jobs: dict[int, list[Job]] = {1: [], 2: [], 3: [], 4: []}
    for crash_count, same in jobs.items():
        for _ in range(3):
            same.append(await ended(store, lease=None))
            await raw(f"UPDATE jobs SET crash_count = {crash_count} WHERE id = {same[-1].id}")  # noqa: S608
            clock.advance(1)

    first = await store.claim_poison_jobs((2, 1, 1), ME)
    rest = await store.claim_poison_jobs((0, 5, 0), ME)

    longest = [*jobs[1][:2], jobs[2][0], jobs[3][0]]
    assert {job.id for job in first} == {job.id for job in longest}, "three crash_count and more share the last room"
    assert {job.id for job in rest} == {job.id for job in jobs[2][1:]}


async def test_concurrent_claims_share_the_poison_jobs(store: Store, clock: ManualClock) -> None:
    jobs = [await poison_job(store, clock, 1) for _ in range(12)]
    found: list[Job] = []

    while claims := [job for claim in await asyncio.gather(*(store.claim_poison_jobs((2, 1, 1), ME) for _ in range(4)))
                     for job in claim]:  # fmt: skip
        found += claims

    assert sorted(job.id for job in found) == sorted(job.id for job in jobs)


async def test_a_job_with_many_crashes_is_delayed_by_a_doubling_pause(store: Store, clock: ManualClock) -> None:
    job = await ended(store)
    pauses: list[float] = []
    for number in range(ISOLATED_FROM + 4):
        if number:
            clock.advance(pauses[-1])
            job = await taken(store, job)
        await store.release_leases(ME.owner, crashed=True)
        job = await see(store, job)
        assert job.due_at is not None
        pauses.append((job.due_at - clock.now()).total_seconds())

    assert pauses == [0.0] * (ISOLATED_FROM - 1) + [1.0, 2.0, 4.0, 8.0, 16.0]


async def given_back(store: Store, job: Job) -> bool:
    return await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=0.0))


async def failed(store: Store, job: Job) -> bool:
    return await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=0.0, failed=True))


async def finished(store: Store, job: Job) -> bool:
    return await finish(store, job)


async def undeliverable_and_resent(store: Store, job: Job) -> bool:
    return await finish(store, job, Delivery.UNDELIVERABLE) and await store.resend_job(job.id, again(RESULT))


@pytest.mark.parametrize("survive", [given_back, failed, finished, undeliverable_and_resent])
async def test_a_write_of_the_lease_holder_resets_the_crash_count(
    store: Store, clock: ManualClock, survive: Callable[[Store, Job], Awaitable[bool]]
) -> None:
    job = await taken(store, await poison_job(store, clock, 2))

    assert await survive(store, job)

    assert (await see(store, job)).crash_count == 0


async def test_reschedule_without_an_attempt_leaves_the_crash_count(store: Store, clock: ManualClock) -> None:
    job = await taken(store, await poison_job(store, clock, 2))

    assert await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=0.0, failed=None))

    assert (await see(store, job)).crash_count == 2


async def test_the_next_stage_resets_the_crash_count(store: Store) -> None:
    job = await submitting(store)
    await store.release_leases(ME.owner, crashed=True)
    job = await taken(store, job)
    assert await store.mark_submitted(job.id, job.lease_token, "task", 0.0)
    assert (await see(store, job)).crash_count == 0

    job = await claimed(store, job)
    await store.release_leases(ME.owner, crashed=True)
    assert (await end(store, job, State.SUCCEEDED)).job == await see(store, job)
    assert (await see(store, job)).crash_count == 0


async def test_a_finished_job_is_not_claimed_as_poison(store: Store) -> None:
    job = await delivered(store)
    await store.release_leases(ME.owner, crashed=True)
    job = await taken(store, job)
    assert (job.notice, job.crash_count) == (Notice.DUE, 1)

    assert await store.begin_notice(job.id, job.lease_token)

    job = await see(store, job)
    assert (job.due_at, job.crash_count) == (None, 0)


async def test_a_retry_by_the_operator_resets_the_crash_count(store: Store, clock: ManualClock) -> None:
    job = await poison_job(store, clock, 2)

    assert await store.retry_job(job.id)

    assert (await claimed(store, job)).crash_count == 0


async def test_a_shared_database_has_no_orphaned_instances(postgres: Store) -> None:
    await postgres.heartbeat("before", 3.0)

    assert list(await postgres.orphaned_instances()) == []
