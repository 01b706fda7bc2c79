"""The end of a job: the first one wins, and releases the hold unless there is a result."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from genlock.domain.delivery import MESSAGE_ONLY
from genlock.domain.job import Delivery, Job, State, Verdict
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import Lease, Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
    RESULT,
    ManualClock,
    account_with,
    claimed,
    end,
    ended,
    queued,
    running,
    see,
    submitting,
    unchanged,
)
from tests.stores.conformance.settlements import kinds

OPEN: dict[State, Callable[[Store], Awaitable[Job]]] = {
    State.QUEUED: queued,
    State.SUBMITTING: submitting,
    State.RUNNING: running,
}
ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED)
BACK = (State.FAILED, State.CANCELLED, State.EXPIRED)


@pytest.mark.parametrize("start", OPEN)
@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("lease", [ME, None], ids=["leased", "unleased"])
async def test_the_first_end_wins(
    store: Store, clock: ManualClock, start: State, state: State, lease: Lease | None
) -> None:
    job = await OPEN[start](store)
    assert job.state is start
    clock.advance(1)

    changes = {"task_id": job.task_id or "task", "error_code": "code", "error_text": "text", "cost": 7}
    attempt = await end(store, job, state, lease, **changes)

    expected = replace(
        job,
        state=state,
        parts=RESULT if state is State.SUCCEEDED else MESSAGE_ONLY,
        task_id=job.task_id or "task",
        error_code="code",
        error_text="text",
        cost=7,
        hold_state=HoldState.HELD if state is State.SUCCEEDED else HoldState.RELEASED,
        delivery=Delivery.SENDING if lease else Delivery.PENDING,
        ended_at=clock.now(),
        due_at=clock.after(lease.seconds if lease else 0),
        lease_owner=lease.owner if lease else None,
        lease_token=job.lease_token + 1,
        read_at=clock.now(),
    )
    assert (attempt.verdict, attempt.job) == (Verdict.WON, expected)
    assert await unchanged(store, expected)


@pytest.mark.parametrize("state", BACK)
async def test_an_end_without_a_result_releases_the_hold(store: Store, state: State) -> None:
    account_id = await account_with(store, 1000)
    job = await running(store, account_id=account_id, price=300)

    await end(store, job, state)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000, held=0)
    assert await kinds(store, job) == [EntryKind.HOLD, EntryKind.RELEASE]


async def test_a_result_is_not_captured_before_it_is_delivered(store: Store) -> None:
    account_id = await account_with(store, 1000)
    job = await running(store, account_id=account_id, price=300)

    await end(store, job, State.SUCCEEDED)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=700, held=300)
    assert await kinds(store, job) == [EntryKind.HOLD]


@pytest.mark.parametrize("state", ENDS)
async def test_a_free_job_moves_no_money_at_its_end(store: Store, state: State) -> None:
    job = await ended(store, state, account_id=await account_with(store, 0), price=0)

    assert job.hold_state is HoldState.FREE
    assert await store.ledger_entries(job.account_id, 10) == []


async def test_the_lease_holder_ends_its_job(store: Store) -> None:
    job = await submitting(store)

    assert (await end(store, job, State.EXPIRED, token=job.lease_token)).verdict is Verdict.WON


@pytest.mark.parametrize("drift", [-1, 1])
async def test_a_stale_token_ends_no_job(store: Store, drift: int) -> None:
    for job in (await submitting(store), await ended(store, State.EXPIRED)):
        attempt = await end(store, job, State.SUCCEEDED, token=job.lease_token + drift)

        assert (attempt.verdict, attempt.job) == (Verdict.STALE, None)
        assert await unchanged(store, job)


async def test_a_job_that_is_not_there_is_missing(store: Store) -> None:
    attempt = await end(store, 10**9, State.SUCCEEDED)

    assert (attempt.verdict, attempt.job) == (Verdict.MISSING, None)


async def test_an_end_clears_attempts_attention_and_grace_time(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)
    wait = Reschedule(job_id=job.id, token=job.lease_token, after=5.0, grace=True, failed=True, attention_reason="look")
    await store.reschedule(wait)
    waiting = await see(store, job)
    assert (waiting.attempts, waiting.attention_reason, waiting.grace_until) == (1, "look", clock.after(5.0))

    await end(store, job, State.SUCCEEDED)

    now = await see(store, job)
    assert (now.attempts, now.attention_reason, now.grace_until) == (0, None, None)


async def test_an_unleased_end_is_taken_by_the_next_claim(store: Store) -> None:
    job = await ended(store, State.SUCCEEDED, lease=None)

    assert (await claimed(store, job, OTHER)).delivery is Delivery.SENDING


async def test_one_of_many_concurrent_ends_wins(store: Store) -> None:
    job = await running(store)

    attempts = await asyncio.gather(*(end(store, job, ENDS[number % 4]) for number in range(20)))

    [winner] = [attempt for attempt in attempts if attempt.verdict is Verdict.WON]
    assert winner.job is not None
    assert await unchanged(store, winner.job)


async def test_ends_merged_into_one_batch_each_get_their_own_answer(store: Store) -> None:
    """Several jobs of one account release their holds together."""
    account_id = await account_with(store, 1000)
    jobs = [await running(store, account_id=account_id, price=10 * number) for number in range(1, 9)]
    known = await ended(store, State.SUCCEEDED)

    attempts = await asyncio.gather(
        *(end(store, job, State.FAILED if number % 2 else State.SUCCEEDED) for number, job in enumerate(jobs)),
        end(store, known, State.FAILED),
        end(store, 10**9, State.FAILED),
    )

    assert [attempt.verdict for attempt in attempts[:-2]] == [Verdict.WON] * len(jobs)
    assert [attempt.job.id for attempt in attempts if attempt.job] == [job.id for job in jobs]
    assert [attempt.verdict for attempt in attempts[-2:]] == [Verdict.CONTRADICTION, Verdict.MISSING]
    held = sum(job.price for job in jobs[::2])
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000 - held, held=held)
