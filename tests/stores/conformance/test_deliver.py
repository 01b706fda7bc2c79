import asyncio
from dataclasses import replace

import pytest

from genlock.domain.delivery import MESSAGE_ONLY, Level, Part, Step, again
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State, Verdict
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.domain.result import PartKind
from genlock.ports import FinishDelivery, Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
    RESULT,
    SHOWN,
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

UNDELIVERED = (Delivery.UNDELIVERABLE, Delivery.UNKNOWN)


async def settlements(store: Store, account_id: int) -> list[EntryKind]:
    """How the holds of an account's jobs were settled, oldest first."""
    ledger_entries = await store.ledger_entries(account_id, 50)
    return [
        ledger_entry.kind
        for ledger_entry in reversed(ledger_entries)
        if ledger_entry.kind in (EntryKind.CAPTURE, EntryKind.RELEASE)
    ]


async def test_progress_is_written_and_the_lease_renewed(store: Store, clock: ManualClock) -> None:
    job = await ended(store)
    clock.advance(20)
    parts = (
        replace(RESULT[0], level=Level.DOCUMENT, step=Step.SEND, message="7", file="f", gone=True),
        Part(kind=PartKind.TEXT, value='слова "в кавычках"\n'),
    )

    assert await store.save_parts(job.id, job.lease_token, parts, ME)

    now = await see(store, job)
    assert (now.parts, now.due_at) == (parts, clock.after(ME.seconds))


@pytest.mark.parametrize("drift", [-1, 1])
async def test_no_progress_with_a_stale_token_is_written(store: Store, drift: int) -> None:
    job = await ended(store)

    assert not await store.save_parts(job.id, job.lease_token + drift, SHOWN, ME)

    assert await unchanged(store, job)


async def test_there_is_no_progress_before_or_after_a_delivery(store: Store) -> None:
    for job in (await running(store), await ended(store, lease=None), await delivered(store)):
        assert not await store.save_parts(job.id, job.lease_token, (), ME)
        assert await unchanged(store, job)


async def test_a_delivered_result_is_captured_in_the_same_commit(store: Store, clock: ManualClock) -> None:
    account_id = await account_with(store, 1000)
    job = await ended(store, account_id=account_id, price=300)
    clock.advance(5)  # later than a lease is kept as it is

    assert await finish(store, job)

    assert await unchanged(
        store,
        replace(
            job,
            parts=SHOWN,
            placeholder="message-1",
            delivery=Delivery.DELIVERED,
            delivered_at=clock.now(),
            hold_state=HoldState.CAPTURED,
            notice=Notice.DUE,
            due_at=clock.after(ME.seconds),
        ),
    )
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=700, held=0)
    assert await settlements(store, account_id) == [EntryKind.CAPTURE]


async def test_finish_delivery_returns_hold_state_and_notice(store: Store) -> None:
    job = await ended(store)

    word = FinishDelivery(job_id=job.id, token=job.lease_token, delivery=Delivery.DELIVERED, parts=SHOWN)
    finished = await store.finish_delivery(word, ME)

    assert finished is not None
    assert (finished.hold_state, finished.notice) == (HoldState.CAPTURED, Notice.DUE)


async def test_a_job_that_wants_no_notice_is_done_when_it_is_delivered(store: Store) -> None:
    job = await delivered(store, notice=False)

    assert (job.notice, job.lease_owner, job.due_at) == (Notice.NONE, None, None)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.EXPIRED])
async def test_words_are_delivered_free(store: Store, state: State) -> None:
    account_id = await account_with(store, 1000)

    job = await delivered(store, state, account_id=account_id)

    assert (job.hold_state, job.delivery, job.notice) == (HoldState.RELEASED, Delivery.DELIVERED, Notice.DUE)
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000, held=0)
    assert await settlements(store, account_id) == [EntryKind.RELEASE]


async def test_a_free_result_moves_no_money(store: Store) -> None:
    job = await delivered(store, account_id=await account_with(store, 0), price=0)

    assert job.hold_state is HoldState.FREE
    assert await store.ledger_entries(job.account_id, 10) == []


@pytest.mark.parametrize("delivery", UNDELIVERED)
async def test_a_failed_or_unknown_delivery_is_not_captured_and_needs_attention(
    store: Store, delivery: Delivery
) -> None:
    account_id = await account_with(store, 1000)
    job = await ended(store, account_id=account_id)

    assert await finish(store, job, delivery, attention_reason="blocked")

    now = await see(store, job)
    assert (now.delivery, now.hold_state, now.attention_reason) == (delivery, HoldState.RELEASED, "blocked")
    assert now.delivered_at is None
    if delivery is Delivery.UNDELIVERABLE:
        assert (now.due_at, now.lease_owner, now.notice) == (None, None, Notice.WANTED)
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000, held=0)
    assert await settlements(store, account_id) == [EntryKind.RELEASE]


