import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from genlock.domain.delivery import MESSAGE_ONLY
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, Job, Notice, State, Verdict, hash_secret
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import JobEnd, Lease, NewCallback, Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
    RESULT,
    SECRET,
    ManualClock,
    account_with,
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
from tests.stores.conftest import Raw

OPEN: dict[State, Callable[[Store], Awaitable[Job]]] = {
    State.QUEUED: queued,
    State.SUBMITTING: submitting,
    State.RUNNING: running,
}
ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED)
BACK = (State.FAILED, State.CANCELLED, State.EXPIRED)


async def kinds(store: Store, job: Job) -> list[EntryKind]:
    """The kinds of a job's ledger entries."""
    return sorted(
        ledger_entry.kind
        for ledger_entry in await store.ledger_entries(job.account_id, 10)
        if ledger_entry.job_id == job.id
    )


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


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (State.SUCCEEDED, State.SUCCEEDED, Verdict.DUPLICATE),
        (State.SUCCEEDED, State.FAILED, Verdict.CONTRADICTION),
        (State.SUCCEEDED, State.CANCELLED, Verdict.DUPLICATE),
        (State.SUCCEEDED, State.EXPIRED, Verdict.DUPLICATE),
        (State.FAILED, State.SUCCEEDED, Verdict.BUSY),  # the user is being informed of the failure
        (State.FAILED, State.FAILED, Verdict.DUPLICATE),
        (State.FAILED, State.CANCELLED, Verdict.DUPLICATE),
        (State.FAILED, State.EXPIRED, Verdict.DUPLICATE),
        (State.CANCELLED, State.SUCCEEDED, Verdict.CANCELLED),
        (State.CANCELLED, State.FAILED, Verdict.CANCELLED),
        (State.CANCELLED, State.CANCELLED, Verdict.CANCELLED),
        (State.CANCELLED, State.EXPIRED, Verdict.CANCELLED),
        (State.EXPIRED, State.FAILED, Verdict.DUPLICATE),
        (State.EXPIRED, State.CANCELLED, Verdict.DUPLICATE),
        (State.EXPIRED, State.EXPIRED, Verdict.DUPLICATE),
    ],
)
@pytest.mark.parametrize("shown", [False, True], ids=["on its way", "shown"])
async def test_a_later_end_changes_nothing(
    store: Store, before: State, after: State, verdict: Verdict, *, shown: bool
) -> None:
    job = await (delivered if shown else ended)(store, before)
    wallet = await store.wallet(job.account_id)

    attempt = await end(store, job, after, OTHER, error_code="other", error_text="other", task_id=job.task_id)

    assert (attempt.verdict, attempt.job) == (verdict, None)
    assert await unchanged(store, job)
    assert await store.wallet(job.account_id) == wallet


async def test_the_late_cost_of_a_cancelled_job_is_recorded(store: Store) -> None:
    job = await ended(store, State.CANCELLED)

    assert (await end(store, job, State.SUCCEEDED, cost=70)).verdict is Verdict.CANCELLED

    assert await unchanged(store, replace(job, cost=70))
    await end(store, job, State.FAILED, cost=None)
    assert (await see(store, job)).cost == 70


async def delivered_expiry(store: Store) -> Job:
    """An expired job whose expiry was delivered."""
    job = await delivered(store, State.EXPIRED)
    assert await store.begin_notice(job.id, job.lease_token)
    return await see(store, job)


async def undelivered_expiry(store: Store, **changes: Any) -> Job:
    """An expired job whose expiry is not delivered yet."""
    return await ended(store, State.EXPIRED, lease=None, **changes)


async def delivered_failure(store: Store) -> Job:
    """A failed job whose failure was delivered."""
    job = await delivered(store, State.FAILED)
    assert await store.begin_notice(job.id, job.lease_token)
    return await see(store, job)


async def undelivered_failure(store: Store) -> Job:
    """A failed job whose failure is not delivered yet."""
    return await ended(store, State.FAILED, lease=None)


async def test_a_result_after_a_late_one_changes_nothing(store: Store) -> None:
    for told in (await delivered_expiry(store), await delivered_failure(store)):
        assert (await end(store, told, State.SUCCEEDED, None)).verdict is Verdict.LATE
        late = await see(store, told)
        for state in (State.SUCCEEDED, State.FAILED, State.EXPIRED, State.CANCELLED):
            assert (await end(store, told, state)).verdict is Verdict.DUPLICATE
        assert await unchanged(store, late)


async def test_a_job_whose_secret_was_erased_takes_no_late_result(store: Store, raw: Raw) -> None:
    for told in (await delivered_expiry(store), await delivered_failure(store)):
        await raw(f"UPDATE jobs SET secret_hash = NULL WHERE id = {told.id}")  # noqa: S608
        callback = await store.store_callback("kie", told.id, hash_secret(SECRET), b"{}")

        assert (await end(store, told, State.SUCCEEDED, callback_id=callback.id)).verdict is Verdict.DUPLICATE

        assert await unchanged(store, told)


