"""Reading jobs, and what an operator can do with them."""

from dataclasses import replace

import pytest

from genlock.domain.delivery import again
from genlock.domain.errors import InsufficientBalance
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import Reschedule, Store
from tests.stores.builders import (
    ME,
    OTHER,
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


async def test_there_is_no_job_with_an_unknown_id(store: Store) -> None:
    assert await store.job(10**9) is None


async def test_jobs_are_listed_newest_first_by_state_account_and_page(store: Store) -> None:
    one, other = await account_with(store), await account_with(store)
    first = await queued(store, account_id=one)
    second = await running(store, account_id=one)
    third = await running(store, account_id=other)
    fourth = await ended(store, account_id=other)

    async def ids(**wanted: object) -> list[int]:
        return [job.id for job in await store.jobs(**wanted)]  # type: ignore[arg-type]

    assert await ids() == [fourth.id, third.id, second.id, first.id]
    assert await ids(state=State.RUNNING) == [third.id, second.id]
    assert await ids(account_id=one) == [second.id, first.id]
    assert await ids(state=State.RUNNING, account_id=one) == [second.id]
    assert await ids(before=third.id) == [second.id, first.id]
    assert await ids(before=third.id, limit=1) == [second.id]
    assert await ids(limit=3) == [fourth.id, third.id, second.id]
    assert await ids(state=State.EXPIRED) == []
    assert await store.jobs(limit=1) == [fourth]


async def test_jobs_needing_attention_are_listed_oldest_first(store: Store) -> None:
    await queued(store)
    jobs = [await ended(store) for _ in range(3)]
    for job in jobs:
        assert await finish(store, job, Delivery.UNKNOWN, attention_reason=f"look at {job.id}")

    assert [(job.id, job.attention_reason) for job in await store.jobs_needing_attention(2)] == [
        (job.id, f"look at {job.id}") for job in jobs[:2]
    ]


# retry


async def test_retry_makes_a_waiting_job_due_now(store: Store, clock: ManualClock) -> None:
    job = await queued(store)
    await store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token, after=60.0, failed=True, attention_reason="look")
    )
    clock.advance(1)

    assert await store.retry_job(job.id)

    now = await see(store, job)
    assert (now.due_at, now.attempts, now.attention_reason, now.state) == (clock.now(), 0, None, State.QUEUED)
    assert now.lease_token == job.lease_token + 1, "the previous holder is fenced"
    assert [taken.id for taken in await store.claim_jobs(10, ME)] == [job.id]


async def test_a_parked_submit_is_queued_again(store: Store) -> None:
    job = await submitting(store)
    await store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="submit_unknown")
    )

    assert not await store.retry_job(job.id), "the provider may have accepted it: the operator decides about it alone"
    assert not await store.retry_job(job.id, resubmit=job.lease_token - 1)
    assert (await see(store, job)).is_parked_submit
    assert await store.retry_job(job.id, resubmit=job.lease_token)

    now = await see(store, job)
    assert (now.state, now.attention_reason) == (State.QUEUED, None)
    assert not await store.mark_submitted(job.id, job.lease_token, "task", 5.0)


async def test_a_submit_that_a_restored_database_no_longer_knows_is_an_operators_decision_too(store: Store) -> None:
    """It was queued in the backup, and may have been submitted since."""
    job = await queued(store)
    parked = Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="restored")
    await store.reschedule(replace(parked, attention_code=AttentionCode.PARKED))

    assert not await store.retry_job(job.id)
    assert await store.retry_job(job.id, resubmit=job.lease_token)

    assert [taken.id for taken in await store.claim_jobs(10, ME)] == [job.id]


async def test_a_submit_in_its_grace_time_is_not_queued_again(store: Store) -> None:
    """Its create call may have been accepted: a second call could be billed twice."""
    job = await submitting(store)
    await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=60.0, grace=True))

    assert await store.retry_job(job.id)

    assert (await see(store, job)).state is State.SUBMITTING


