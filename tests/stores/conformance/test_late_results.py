"""Results that come after the end of their job."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from genlock.domain.delivery import MESSAGE_ONLY
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, Job, Notice, State, Verdict, hash_secret
from genlock.domain.money import EntryKind, HoldState
from genlock.ports import NewCallback, Store
from tests.stores.builders import OTHER, RESULT, SECRET, ManualClock, delivered, end, ended, finish, see, unchanged
from tests.stores.conformance.settlements import kinds
from tests.stores.conftest import Raw


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
        progress_message=None if expired.delivery is Delivery.DELIVERED else expired.placeholder,
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
