import asyncio
from dataclasses import replace
from typing import Any

import pytest

from genlock.domain.errors import AccountNotFound, IdempotencyKeyReused, InsufficientBalance
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import Accepted, Store
from tests.stores.builders import ME, OTHER, ManualClock, account_with, order, see


async def test_an_order_becomes_a_job_with_the_same_values(store: Store, clock: ManualClock) -> None:
    account_id = await account_with(store)
    wanted = order(account_id, input='{"prompt":"кот 🐈"}')

    accepted = await store.accept_job(wanted, ME)

    assert accepted.created
    assert accepted.job == Job(
        id=accepted.job.id,
        account_id=account_id,
        request_key=wanted.request_key,
        correlation_id=wanted.correlation_id,
        provider=wanted.provider,
        channel=wanted.channel,
        bot=wanted.bot,
        address=wanted.address,
        placeholder=wanted.placeholder,
        model=wanted.model,
        input=wanted.input,
        price=wanted.price,
        hold_state=HoldState.HELD,
        state=State.QUEUED,
        task_id=None,
        error_code="",
        error_text="",
        cancelled_by=None,
        cost=None,
        late=False,
        parts=(),
        delivery=Delivery.NONE,
        notice=Notice.WANTED,
        attention_code=None,
        attention_reason=None,
        attempts=0,
        due_at=clock.after(ME.seconds),
        deadline_at=clock.after(wanted.deadline_seconds),
        grace_until=None,
        lease_owner=ME.owner,
        lease_token=1,
        created_at=clock.now(),
        submitted_at=None,
        ended_at=None,
        delivered_at=None,
        read_at=clock.now(),
    )
    assert await store.job(accepted.job.id) == accepted.job


async def test_the_money_is_held_in_the_same_commit(store: Store) -> None:
    account_id = await account_with(store, 1000)

    await store.accept_job(order(account_id, price=300), ME)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=700, held=300)
    assert sorted(ledger_entry.kind for ledger_entry in await store.ledger_entries(account_id, 10)) == [
        EntryKind.HOLD,
        EntryKind.TOPUP,
    ]


async def test_a_leased_job_is_not_claimed_until_the_lease_expires(store: Store, clock: ManualClock) -> None:
    await store.accept_job(order(await account_with(store)), ME)

    clock.advance(ME.seconds - 0.001)
    assert await store.claim_jobs(10, OTHER) == []
    clock.advance(0.001)
    assert len(await store.claim_jobs(10, OTHER)) == 1


async def test_an_unleased_job_may_be_taken_at_once(store: Store, clock: ManualClock) -> None:
    accepted = await store.accept_job(order(await account_with(store)), None)

    assert (accepted.job.lease_owner, accepted.job.due_at) == (None, clock.now())
    assert [job.id for job in await store.claim_jobs(10, ME)] == [accepted.job.id]


async def test_a_job_may_want_no_notice(store: Store) -> None:
    accepted = await store.accept_job(order(await account_with(store), notice=False), ME)

    assert accepted.job.notice is Notice.NONE


async def test_the_same_key_again_gives_the_same_job(store: Store) -> None:
    account_id = await account_with(store, 1000)
    wanted = order(account_id, price=300)
    first = await store.accept_job(wanted, ME)

    assert await store.accept_job(wanted, OTHER) == Accepted(job=first.job, created=False)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=700, held=300)


async def test_the_same_key_again_gives_the_same_job_even_without_balance(store: Store) -> None:
    account_id = await account_with(store, 300)
    wanted = order(account_id, price=300)
    first = await store.accept_job(wanted, ME)

    assert (await store.accept_job(wanted, ME)).job.id == first.job.id


async def test_the_same_order_may_come_from_another_address(store: Store) -> None:
    """The address and the way of answering are not part of the order's fingerprint."""
    wanted = order(await account_with(store))
    first = await store.accept_job(wanted, ME)

    moved = replace(wanted, address="elsewhere", placeholder=None, correlation_id="other", notice=False)

    assert await store.accept_job(moved, ME) == Accepted(job=first.job, created=False)


@pytest.mark.parametrize(
    "change", [{"provider": "other"}, {"channel": "mail"}, {"model": "other"}, {"input": "{}"}, {"price": 1}], ids=str
)
async def test_the_same_key_for_another_order_is_refused(store: Store, change: dict[str, Any]) -> None:
    account_id = await account_with(store, 1000)
    wanted = order(account_id, price=300)
    first = await store.accept_job(wanted, ME)

    with pytest.raises(IdempotencyKeyReused):
        await store.accept_job(replace(wanted, **change), ME)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=700, held=300)
    assert await store.jobs() == [first.job]


async def test_two_accounts_may_use_the_same_key(store: Store) -> None:
    one, other = await account_with(store), await account_with(store)

    first = await store.accept_job(order(one, request_key="key"), ME)
    second = await store.accept_job(order(other, request_key="key"), ME)

    assert (first.created, second.created) == (True, True)
    assert first.job.id != second.job.id


