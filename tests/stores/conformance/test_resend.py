"""Results that are sent again, and the notice that follows a result."""

import asyncio

import pytest

from genlock.domain.delivery import again
from genlock.domain.job import AttentionCode, Delivery, Notice, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
    ManualClock,
    account_with,
    claimed,
    delivered,
    end,
    ended,
    finish,
    running,
    see,
    unchanged,
)
from tests.stores.conformance.settlements import UNDELIVERED, settlements

# resent results


async def test_a_resent_result_is_paid_once(store: Store) -> None:
    account_id = await account_with(store, 1000)
    job = await delivered(store, account_id=account_id, price=300)
    assert await store.begin_notice(job.id, job.lease_token)

    assert await store.resend_job(job.id, again(job.parts))
    assert await finish(store, await claimed(store, job))

    now = await see(store, job)
    assert (now.delivery, now.hold_state, now.notice, now.due_at) == (
        Delivery.DELIVERED,
        HoldState.CAPTURED,
        Notice.SENT,
        None,
    )
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=700, held=0)
    assert await settlements(store, account_id) == [EntryKind.CAPTURE]


@pytest.mark.parametrize("delivery", UNDELIVERED)
async def test_a_released_hold_stays_released_when_the_result_is_resent(store: Store, delivery: Delivery) -> None:
    account_id = await account_with(store, 1000)
    job = await ended(store, account_id=account_id)
    assert await finish(store, job, delivery)

    assert await store.resend_job(job.id, again(job.parts))
    assert await finish(store, await claimed(store, job))

    assert (await see(store, job)).hold_state is HoldState.RELEASED
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000, held=0)
    assert await settlements(store, account_id) == [EntryKind.RELEASE]


async def test_a_due_notice_follows_a_resent_result(store: Store) -> None:
    job = await delivered(store)
    assert job.notice is Notice.DUE
    assert await store.resend_job(job.id, again(job.parts))
    assert (await see(store, job)).notice is Notice.WANTED
    job = await claimed(store, job)

    assert await finish(store, job)

    now = await see(store, job)
    assert (now.notice, now.lease_owner) == (Notice.DUE, ME.owner)
    assert await store.begin_notice(now.id, now.lease_token)


async def test_no_notice_follows_a_failed_resend(store: Store) -> None:
    job = await delivered(store)
    assert await store.resend_job(job.id, again(job.parts))

    assert await finish(store, await claimed(store, job), Delivery.UNDELIVERABLE)

    now = await see(store, job)
    assert (now.notice, now.lease_owner, now.due_at) == (Notice.WANTED, None, None)
    assert await store.violations(settled=True) == []


async def test_no_notice_follows_a_failed_resend_that_was_to_be_paid(store: Store) -> None:
    """The channel asks to wait with the notice of an unknown delivery until the result was given up once more."""
    job = await ended(store)
    assert await finish(store, job, Delivery.UNKNOWN)
    assert await store.begin_notice(job.id, job.lease_token)
    assert await store.resend_job(job.id, again(job.parts))
    assert await finish(store, await claimed(store, job), Delivery.UNDELIVERABLE)
    assert await store.return_notice(job.id, job.lease_token, 5.0, failed=False)
    waiting = await see(store, job)
    assert (waiting.notice, waiting.unpaid) == (Notice.DUE, True)

    assert await store.resend_paid_job(job.id, again(job.parts), waiting.lease_token)
    assert await finish(store, await claimed(store, job), Delivery.UNDELIVERABLE)

    now = await see(store, job)
    assert (now.notice, now.due_at, now.hold_state) == (Notice.WANTED, None, HoldState.RELEASED)


@pytest.mark.parametrize("notice", [True, False], ids=["wanted", "not wanted"])
@pytest.mark.parametrize("delivery", [Delivery.UNKNOWN, Delivery.DELIVERED])
async def test_an_unknown_delivery_makes_a_notice_due_each_time(
    store: Store, delivery: Delivery, *, notice: bool
) -> None:
    job = await ended(store, notice=notice)
    for _ in range(2):
        code = AttentionCode.UNKNOWN_DELIVERY
        assert await finish(store, job, delivery, attention_reason="lost", attention_code=code)
        now = await see(store, job)
        assert (now.notice, now.lease_owner) == (Notice.DUE, ME.owner)
        assert await store.begin_notice(job.id, job.lease_token)
        assert (await see(store, job)).notice is Notice.SENT
        assert not await store.begin_notice(job.id, job.lease_token)
        assert await store.resend_job(job.id, again(job.parts))
        job = await claimed(store, job)


