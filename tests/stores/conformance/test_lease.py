"""Rescheduling, renewing and claiming: which instance may work on a job, and when."""

import asyncio
from typing import Any

import pytest

from genlock.domain.job import Delivery, Job, State, hash_secret
from genlock.ports import Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
    SECRET,
    SHOWN,
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
    unchanged,
)


def wait(job: Job, after: float | None = 5.0, **changes: Any) -> Reschedule:
    return Reschedule(job_id=job.id, token=job.lease_token, after=after, **changes)


# waiting


async def test_a_waiting_job_is_not_claimed_before_it_is_due(store: Store, clock: ManualClock) -> None:
    job = await queued(store)

    assert await store.reschedule(wait(job, 5.0))

    now = await see(store, job)
    assert (now.lease_owner, now.due_at, now.lease_token) == (None, clock.after(5.0), job.lease_token)
    clock.advance(4.999)
    assert await store.claim_jobs(10, OTHER) == []
    clock.advance(0.001)
    assert [taken.id for taken in await store.claim_jobs(10, OTHER)] == [job.id]


async def test_reschedule_sets_the_fields_that_it_names(store: Store) -> None:
    submitted = await submitting(store)
    assert await store.reschedule(wait(submitted, state=State.QUEUED, attention_reason="look"))
    now = await see(store, submitted)
    assert (now.state, now.attention_reason) == (State.QUEUED, "look")

    sending = await ended(store)
    assert await store.reschedule(wait(sending, delivery=Delivery.PENDING, parts=SHOWN))
    now = await see(store, sending)
    assert (now.delivery, now.parts) == (Delivery.PENDING, SHOWN)


async def test_reschedule_leaves_fields_that_it_does_not_name(store: Store, clock: ManualClock) -> None:
    job = await ended(store)
    assert await store.reschedule(wait(job, after=0.0, attention_reason="look", failed=True))
    job = await claimed(store, job)

    assert await store.reschedule(wait(job, after=7.0, failed=None))

    now = await see(store, job)
    assert (now.state, now.delivery, now.notice, now.parts) == (job.state, job.delivery, job.notice, job.parts)
    assert (now.attention_reason, now.attempts, now.grace_until) == ("look", 1, None)
    assert now.due_at == clock.after(7.0)


@pytest.mark.parametrize(("failed", "attempts"), [(True, 3), (False, 0), (None, 2)])
async def test_reschedule_counts_a_failure_resets_or_leaves_the_count(
    store: Store, attempts: int, *, failed: bool | None
) -> None:
    job = await queued(store)
    for _ in range(2):
        assert await store.reschedule(wait(job, after=0.0, failed=True))
        job = await claimed(store, job)

    assert await store.reschedule(wait(job, failed=failed))

    assert (await see(store, job)).attempts == attempts


@pytest.mark.parametrize(
    ("passed", "after", "due"), [(0.0, 600.0, 600.0), (0.0, 601.0, 600.0), (590.0, 11.0, 10.0), (700.0, 5.0, 5.0)]
)
async def test_an_open_job_is_due_at_its_deadline_at_the_latest(
    store: Store, clock: ManualClock, passed: float, after: float, due: float
) -> None:
    job = await queued(store, deadline_seconds=600.0)
    clock.advance(passed)

    assert await store.reschedule(wait(job, after))

    assert (await see(store, job)).due_at == clock.after(due)


async def test_a_delivery_may_wait_past_the_deadline(store: Store, clock: ManualClock) -> None:
    job = await ended(store, deadline_seconds=600.0)

    assert await store.reschedule(wait(job, 601.0, delivery=Delivery.PENDING))

    assert (await see(store, job)).due_at == clock.after(601.0)


async def test_grace_may_last_past_the_deadline_and_is_remembered(store: Store, clock: ManualClock) -> None:
    job = await submitting(store, deadline_seconds=600.0)

    assert await store.reschedule(wait(job, 601.0, grace=True))

    now = await see(store, job)
    assert (now.due_at, now.grace_until) == (clock.after(601.0), clock.after(601.0))
    clock.advance(601)
    job = await claimed(store, job)
    assert await store.reschedule(wait(job, 5.0))
    assert (await see(store, job)).grace_until == now.grace_until


async def test_a_parked_job_waits_for_an_operator(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)

    assert await store.reschedule(wait(job, after=None, attention_reason="look"))

    now = await see(store, job)
    assert (now.due_at, now.lease_owner, now.attention_reason) == (None, None, "look")
    clock.advance(10**6)
    assert await store.claim_jobs(10, ME) == []


@pytest.mark.parametrize("drift", [-1, 1])
async def test_a_stale_token_reschedules_nothing(store: Store, drift: int) -> None:
    job = await queued(store)

    assert not await store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token + drift, after=0.0, attention_reason="look")
    )

    assert await unchanged(store, job)


async def test_reschedules_merged_into_one_batch_each_set_their_own_fields(store: Store, clock: ManualClock) -> None:
    jobs = [await submitting(store) for _ in range(6)]
    stale = await queued(store)

    answers = await asyncio.gather(
        store.reschedule(wait(jobs[0], after=None, attention_reason="parked")),
        store.reschedule(wait(jobs[1], after=3.0, grace=True)),
        store.reschedule(wait(jobs[2], after=3.0, state=State.QUEUED)),
        store.reschedule(wait(jobs[3], after=1e6)),
        store.reschedule(wait(jobs[4], failed=True)),
        store.reschedule(wait(jobs[5], failed=None)),
        store.reschedule(Reschedule(job_id=stale.id, token=99, after=0.0)),
    )

    assert answers == [True] * 6 + [False]
    rows = [await see(store, job) for job in jobs]
    assert [row.attention_reason for row in rows] == ["parked", None, None, None, None, None]
    assert [row.grace_until for row in rows] == [None, clock.after(3.0), None, None, None, None]
    assert [row.state for row in rows] == [State.SUBMITTING] * 2 + [State.QUEUED] + [State.SUBMITTING] * 3
    assert rows[3].due_at == rows[3].deadline_at
    assert [row.attempts for row in rows] == [0, 0, 0, 0, 1, 0]