async def test_retry_makes_a_waiting_delivery_due_now(store: Store) -> None:
    job = await ended(store)
    await store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token, after=60.0, delivery=Delivery.PENDING, failed=True)
    )

    assert await store.retry_job(job.id)

    assert (await claimed(store, job)).delivery is Delivery.SENDING


async def test_a_parked_delivery_is_retried(store: Store) -> None:
    job = await ended(store)
    await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="stage error"))

    assert await store.retry_job(job.id)

    taken = await claimed(store, job)
    assert (taken.delivery, taken.attention_reason) == (Delivery.SENDING, None)


async def notice_given_up(store: Store) -> Job:
    """A result that was delivered, and whose notice failed in every attempt."""
    job = await delivered(store)
    assert job.notice is Notice.DUE
    await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="stage error"))
    return await see(store, job)


async def test_a_notice_that_failed_in_every_attempt_is_retried(store: Store) -> None:
    job = await notice_given_up(store)

    assert await store.retry_job(job.id)

    taken = await claimed(store, job)
    assert (taken.delivery, taken.notice, taken.attention_reason) == (Delivery.DELIVERED, Notice.DUE, "stage error")
    assert await store.begin_notice(job.id, taken.lease_token)


async def test_a_retry_changes_nothing_while_a_notice_waits_for_the_channel(store: Store) -> None:
    """Otherwise an unknown delivery would leave the operator's list."""
    job = await ended(store)
    assert await finish(store, job, Delivery.UNKNOWN)
    assert await store.begin_notice(job.id, job.lease_token)
    assert await store.return_notice(job.id, job.lease_token, 30.0, failed=False)
    job = await see(store, job)

    assert not await store.retry_job(job.id)
    assert await unchanged(store, job)


async def test_a_leased_or_finished_job_cannot_be_retried(store: Store) -> None:
    for job in (await queued(store), await ended(store), await delivered(store), await delivered(store, notice=False)):
        assert not await store.retry_job(job.id)
        assert await unchanged(store, job)
    assert not await store.retry_job(10**9)


# resend


@pytest.mark.parametrize("delivery", [Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN])
async def test_an_ended_delivery_can_be_resent(store: Store, clock: ManualClock, delivery: Delivery) -> None:
    job = await ended(store)
    assert await finish(store, job, delivery)
    shown = await see(store, job)
    clock.advance(1)

    assert await store.resend_job(job.id, again(shown.parts))

    assert await unchanged(
        store,
        replace(
            shown,
            delivery=Delivery.PENDING,
            delivered_at=None,
            parts=again(SHOWN),
            placeholder=None,
            due_at=clock.now(),
            lease_owner=None,
            lease_token=shown.lease_token + 1,
            notice=Notice.WANTED,
            attention_code=None,
            attention_reason=None,
            progress_message=shown.placeholder if delivery is Delivery.UNDELIVERABLE else None,
        ),
    )
    assert (await claimed(store, job, OTHER)).delivery is Delivery.SENDING


async def test_only_an_ended_delivery_can_be_resent(store: Store) -> None:
    for job in (await queued(store), await running(store), await ended(store, lease=None), await ended(store)):
        assert not await store.resend_job(job.id, ())
        assert await unchanged(store, job)
    assert not await store.resend_job(10**9, ())


async def test_resend_with_a_token_needs_the_row_that_was_read(store: Store) -> None:
    """A late result may have replaced the parts that the operator saw."""
    job = await delivered(store)

    for drift in (-1, 1):
        assert not await store.resend_job(job.id, again(job.parts), job.lease_token + drift)
    assert await unchanged(store, job)

    assert await store.resend_job(job.id, again(job.parts), job.lease_token)


async def test_a_result_cannot_be_resent_twice_at_a_time(store: Store) -> None:
    job = await delivered(store)

    assert await store.resend_job(job.id, again(job.parts))
    assert not await store.resend_job(job.id, again(job.parts))