async def test_a_late_result_that_cannot_be_delivered_moves_no_money(store: Store) -> None:
    job = await ended(store, State.EXPIRED, lease=None)
    late = (await end(store, job, State.SUCCEEDED)).job
    assert late is not None
    wallet = await store.wallet(job.account_id)

    assert await finish(store, late, Delivery.UNDELIVERABLE)

    assert await store.wallet(job.account_id) == wallet
    assert await settlements(store, job.account_id) == [EntryKind.RELEASE]


# the notice


async def test_a_notice_is_begun_at_most_once(store: Store) -> None:
    job = await delivered(store)

    begun = await asyncio.gather(*(store.begin_notice(job.id, job.lease_token) for _ in range(10)))

    assert sum(begun) == 1
    now = await see(store, job)
    assert (now.notice, now.due_at, now.lease_owner) == (Notice.SENT, None, None)


@pytest.mark.parametrize("drift", [-1, 1])
async def test_a_stale_token_begins_no_notice(store: Store, drift: int) -> None:
    job = await delivered(store)

    assert not await store.begin_notice(job.id, job.lease_token + drift)

    assert await unchanged(store, job)


async def test_no_notice_goes_before_its_result(store: Store) -> None:
    for job in (await running(store), await ended(store), await delivered(store, notice=False)):
        assert not await store.begin_notice(job.id, job.lease_token)
        assert await unchanged(store, job)


async def test_a_notice_whose_sender_crashed_is_taken_over(store: Store, clock: ManualClock) -> None:
    job = await delivered(store)
    clock.advance(ME.seconds)

    taken = await claimed(store, job, OTHER)

    assert (taken.delivery, taken.notice) == (Delivery.DELIVERED, Notice.DUE)
    assert not await store.begin_notice(job.id, job.lease_token)
    assert await store.begin_notice(taken.id, taken.lease_token)


async def test_a_notice_that_was_not_sent_may_be_retried(store: Store, clock: ManualClock) -> None:
    job = await delivered(store)
    assert await store.begin_notice(job.id, job.lease_token)

    assert await store.return_notice(job.id, job.lease_token, 5.0, failed=True)
    assert not await store.return_notice(job.id, job.lease_token, 5.0, failed=True)

    clock.advance(5)
    taken = await claimed(store, job)
    assert (taken.notice, taken.attempts) == (Notice.DUE, 1)
    assert await store.begin_notice(job.id, taken.lease_token)
    assert not await store.return_notice(job.id, job.lease_token, 5.0, failed=True), "a repeated answer of the first"


async def test_a_notice_that_was_not_sent_is_due_although_its_job_was_leased_again(store: Store) -> None:
    """A cancelled job is leased again at once, to ask what its task cost."""
    job = await delivered(store, State.CANCELLED)
    assert await store.begin_notice(job.id, job.lease_token)
    asking = await claimed(store, job, OTHER)

    assert await store.return_notice(job.id, job.lease_token, 5.0, failed=False)
    now = await see(store, job)
    assert (now.notice, now.lease_owner, now.due_at) == (Notice.DUE, OTHER.owner, asking.due_at)

    assert await store.reschedule(Reschedule(job_id=job.id, token=asking.lease_token, after=None))
    taken = await claimed(store, job)
    assert taken.notice is Notice.DUE
    assert await store.begin_notice(job.id, taken.lease_token)
    assert not await store.return_notice(job.id, job.lease_token, 5.0, failed=False)
    assert await store.violations(settled=False) == []


async def test_a_notice_that_was_not_sent_follows_the_result_that_is_sent_again(store: Store) -> None:
    job = await delivered(store)
    assert await store.begin_notice(job.id, job.lease_token)
    assert await store.resend_job(job.id, again(job.parts))

    assert await store.return_notice(job.id, job.lease_token, 5.0, failed=False)

    again_sent = await claimed(store, job)
    assert again_sent.notice is Notice.WANTED
    assert await finish(store, again_sent)
    assert (await see(store, job)).notice is Notice.DUE


async def test_the_notice_of_a_later_end_is_not_made_due_by_the_answer_to_an_earlier_one(store: Store) -> None:
    job = await delivered(store, State.EXPIRED)
    assert await store.begin_notice(job.id, job.lease_token)
    late = (await end(store, job, State.SUCCEEDED)).job
    assert late is not None
    assert not await store.return_notice(job.id, job.lease_token, 5.0, failed=False)
    assert await finish(store, late)
    assert await store.begin_notice(job.id, late.lease_token)

    assert not await store.return_notice(job.id, job.lease_token, 5.0, failed=False)
    assert (await see(store, job)).notice is Notice.SENT
