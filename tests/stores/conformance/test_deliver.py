"""Deliveries: progress is stored, and the result is captured with the end of its delivery, once."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.delivery import Level, Part, Step
from genlock.domain.job import Delivery, Notice, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.domain.result import PartKind
from genlock.ports import FinishDelivery, Store
from tests.stores.builders import (
    ME,
    RESULT,
    SHOWN,
    ManualClock,
    account_with,
    delivered,
    ended,
    finish,
    queued,
    running,
    see,
    submitting,
    unchanged,
)
from tests.stores.conformance.settlements import UNDELIVERED, settlements


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