# renewing


async def test_a_renewed_lease_lasts_longer(store: Store, clock: ManualClock) -> None:
    job = await queued(store)
    clock.advance(ME.seconds - 1)

    assert await store.renew_lease(job.id, job.lease_token, ME)

    clock.advance(ME.seconds - 1)
    assert await store.claim_jobs(10, OTHER) == []
    assert (await see(store, job)).lease_token == job.lease_token


async def test_only_the_holder_renews(store: Store) -> None:
    job = await queued(store)
    for token, lease in ((job.lease_token + 1, ME), (job.lease_token - 1, ME), (job.lease_token, OTHER)):
        assert not await store.renew_lease(job.id, token, lease)
        assert await unchanged(store, job)

    assert await store.reschedule(wait(job))
    waiting = await see(store, job)
    assert not await store.renew_lease(job.id, job.lease_token, ME), "given back is given back"
    assert await unchanged(store, waiting)


# claiming


async def test_a_busy_instance_that_claims_no_jobs_leaves_them_to_the_next_claim(
    store: Store, clock: ManualClock
) -> None:
    job = await queued(store)
    assert await store.reschedule(wait(job, 1.0))
    assert await store.claim_jobs(10, ME) == []
    clock.advance(1.0)

    assert await store.claim_jobs(0, ME) == []
    assert [taken.id for taken in await store.claim_jobs(1, ME)] == [job.id]


async def test_the_longest_overdue_jobs_are_claimed_first_up_to_the_limit(store: Store, clock: ManualClock) -> None:
    jobs = [await queued(store) for _ in range(5)]
    for job, after in zip(jobs, (4.0, 2.0, 5.0, 1.0, 3.0), strict=True):
        assert await store.reschedule(wait(job, after))
    clock.advance(4.5)

    first = await store.claim_jobs(2, ME)
    rest = await store.claim_jobs(10, ME)

    assert {job.id for job in first} == {jobs[3].id, jobs[1].id}
    assert {job.id for job in rest} == {jobs[4].id, jobs[0].id}


async def test_a_claimed_job_is_leased_under_a_new_token(store: Store, clock: ManualClock) -> None:
    job = await queued(store, lease=None)

    [taken] = await store.claim_jobs(10, OTHER)

    assert (taken.lease_owner, taken.lease_token) == (OTHER.owner, job.lease_token + 1)
    assert taken.due_at == clock.after(OTHER.seconds)
    assert await unchanged(store, taken)
    assert await store.claim_jobs(10, ME) == []


async def test_an_expired_lease_is_claimed_again(store: Store, clock: ManualClock) -> None:
    job = await queued(store)
    tokens = [job.lease_token]
    for _ in range(3):
        clock.advance(ME.seconds)
        tokens.append((await claimed(store, job)).lease_token)

    assert tokens == [1, 2, 3, 4]


async def test_claiming_starts_a_delivery_that_waits(store: Store) -> None:
    job = await ended(store, lease=None)
    assert job.delivery is Delivery.PENDING

    assert (await claimed(store, job)).delivery is Delivery.SENDING


async def test_a_finished_job_is_never_claimed(store: Store, clock: ManualClock) -> None:
    job = await delivered(store)
    assert await store.begin_notice(job.id, job.lease_token)
    assert await finish(store, await ended(store), Delivery.UNDELIVERABLE)
    clock.advance(10**6)

    assert await store.claim_jobs(10, ME) == []


async def test_concurrent_claims_share_the_jobs(store: Store) -> None:
    jobs = [await queued(store, lease=None) for _ in range(40)]

    claims = await asyncio.gather(*(store.claim_jobs(7, ME) for _ in range(8)))

    taken = [job.id for claim in claims for job in claim]
    assert sorted(taken) == sorted(job.id for job in jobs)


@pytest.mark.parametrize("stage", [queued, submitting, ended, delivered], ids=lambda stage: str(stage.__name__))
async def test_no_write_of_a_holder_that_lost_its_lease_changes_anything(
    store: Store, clock: ManualClock, stage: Any
) -> None:
    stale: Job = await stage(store)
    clock.advance(ME.seconds)
    now = await claimed(store, stale, OTHER)
    token = stale.lease_token

    writes = [
        await store.begin_submit(stale.id, token, hash_secret(SECRET), "message"),
        await store.mark_submitted(stale.id, token, "task", 1.0),
        await store.save_parts(stale.id, token, SHOWN, ME),
        await finish(store, stale),
        await store.begin_notice(stale.id, token),
        await store.reschedule(wait(stale)),
        await store.renew_lease(stale.id, token, ME),
        (await end(store, stale, State.EXPIRED, token=token)).job is not None,
    ]

    assert writes == [False] * len(writes)
    assert await unchanged(store, now)


async def test_a_running_job_is_claimed_for_its_poll(store: Store, clock: ManualClock) -> None:
    job = await running(store, poll_after=5.0)
    clock.advance(5)

    assert (await claimed(store, job)).state is State.RUNNING