async def test_a_result_that_was_found_invalid_does_not_come_late(store: Store) -> None:
    job = await ended(store)
    assert await store.mark_result_invalid(job.id, job.lease_token, MESSAGE_ONLY, "broken_result", "an HTML page")
    assert await finish(store, job)
    assert await store.begin_notice(job.id, job.lease_token)
    told = await see(store, job)

    assert (await end(store, job, State.SUCCEEDED)).verdict is Verdict.DUPLICATE

    assert await unchanged(store, told)


@pytest.mark.parametrize("expire", [delivered_expiry, undelivered_expiry, delivered_failure, undelivered_failure])
async def test_a_late_result_is_delivered_free(
    store: Store, clock: ManualClock, expire: Callable[[Store], Awaitable[Job]]
) -> None:
    expired = await expire(store)
    wallet = await store.wallet(expired.account_id)
    clock.advance(1)

    attempt = await end(store, expired, State.SUCCEEDED, OTHER, cost=5)

    late = replace(
        expired,
        late=True,
        parts=RESULT,
        placeholder=None,
        cost=5,
        delivery=Delivery.SENDING,
        delivered_at=None,
        notice=Notice.WANTED,
        ended_at=clock.now(),
        due_at=clock.after(OTHER.seconds),
        lease_owner=OTHER.owner,
        lease_token=expired.lease_token + 1,
        read_at=clock.now(),
    )
    assert (attempt.verdict, attempt.job) == (Verdict.LATE, late)
    assert await unchanged(store, late)
    assert await finish(store, late)
    assert (await see(store, expired)).hold_state is HoldState.RELEASED
    assert await store.wallet(expired.account_id) == wallet
    assert await kinds(store, expired) == [EntryKind.HOLD, EntryKind.RELEASE]


async def test_a_late_result_waits_while_the_expiry_is_being_delivered(store: Store, clock: ManualClock) -> None:
    """The expiry and the result must not race for the same message, so the callback is due again later."""
    job = await ended(store, State.EXPIRED)
    callback = await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")

    attempt = await end(store, job, State.SUCCEEDED, OTHER, callback_id=callback.id)

    assert (attempt.verdict, attempt.job) == (Verdict.BUSY, None)
    assert await unchanged(store, job)
    assert await finish(store, job)
    assert (await end(store, job, State.SUCCEEDED, OTHER, callback_id=callback.id)).verdict is Verdict.BUSY
    assert await store.begin_notice(job.id, job.lease_token)
    clock.advance(60)
    assert await store.claim_callbacks(10, 5.0) == [callback]
    assert (await end(store, job, State.SUCCEEDED, OTHER, callback_id=callback.id)).verdict is Verdict.LATE
    assert [settled.note for settled in await store.callbacks(InboxState.DONE, 10)] == ["late"]


async def test_a_late_result_comes_once(store: Store) -> None:
    job = await undelivered_expiry(store)
    late = (await end(store, job, State.SUCCEEDED, lease=None)).job
    assert late is not None

    assert (await end(store, job, State.SUCCEEDED, OTHER)).verdict is Verdict.DUPLICATE

    assert await unchanged(store, late)


async def test_a_late_result_wants_a_notice_only_if_the_order_did(store: Store) -> None:
    job = await undelivered_expiry(store, notice=False)

    assert (await end(store, job, State.SUCCEEDED)).verdict is Verdict.LATE

    assert (await see(store, job)).notice is Notice.NONE


async def with_a_task(store: Store) -> Job:
    return await running(store, "own")


async def expired_with_a_task(store: Store) -> Job:
    return await ended(store, State.EXPIRED, lease=None, task_id="own")


async def cancelled_with_a_task(store: Store) -> Job:
    return await ended(store, State.CANCELLED, task_id="own")


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED])
@pytest.mark.parametrize("known", [True, False], ids=["a task of another job", "an unknown task"])
@pytest.mark.parametrize("stage", [with_a_task, ended, delivered, expired_with_a_task, cancelled_with_a_task])
async def test_a_callback_that_names_another_task_than_the_jobs_own_ends_neither_job(
    store: Store, clock: ManualClock, stage: Callable[[Store], Awaitable[Job]], state: State, *, known: bool
) -> None:
    other = await running(store, "other") if known else None
    job = await stage(store)
    arrival = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body="{}")

    attempt = await end(store, job, state, OTHER, task_id="other", cost=9, arrival=arrival)

    assert (attempt.verdict, attempt.job) == (Verdict.WRONG_TASK, None)
    assert await unchanged(store, job)
    assert other is None or await unchanged(store, other)
    callbacks = await store.callbacks(InboxState.DONE, 10)
    assert [(callback.note, callback.task_id) for callback in callbacks] == [("wrong_task", "other")]
    clock.advance(60)
    assert await store.claim_callbacks(10, 0.0) == []