@pytest.mark.parametrize("drift", [-1, 1])
async def test_a_stale_token_finishes_no_delivery(store: Store, drift: int) -> None:
    job = await ended(store)

    assert not await finish(store, replace(job, lease_token=job.lease_token + drift))

    assert await unchanged(store, job)


async def test_only_a_delivery_in_progress_can_be_finished(store: Store) -> None:
    for job in (await queued(store), await submitting(store), await running(store), await ended(store, lease=None)):
        assert not await finish(store, job)
        assert await unchanged(store, job)


async def test_a_delivery_finishes_once(store: Store) -> None:
    job = await ended(store)

    done = await asyncio.gather(*(finish(store, job, delivery) for delivery in (*UNDELIVERED, Delivery.DELIVERED) * 4))

    assert sum(done) == 1
    assert len(await settlements(store, job.account_id)) == 1


async def test_finishes_merged_into_one_batch_each_settle_their_own_money(store: Store) -> None:
    account_id = await account_with(store, 1000)
    jobs = [await ended(store, account_id=account_id, price=10 * number) for number in range(1, 9)]
    ways = [Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN, Delivery.DELIVERED] * 2

    done = await asyncio.gather(*(finish(store, job, way) for job, way in zip(jobs, ways, strict=True)))

    assert all(done)
    paid = sum(job.price for job, way in zip(jobs, ways, strict=True) if way is Delivery.DELIVERED)
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000 - paid, held=0)


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

    again_in_5 = Reschedule(job_id=job.id, token=job.lease_token, after=5.0, notice=Notice.DUE, failed=True)
    assert await store.reschedule(again_in_5)

    clock.advance(5)
    assert (await claimed(store, job)).notice is Notice.DUE


# invalid results, changed addresses


@pytest.mark.parametrize("price", [0, 100])
async def test_an_invalid_result_becomes_a_failure_and_its_hold_is_released_once(store: Store, price: int) -> None:
    account_id = await account_with(store, 1000)
    job = await ended(store, account_id=account_id, price=price)

    for _ in range(2):  # the second time is a repetition of the statement
        failed = await store.mark_result_invalid(job.id, job.lease_token, MESSAGE_ONLY, "broken_result", "an HTML page")
        assert failed is not None
        assert (failed.state, failed.error_code, failed.error_text) == (State.FAILED, "broken_result", "an HTML page")
        assert (failed.parts, failed.delivery, failed.lease_token) == (MESSAGE_ONLY, Delivery.SENDING, job.lease_token)
        assert failed.hold_state is (HoldState.RELEASED if price else HoldState.FREE)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000, held=0)
    assert await settlements(store, account_id) == ([EntryKind.RELEASE] if price else [])
    assert await finish(store, job)
    assert await settlements(store, account_id) == ([EntryKind.RELEASE] if price else [])
    assert await store.violations(settled=False) == []


async def test_a_stale_token_marks_no_result_invalid(store: Store) -> None:
    job = await ended(store)

    assert await store.mark_result_invalid(job.id, job.lease_token - 1, MESSAGE_ONLY, "broken_result", "") is None

    assert await unchanged(store, job)


async def test_a_captured_or_finished_result_is_not_marked_invalid(store: Store) -> None:
    paid = await delivered(store)
    assert await store.resend_job(paid.id, again(SHOWN))
    paid = await claimed(store, paid)
    assert await store.mark_result_invalid(paid.id, paid.lease_token, MESSAGE_ONLY, "broken_result", "") is None
    assert (await see(store, paid)).hold_state is HoldState.CAPTURED

    expired = await ended(store, State.EXPIRED)
    assert await store.mark_result_invalid(expired.id, expired.lease_token, MESSAGE_ONLY, "broken_result", "") is None
    assert (await see(store, expired)).state is State.EXPIRED


async def test_a_changed_address_is_stored_and_the_placeholder_dropped(store: Store) -> None:
    job = await ended(store)

    assert not await store.change_address(job.id, job.lease_token - 1, "elsewhere", SHOWN)
    assert await unchanged(store, job)
    assert await store.change_address(job.id, job.lease_token, "elsewhere", SHOWN)

    now = await see(store, job)
    assert (now.address, now.placeholder, now.parts) == ("elsewhere", None, SHOWN)
    assert (now.lease_owner, now.due_at, now.delivery) == (job.lease_owner, job.due_at, job.delivery)