async def test_an_undeliverable_result_is_paid_when_it_is_resent(store: Store) -> None:
    account = await account_with(store, 1000)
    job = await ended(store, account_id=account, price=300)
    for _ in range(2):
        assert await finish(store, job, Delivery.UNDELIVERABLE)
        assert (await store.wallet(account)).available == 1000
        lost = await see(store, job)
        assert lost.unpaid
        assert not await store.resend_paid_job(job.id, again(lost.parts), lost.lease_token + 1)
        assert await unchanged(store, lost)

        assert await store.resend_paid_job(job.id, again(lost.parts), lost.lease_token)

        assert not await store.resend_paid_job(job.id, again(lost.parts), lost.lease_token)
        assert (await see(store, job)).hold_state is HoldState.HELD
        assert await store.wallet(account) == Wallet(account_id=account, available=700, held=300)
        assert await store.violations(settled=False) == []
        job = await claimed(store, job)
    assert await finish(store, job)

    assert (await see(store, job)).hold_state is HoldState.CAPTURED
    assert await store.wallet(account) == Wallet(account_id=account, available=700, held=0)
    assert await store.violations(settled=False) == []
    assert len([entry for entry in await store.ledger_entries(account, 50) if entry.job_id == job.id]) == 6
    assert not await store.resend_paid_job(job.id, again(job.parts), (await see(store, job)).lease_token)


async def test_a_resend_above_the_balance_is_refused_and_changes_nothing(store: Store) -> None:
    account = await account_with(store, 300)
    job = await ended(store, account_id=account, price=300)
    assert await finish(store, job, Delivery.UNDELIVERABLE)
    assert await store.transfer(account, EntryKind.DEBIT, 100, "spent")
    lost = await see(store, job)

    with pytest.raises(InsufficientBalance) as short:
        await store.resend_paid_job(job.id, again(lost.parts), lost.lease_token)

    assert (short.value.price, short.value.available) == (300, 200)
    assert await unchanged(store, lost)
    assert await store.violations(settled=False) == []


@pytest.mark.parametrize("delivery", [Delivery.DELIVERED, Delivery.UNKNOWN])
async def test_only_an_undeliverable_result_is_paid_again(store: Store, delivery: Delivery) -> None:
    job = await ended(store)
    assert await finish(store, job, delivery)
    seen = await see(store, job)

    assert not await store.resend_paid_job(job.id, again(seen.parts), seen.lease_token)
    assert await unchanged(store, seen)


# counts


async def test_an_empty_store_counts_nothing(store: Store) -> None:
    counts = await store.counts()

    assert counts == dict.fromkeys(("due", "callbacks", "orphans", "attention"), 0)


async def test_counts_report_what_is_in_progress(store: Store, clock: ManualClock) -> None:
    await queued(store)
    await queued(store, lease=None)
    await running(store)
    await ended(store, State.FAILED)
    done = await delivered(store)
    assert await store.begin_notice(done.id, done.lease_token)
    lost = await ended(store)
    assert await finish(store, lost, Delivery.UNDELIVERABLE)
    await store.store_callback("kie", None, "", b"{}")
    orphan = await store.store_callback("kie", None, "", b"{}")
    assert await store.note_untrusted_callback(orphan.id, "kie", "unknown") is None
    settled = await store.store_callback("kie", None, "", b"{}")
    await store.settle_callback(settled.id, InboxState.DONE)

    counts = await store.counts()

    assert counts == {
        "queued": 2,
        "running": 1,
        "failed": 1,
        "due": 1,
        "callbacks": 1,
        "orphans": 1,
        "attention": 1,
    }
    clock.advance(100)
    assert (await store.counts())["due"] == 4


async def test_a_late_result_of_an_undelivered_expiry_keeps_its_notice(store: Store) -> None:
    job = await ended(store, State.EXPIRED)
    assert await finish(store, job, Delivery.UNDELIVERABLE)

    late = (await end(store, job, State.SUCCEEDED)).job

    assert late is not None
    assert (late.attention_reason, late.notice, late.delivery) == (None, Notice.WANTED, Delivery.SENDING)
