"""Refusals for lack of credits: true when they are given, though credits may arrive at the same moment."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from genlock.domain.delivery import again
from genlock.domain.errors import InsufficientBalance, TooManyOpenJobs
from genlock.domain.job import Delivery, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.stores.database import SqlDatabase
from tests.stores.builders import PRICE, account_with, end, ended, finish, new_key, order, see

#: makes something happen just before a statement runs for the first time
Before = Callable[[str, Callable[[], Any]], None]


@pytest.fixture
def before(store: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> Before:
    run = store.session.one

    def arrange(statement: str, change: Callable[[], Any]) -> None:
        async def one(name: str, /, **params: Any) -> Any:
            if name == statement:
                monkeypatch.setattr(store.session, "one", run)
                await change()
            return await run(name, **params)

        monkeypatch.setattr(store.session, "one", one)

    return arrange


async def test_an_order_is_accepted_with_credits_that_arrive_before_its_refusal(
    store: SqlDatabase, before: Before
) -> None:
    account = await account_with(store, PRICE - 1)
    before("accept_lookup", lambda: store.transfer(account, EntryKind.TOPUP, 1, "topup"))

    accepted = await store.accept_job(order(account), None)

    assert accepted.job.state is State.QUEUED
    assert await store.wallet(account) == Wallet(account_id=account, available=0, held=PRICE)


async def test_an_order_is_accepted_when_another_one_ends_before_its_refusal(
    store: SqlDatabase, before: Before
) -> None:
    account = await account_with(store)
    key, _ = await store.add_api_key(new_key(account))
    limits: dict[str, Any] = {"api_key_id": key.id, "open_max": 1, "address": "{}"}
    first = (await store.accept_job(order(account, **limits), None)).job
    before("accept_lookup", lambda: end(store, first, State.FAILED, None))

    assert (await store.accept_job(order(account, **limits), None)).created
    with pytest.raises(TooManyOpenJobs):
        await store.accept_job(order(account, **limits), None)


async def test_credits_are_deducted_that_arrive_before_the_refusal(store: SqlDatabase, before: Before) -> None:
    account = await account_with(store, 4)
    before("wallet", lambda: store.transfer(account, EntryKind.TOPUP, 1, "topup"))

    assert await store.transfer(account, EntryKind.DEBIT, 5, "debit")
    assert (await store.wallet(account)).available == 0


async def test_a_lost_result_is_paid_with_credits_that_arrive_before_the_refusal(
    store: SqlDatabase, before: Before
) -> None:
    account = await account_with(store, PRICE)
    job = await ended(store, account_id=account)
    assert await finish(store, job, Delivery.UNDELIVERABLE)
    assert await store.transfer(account, EntryKind.DEBIT, 1, "debit")
    before("wallet", lambda: store.transfer(account, EntryKind.TOPUP, 1, "topup"))

    assert await store.resend_paid_job(job.id, again(job.parts), (await see(store, job)).lease_token)
    assert (await see(store, job)).hold_state is HoldState.HELD


async def test_refusals_name_a_balance_below_the_price_while_others_pay_in_and_spend(store: SqlDatabase) -> None:
    account = await account_with(store, 0)

    async def pay_in(number: int) -> None:
        await store.transfer(account, EntryKind.TOPUP, PRICE, f"topup:{number}")

    orders = [store.accept_job(order(account), None) for _ in range(40)]
    answers = await asyncio.gather(*orders, *map(pay_in, range(20)), return_exceptions=True)

    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert all(isinstance(refusal, InsufficientBalance) and refusal.available < PRICE for refusal in refused), refused
    assert await store.violations(settled=False) == []