async def test_a_late_result_that_is_invalid_becomes_a_failure_and_moves_no_money(store: Store) -> None:
    for state in (State.EXPIRED, State.FAILED):
        job = await ended(store, state, lease=None)
        late = (await end(store, job, State.SUCCEEDED)).job
        assert late is not None
        wallet = await store.wallet(job.account_id)

        failed = await store.mark_result_invalid(late.id, late.lease_token, MESSAGE_ONLY, "broken_result", "")

        assert failed is not None
        assert (failed.state, failed.late, failed.hold_state) == (State.FAILED, False, HoldState.RELEASED)
        assert await store.wallet(job.account_id) == wallet
        assert await store.violations(settled=False) == []


# progress edits whose outcome is unknown


async def edited(store: Store, clock: ManualClock) -> Job:
    """A running job with a progress edit on its way."""
    job = await running(store, placeholder="m1")
    clock.advance(5)
    job = await claimed(store, job)
    clock.advance(1)
    assert await store.begin_progress(job.id, job.lease_token, ME)
    return await see(store, job)


async def test_a_progress_edit_is_recorded_and_renews_the_lease(store: Store, clock: ManualClock) -> None:
    job = await edited(store, clock)

    assert (job.progress_message, job.due_at, job.lease_owner) == ("m1", clock.after(ME.seconds), ME.owner)
    for stale in (replace(ME, owner="another"), ME):
        token = job.lease_token - (stale is ME)
        assert not await store.begin_progress(job.id, token, stale)
    assert await unchanged(store, job)


@pytest.mark.parametrize("settled", [True, False])
async def test_a_progress_edit_is_cleared_only_when_it_is_settled(
    store: Store, clock: ManualClock, *, settled: bool
) -> None:
    job = await edited(store, clock)

    assert await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=5.0, progress_settled=settled))

    assert (await see(store, job)).progress_message == (None if settled else "m1")


async def test_the_end_of_a_job_says_whether_a_progress_edit_may_take_effect(store: Store, clock: ManualClock) -> None:
    quiet = (await end(store, await running(store, placeholder="m1"), State.FAILED)).job
    loud = (await end(store, await edited(store, clock), State.FAILED, OTHER)).job

    assert quiet is not None
    assert loud is not None
    assert (quiet.progress_message, loud.progress_message) == (None, "m1")
    assert loud.fresh
    clock.advance(60)
    assert not (await claimed(store, loud)).fresh


@pytest.mark.parametrize("notice", [True, False], ids=["notice", "no notice"])
async def test_an_overwritable_message_is_due_again_after_its_delivery(
    store: Store, clock: ManualClock, *, notice: bool
) -> None:
    job = await edited(store, clock)
    ending = (await end(store, job, State.FAILED)).job
    assert ending is not None
    if not notice:
        assert await store.reschedule(
            Reschedule(job_id=job.id, token=ending.lease_token, after=0.0, notice=Notice.NONE)
        )
        ending = await claimed(store, ending)

    assert await finish(store, ending, overwritable=True)
    if notice:
        assert await store.begin_notice(job.id, ending.lease_token)

    now = await see(store, job)
    assert (now.progress_message, now.due_at, now.lease_owner) == ("m1", clock.after(4), None)
    assert await store.violations(settled=True) == []
    assert await store.resend_job(job.id, again(now.parts))
    assert (await see(store, job)).progress_message == "m1"


async def test_a_message_that_cannot_be_overwritten_is_not_due_again(store: Store, clock: ManualClock) -> None:
    ending = (await end(store, await edited(store, clock), State.SUCCEEDED)).job
    assert ending is not None

    assert await finish(store, ending)
    assert await store.begin_notice(ending.id, ending.lease_token)

    now = await see(store, ending)
    assert (now.progress_message, now.due_at) == (None, None)


async def test_the_cost_of_a_cancelled_job_does_not_end_the_puts_of_its_message(
    store: Store, clock: ManualClock
) -> None:
    ending = (await end(store, await edited(store, clock), State.CANCELLED)).job
    assert ending is not None
    assert await finish(store, ending, overwritable=True)
    assert await store.begin_notice(ending.id, ending.lease_token)

    assert (await end(store, ending, State.SUCCEEDED, cost=7)).verdict is Verdict.CANCELLED

    assert (await see(store, ending)).due_at is not None


async def test_a_changed_address_clears_the_progress_edit(store: Store, clock: ManualClock) -> None:
    ending = (await end(store, await edited(store, clock), State.FAILED)).job
    assert ending is not None

    assert await store.change_address(ending.id, ending.lease_token, "elsewhere", SHOWN)

    assert (await see(store, ending)).progress_message is None