async def test_without_enough_money_nothing_is_written_and_nothing_held(store: Store) -> None:
    account_id = await account_with(store, 99)
    wanted = order(account_id, price=100)

    with pytest.raises(InsufficientBalance) as refusal:
        await store.accept_job(wanted, ME)

    assert (refusal.value.price, refusal.value.available) == (100, 99)
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=99, held=0)
    assert await store.jobs() == []
    await store.transfer(account_id, EntryKind.TOPUP, 1, "one more")
    assert (await store.accept_job(wanted, ME)).created, "the key is still free"


async def test_the_whole_balance_may_be_spent(store: Store) -> None:
    account_id = await account_with(store, 100)

    await store.accept_job(order(account_id, price=100), ME)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=0, held=100)


async def test_an_unknown_account_cannot_order(store: Store) -> None:
    with pytest.raises(AccountNotFound):
        await store.accept_job(order(10**9, price=0), ME)


async def test_a_free_job_needs_no_balance_and_moves_no_money(store: Store) -> None:
    account_id = await account_with(store, 0)

    accepted = await store.accept_job(order(account_id, price=0), ME)

    assert accepted.job.hold_state is HoldState.FREE
    assert await store.ledger_entries(account_id, 10) == []


async def test_concurrent_orders_never_overspend(store: Store) -> None:
    account_id = await account_with(store, 350)

    tries = (store.accept_job(order(account_id, price=100), ME) for _ in range(20))
    answers = await asyncio.gather(*tries, return_exceptions=True)

    assert len([answer for answer in answers if isinstance(answer, Accepted)]) == 3
    assert len([answer for answer in answers if isinstance(answer, InsufficientBalance)]) == 17
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=50, held=300)


async def test_concurrent_repetitions_of_an_order_are_one_job(store: Store) -> None:
    account_id = await account_with(store, 1000)
    wanted = order(account_id, price=100)

    accepted = await asyncio.gather(*(store.accept_job(wanted, ME) for _ in range(20)))

    assert len({acceptance.job.id for acceptance in accepted}) == 1
    assert sum(acceptance.created for acceptance in accepted) == 1
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=900, held=100)


async def test_orders_merged_into_one_batch_each_get_their_own_job(store: Store) -> None:
    """Leased and unleased, rich and poor, paid and free, old and new: all in flight together."""
    rich = [await account_with(store, 1000) for _ in range(30)]
    poor = [await account_with(store, 1) for _ in range(10)]
    old = order(rich[0])
    known = await store.accept_job(old, ME)

    wanted = [order(account_id, price=number) for number, account_id in enumerate(rich)] + [old]
    leases = [ME if number % 2 else None for number in range(len(wanted))]
    orders = [store.accept_job(new_order, lease) for new_order, lease in zip(wanted, leases, strict=True)]
    too_dear = [store.accept_job(order(account_id), ME) for account_id in poor]
    answers = await asyncio.gather(*orders, *too_dear, return_exceptions=True)

    for new_order, lease, answer in zip(wanted[:-1], leases, answers, strict=False):
        assert isinstance(answer, Accepted)
        assert (answer.job.account_id, answer.job.request_key, answer.created) == (
            new_order.account_id,
            new_order.request_key,
            True,
        )
        assert answer.job.lease_owner == (lease.owner if lease else None)
        assert await see(store, answer.job) == answer.job
    assert answers[len(rich)] == Accepted(job=known.job, created=False)
    assert all(isinstance(answer, InsufficientBalance) for answer in answers[len(wanted) :])


async def test_orders_of_one_account_at_the_same_time_are_covered_together_or_refused(store: Store) -> None:
    """A large order that the balance does not cover beside others keeps none of them back."""
    account_id = await account_with(store, 1000)
    prices = [300, 900, 300, 300, 300, 100, 0]
    wanted = [order(account_id, price=price) for price in prices]

    answers = await asyncio.gather(*(store.accept_job(new_order, ME) for new_order in wanted), return_exceptions=True)

    accepted = [answer.job for answer in answers if isinstance(answer, Accepted)]
    refused = [answer for answer in answers if not isinstance(answer, Accepted)]
    assert all(isinstance(refusal, InsufficientBalance) and refusal.price > refusal.available for refusal in refused), (
        refused
    )
    spent = sum(job.price for job in accepted)
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=1000 - spent, held=spent)
    assert (
        min((refusal.price for refusal in refused if isinstance(refusal, InsufficientBalance)), default=0)
        > 1000 - spent
    )
    for job in accepted:
        assert await see(store, job) == job
    assert {job.request_key for job in await store.jobs(account_id=account_id)} == {job.request_key for job in accepted}


async def test_orders_of_many_accounts_and_repetitions_at_the_same_time_are_each_accepted_once(store: Store) -> None:
    accounts = [await account_with(store, 1000) for _ in range(3)]
    wanted = [order(account_id, price=100) for account_id in accounts for _ in range(5)]

    answers = await asyncio.gather(*(store.accept_job(new_order, ME) for new_order in (*wanted, *wanted)))

    assert sorted(answer.created for answer in answers) == [False] * 15 + [True] * 15
    for answer, again in zip(answers[:15], answers[15:], strict=True):
        assert answer.job.id == again.job.id
    for account_id in accounts:
        assert await store.wallet(account_id) == Wallet(account_id=account_id, available=500, held=500)
