"""Payments, their refunds, and the debts after refunds that Telegram makes without us."""

import asyncio

from genlock.domain.job import Delivery, State
from genlock.domain.money import EntryKind, Wallet
from genlock.domain.payment import Payment, PaymentState
from genlock.stores.database import SqlDatabase
from tests.stores.builders import account_with, delivered, end, ended, finish, queued, see


async def paid(store: SqlDatabase, account_id: int, charge: str, amount: int) -> None:
    assert await store.transfer(account_id, EntryKind.TOPUP, amount, f"stars:{charge}")
    assert await store.add_payment(charge, account_id, 10, amount)


async def balances(store: SqlDatabase, account_id: int) -> tuple[int, int, int]:
    wallet = await store.wallet(account_id)
    return wallet.available, wallet.held, wallet.debt


async def stored(store: SqlDatabase, charge: str) -> Payment:
    payment = await store.payment(charge)
    assert payment is not None
    return payment


async def lines(store: SqlDatabase, account_id: int) -> set[tuple[str, int]]:
    found = await store.ledger_entries(account_id, 100)
    return {(entry.key, entry.amount) for entry in found if entry.key.startswith(("charge", "repay"))}


async def test_a_payment_is_recorded_once(store: SqlDatabase) -> None:
    assert await store.add_payment("c1", 1, 100, 120_000)
    assert not await store.add_payment("c1", 1, 100, 120_000)
    assert await store.payment("c2") is None
    [payment] = await store.payments(1, 10)
    assert (payment.charge, payment.paid_amount, payment.amount, payment.state) == (
        "c1",
        100,
        120_000,
        PaymentState.PAID,
    )