@pytest.mark.parametrize("stage", [submitting, queued])
async def test_a_job_whose_task_is_not_known_yet_is_not_ended_with_the_task_of_another(
    store: Store, stage: Callable[[Store], Awaitable[Job]]
) -> None:
    other, job = await running(store, "other"), await stage(store)

    assert (await end(store, job, State.SUCCEEDED, task_id="other")).verdict is Verdict.WRONG_TASK

    assert await unchanged(store, job)
    assert await unchanged(store, other)


async def test_a_job_whose_task_is_not_known_yet_is_ended_with_the_task_that_its_callback_names(store: Store) -> None:
    job = await submitting(store)

    assert (await end(store, job, State.SUCCEEDED, task_id="own")).verdict is Verdict.WON

    assert (await see(store, job)).task_id == "own"
    assert (await end(store, job, State.FAILED, task_id="other")).verdict is Verdict.WRONG_TASK


async def test_one_of_two_concurrent_callbacks_of_the_same_task_ends_its_job(store: Store) -> None:
    jobs = [await submitting(store) for _ in range(2)]

    attempts = await asyncio.gather(*(end(store, job, State.SUCCEEDED, task_id="task") for job in jobs))

    assert sorted(attempt.verdict for attempt in attempts) == [Verdict.WON, Verdict.WRONG_TASK]
    assert sorted([(await see(store, job)).task_id or "" for job in jobs]) == ["", "task"]


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


@pytest.mark.parametrize(
    ("state", "token", "note"),
    [(State.SUCCEEDED, None, "duplicate"), (State.FAILED, None, "contradiction"), (State.FAILED, 0, "stale")],
)
async def test_the_callback_is_settled_in_the_same_commit(
    store: Store, state: State, token: int | None, note: str
) -> None:
    job = await running(store, "task")
    first, second = [await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}") for _ in range(2)]

    await end(store, job, State.SUCCEEDED, task_id="task", callback_id=first.id)
    assert [callback.id for callback in await store.callbacks(InboxState.NEW, 10)] == [second.id]
    await end(store, job, state, task_id="task", callback_id=second.id, token=token)

    settled = {callback.id: callback for callback in await store.callbacks(InboxState.DONE, 10)}
    assert [settled[first.id].note, settled[second.id].note] == ["won", note]
    assert {callback.task_id for callback in settled.values()} == {"task"}
    assert await store.claim_callbacks(10, 0.0) == []


async def test_the_callback_that_ends_a_job_is_stored_in_the_same_commit(store: Store, clock: ManualClock) -> None:
    job = await running(store, "task")
    arrival = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body='{"кот": "\\u0000"}')

    first = await end(store, job, State.SUCCEEDED, task_id="task", arrival=arrival)
    again = await end(store, job, State.FAILED, task_id="task", arrival=arrival)

    assert (first.verdict, again.verdict) == (Verdict.WON, Verdict.CONTRADICTION)
    assert await store.callbacks(InboxState.DONE, 10) == [again.callback, first.callback]
    assert first.callback is not None
    assert first.callback == Callback(
        id=first.callback.id,
        provider="kie",
        job_id=job.id,
        task_id="task",
        body=arrival.body.encode(),
        state=InboxState.DONE,
        note="won",
        received_at=clock.now(),
        correlation_id=job.correlation_id,
        attempt=1,
    )
    assert (await store.store_callback("kie", None, "", b"")).id > first.callback.id


@pytest.mark.parametrize("change", [{"secret_hash": hash_secret("wrong")}, {"provider": "other"}])
async def test_an_end_by_a_callback_needs_the_secret_of_the_job(store: Store, change: dict[str, str]) -> None:
    job = await running(store)
    arrival = replace(NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body="{}"), **change)

    assert await end(store, job, State.SUCCEEDED, arrival=arrival) == JobEnd(verdict=Verdict.MISSING)

    assert await unchanged(store, job)
    assert [await store.callbacks(state, 10) for state in InboxState] == [[] for _ in InboxState]


async def test_a_callback_with_a_late_result_is_due_again_while_the_expiry_is_being_delivered(
    store: Store, clock: ManualClock
) -> None:
    job = await ended(store, State.EXPIRED, task_id="task")
    arrival = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body="{}")

    attempt = await end(store, job, State.SUCCEEDED, OTHER, task_id="task", arrival=arrival)

    assert (attempt.verdict, attempt.job) == (Verdict.BUSY, None)
    assert attempt.callback is not None
    assert attempt.callback.state is InboxState.NEW
    assert await store.claim_callbacks(10, 5.0) == []
    clock.advance(60)
    assert await store.claim_callbacks(10, 5.0) == [attempt.callback]


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