async def test_a_refund_debits_and_returns_the_credits_once_per_attempt(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1", 120)

    begun = await store.begin_refund("c1", "op")
    assert begun is not None
    assert (begun.state, begun.refunds) == (PaymentState.REFUNDING, 1)
    assert await store.begin_refund("c1", "op") is None
    assert await balances(store, account_id) == (0, 0, 0)
    assert not await store.undo_refund("c1", 0, "refused")
    assert await store.undo_refund("c1", 1, "refused")
    assert not await store.undo_refund("c1", 1, "refused")
    assert await balances(store, account_id) == (120, 0, 0)
    again = await store.begin_refund("c1", "op")
    assert again is not None
    assert again.refunds == 2
    assert await store.finish_refund("c1")
    assert not await store.finish_refund("c1")
    assert not await store.undo_refund("c1", 2, "refused")

    assert await balances(store, account_id) == (0, 0, 0)
    assert (await stored(store, "c1")).state is PaymentState.REFUNDED
    assert await store.violations(settled=False) == []


async def test_a_refund_without_the_credits_changes_nothing(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1", 120)
    assert await store.transfer(account_id, EntryKind.DEBIT, 1, "spent")

    assert await store.begin_refund("c1", "op") is None
    assert await balances(store, account_id) == (119, 0, 0)
    assert (await stored(store, "c1")).refunds == 0


async def test_a_refund_made_without_us_takes_what_is_there_and_records_the_rest_as_a_debt(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1", 120)
    assert await store.transfer(account_id, EntryKind.DEBIT, 70, "spent")

    booked = await store.book_external_refund("c1", "telegram")
    assert booked is not None
    assert (booked.state, booked.owed) == (PaymentState.REFUNDED, 70)
    assert booked.external_refund_at is not None
    assert await store.book_external_refund("c1", "telegram") is None
    assert await store.book_external_refund("unknown", "telegram") is None
    assert await store.begin_refund("c1", "op") is None

    assert await balances(store, account_id) == (0, 0, 70)
    assert [(debtor.account_id, debtor.debt) for debtor in await store.debtors(5)] == [(account_id, 70)]
    assert await lines(store, account_id) == {("chargeback:c1", 50)}
    assert (await store.stats())["external_refunds"] == 1
    assert await store.violations(settled=False) == []


async def test_paid_credits_repay_a_debt_and_gifts_do_not(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1", 120)
    assert await store.transfer(account_id, EntryKind.DEBIT, 120, "spent")
    assert await store.book_external_refund("c1", "telegram")
    assert await balances(store, account_id) == (0, 0, 120)

    assert await store.transfer(account_id, EntryKind.GRANT, 5, "gift")
    assert await balances(store, account_id) == (5, 0, 120)
    assert await store.transfer(account_id, EntryKind.REFUND, 20, "refund:1")
    assert await balances(store, account_id) == (5, 0, 100)
    await paid(store, account_id, "c2", 60)
    assert await balances(store, account_id) == (5, 0, 40)
    await paid(store, account_id, "c3", 60)
    assert not await store.transfer(account_id, EntryKind.TOPUP, 60, "stars:c3")
    assert await balances(store, account_id) == (25, 0, 0)

    assert await lines(store, account_id) == {
        ("repay:refund:1", 20), ("repay:stars:c2", 60), ("repay:stars:c3", 40),
    }  # fmt: skip
    assert await store.violations(settled=False) == []


async def test_a_refund_of_ours_and_the_report_of_it_take_the_credits_once_in_either_order(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    for charge in ("c1", "c2"):
        await paid(store, account_id, charge, 100)
    assert await store.begin_refund("c1", "op")
    reported = await store.book_external_refund("c1", "telegram")
    assert reported is not None
    assert reported.external_refund_at is None  # it is ours
    assert not await store.undo_refund("c1", 1, "refused")  # a refusal that is late gives nothing back
    assert await store.book_external_refund("c2", "telegram")
    assert await store.begin_refund("c2", "op") is None

    assert await balances(store, account_id) == (0, 0, 0)
    assert await store.violations(settled=False) == []


async def test_credits_that_come_back_from_a_refused_refund_repay_a_debt(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    for charge in ("c1", "c2"):
        await paid(store, account_id, charge, 100)
    assert await store.transfer(account_id, EntryKind.DEBIT, 100, "spent")
    assert await store.begin_refund("c1", "op")
    assert await store.book_external_refund("c2", "telegram")
    assert await balances(store, account_id) == (0, 0, 100)
    assert await store.undo_refund("c1", 1, "refused")

    assert await balances(store, account_id) == (0, 0, 0)
    assert await store.violations(settled=False) == []


async def test_concurrent_reports_and_refunds_take_the_credits_once(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1", 100)
    outcomes = await asyncio.gather(
        *(store.book_external_refund("c1", "telegram") for _ in range(5)),
        *(store.begin_refund("c1", "op") for _ in range(5)),
    )

    assert any(outcomes)
    assert await balances(store, account_id) == (0, 0, 0)
    assert (await stored(store, "c1")).state in (PaymentState.REFUNDED, PaymentState.REFUNDING)
    assert await store.violations(settled=False) == []


async def indebted_with_a_hold(store: SqlDatabase, account_id: int, charge: str) -> None:
    """All credits of a payment are held when Telegram refunds it."""
    assert await store.book_external_refund(charge, "telegram")
    assert (await store.wallet(account_id)).available == 0


async def test_a_hold_that_is_released_repays_the_debt(store: SqlDatabase) -> None:
    for state in (State.FAILED, State.CANCELLED, State.EXPIRED):
        account_id = await account_with(store, 0)
        charge = f"c{account_id}"
        await paid(store, account_id, charge, 100)
        job = await queued(store, account_id=account_id, price=100)
        await indebted_with_a_hold(store, account_id, charge)
        assert await balances(store, account_id) == (0, 100, 100)
        await end(store, job.id, state)

        assert await balances(store, account_id) == (0, 0, 0), state
        assert await lines(store, account_id) == {(f"repay:settle:{job.id}", 100)}
    assert await store.violations(settled=False) == []


async def test_a_hold_that_a_lost_delivery_or_an_invalid_result_releases_repays_the_debt(store: SqlDatabase) -> None:
    for invalid in (True, False):
        account_id = await account_with(store, 0)
        charge = f"c{account_id}"
        await paid(store, account_id, charge, 130)
        job = await ended(store, account_id=account_id, price=100)
        assert await store.transfer(account_id, EntryKind.DEBIT, 30, f"spent {account_id}")
        await indebted_with_a_hold(store, account_id, charge)
        if invalid:
            assert await store.mark_result_invalid(job.id, job.lease_token, job.parts, "empty_result", "")
        else:
            assert await finish(store, job, Delivery.UNDELIVERABLE)

        assert await balances(store, account_id) == (0, 0, 30), invalid
    assert await store.violations(settled=False) == []


async def test_a_hold_that_is_captured_leaves_the_debt(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1", 100)
    job = await ended(store, account_id=account_id, price=100)
    await indebted_with_a_hold(store, account_id, "c1")
    assert await finish(store, await see(store, job.id), Delivery.DELIVERED)

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=0, held=0, debt=100)
    assert await store.violations(settled=False) == []


async def test_a_wrong_debt_is_a_violation(store: SqlDatabase) -> None:
    job = await delivered(store)
    await paid(store, job.account_id, "c1", 5000)
    assert await store.transfer(job.account_id, EntryKind.DEBIT, 1000, "spent")
    assert await store.book_external_refund("c1", "telegram")
    assert await store.violations(settled=False) == []
    await store.session.one("add_payment", charge="c2", account_id=job.account_id, paid_amount=1, amount=1)

    assert [violation.subject for violation in await store.violations(settled=False)] == ["c2"]
