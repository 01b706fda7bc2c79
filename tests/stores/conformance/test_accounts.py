import asyncio
import sqlite3

import asyncpg
import pytest

from genlock.domain.errors import AccountNotFound, IdempotencyKeyReused, InsufficientBalance
from genlock.domain.money import EntryKind, LedgerAccount, LedgerEntry, Wallet
from genlock.ports import Store
from tests.stores.builders import ManualClock, account_with, queued

NOBODY = 10**9
REFUSED_BY_THE_DATABASE = (sqlite3.IntegrityError, asyncpg.IntegrityConstraintViolationError)


async def test_an_account_is_created_once_and_found_again(store: Store) -> None:
    account_id = await store.ensure_account("chat", "bot", "7")

    assert await store.ensure_account("chat", "bot", "7") == account_id
    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=0, held=0)


async def test_accounts_differ_by_channel_bot_and_external_id(store: Store) -> None:
    names = [("chat", "bot", "7"), ("chat", "bot", "8"), ("chat", "other", "7"), ("mail", "bot", "7")]

    assert len({await store.ensure_account(*name) for name in names}) == len(names)


async def test_concurrent_first_updates_create_one_account(store: Store) -> None:
    found = await asyncio.gather(*(store.ensure_account("chat", "bot", "7") for _ in range(20)))

    assert len(set(found)) == 1


async def test_an_unknown_account_has_no_wallet(store: Store) -> None:
    with pytest.raises(AccountNotFound):
        await store.wallet(NOBODY)


@pytest.mark.parametrize(
    ("kind", "after"),
    [(EntryKind.TOPUP, 1300), (EntryKind.GRANT, 1300), (EntryKind.REFUND, 1300), (EntryKind.DEBIT, 700)],
)
async def test_a_transfer_changes_what_is_available(store: Store, kind: EntryKind, after: int) -> None:
    account_id = await account_with(store, 1000)

    assert await store.transfer(account_id, kind, 300, "key", "because")

    assert await store.wallet(account_id) == Wallet(account_id=account_id, available=after, held=0)


@pytest.mark.parametrize("kind", [EntryKind.TOPUP, EntryKind.DEBIT])
async def test_a_transfer_happens_once_per_key(store: Store, kind: EntryKind) -> None:
    account_id = await account_with(store, 1000)
    assert await store.transfer(account_id, kind, 300, "key")
    once = await store.wallet(account_id)

    assert not await store.transfer(account_id, kind, 300, "key")
    with pytest.raises(IdempotencyKeyReused):
        await store.transfer(account_id, kind, 5, "key")

    assert await store.wallet(account_id) == once


async def test_a_key_used_for_one_account_moves_nothing_for_another(store: Store) -> None:
    one, other = await account_with(store, 0), await account_with(store, 0)
    assert await store.transfer(one, EntryKind.TOPUP, 300, "key")

    with pytest.raises(IdempotencyKeyReused):
        await store.transfer(other, EntryKind.TOPUP, 300, "key")

    assert (await store.wallet(other)).available == 0


async def test_concurrent_repetitions_of_a_transfer_happen_once(store: Store) -> None:
    account_id = await account_with(store, 0)

    done = await asyncio.gather(*(store.transfer(account_id, EntryKind.TOPUP, 300, "key") for _ in range(20)))

    assert sum(done) == 1
    assert (await store.wallet(account_id)).available == 300


async def test_more_than_the_balance_cannot_be_debited(store: Store) -> None:
    account_id = await account_with(store, 1000)

    with pytest.raises(InsufficientBalance) as refusal:
        await store.transfer(account_id, EntryKind.DEBIT, 1001, "key")

    assert (refusal.value.price, refusal.value.available) == (1001, 1000)
    assert (await store.wallet(account_id)).available == 1000
    assert len(await store.ledger_entries(account_id, 10)) == 1
    assert await store.transfer(account_id, EntryKind.DEBIT, 1000, "key"), "the key is still free"


async def test_held_money_cannot_be_debited(store: Store) -> None:
    account_id = await account_with(store, 1000)
    await queued(store, account_id=account_id, price=600)

    with pytest.raises(InsufficientBalance):
        await store.transfer(account_id, EntryKind.DEBIT, 401, "key")


async def test_concurrent_debits_never_overdraw(store: Store) -> None:
    account_id = await account_with(store, 100)

    tries = (store.transfer(account_id, EntryKind.DEBIT, 10, f"debit-{number}") for number in range(25))
    answers = await asyncio.gather(*tries, return_exceptions=True)

    assert [answer for answer in answers if answer is True] == [True] * 10
    assert all(isinstance(answer, InsufficientBalance) for answer in answers if answer is not True)
    assert (await store.wallet(account_id)).available == 0


async def test_a_transfer_to_an_unknown_account_is_refused(store: Store) -> None:
    with pytest.raises(AccountNotFound):
        await store.transfer(NOBODY, EntryKind.TOPUP, 1, "key")


@pytest.mark.parametrize("amount", [0, -5])
@pytest.mark.parametrize("kind", [EntryKind.TOPUP, EntryKind.DEBIT])
async def test_only_positive_amounts_move(store: Store, kind: EntryKind, amount: int) -> None:
    account_id = await account_with(store, 1000)

    with pytest.raises(REFUSED_BY_THE_DATABASE):
        await store.transfer(account_id, kind, amount, "key")

    assert (await store.wallet(account_id)).available == 1000


@pytest.mark.parametrize("kind", [EntryKind.HOLD, EntryKind.CAPTURE, EntryKind.RELEASE])
async def test_held_money_moves_only_with_its_job(store: Store, kind: EntryKind) -> None:
    with pytest.raises(AssertionError):
        await store.transfer(await account_with(store), kind, 1, "key")


async def test_ledger_entries_are_listed_newest_first(store: Store, clock: ManualClock) -> None:
    account_id = await store.ensure_account("chat", "bot", "7")
    await account_with(store)  # entries of other accounts are not shown
    topped_up_at = clock.now()
    await store.transfer(account_id, EntryKind.TOPUP, 500, "stars:1", "100 Stars")
    clock.advance(1)
    job = await queued(store, account_id=account_id, price=200)

    topup = LedgerEntry(
        key="stars:1",
        account_id=account_id,
        job_id=None,
        kind=EntryKind.TOPUP,
        debit=LedgerAccount.HOUSE,
        credit=LedgerAccount.AVAILABLE,
        amount=500,
        reason="100 Stars",
        at=topped_up_at,
    )
    hold = LedgerEntry(
        key=f"hold:{job.id}",
        account_id=account_id,
        job_id=job.id,
        kind=EntryKind.HOLD,
        debit=LedgerAccount.AVAILABLE,
        credit=LedgerAccount.HELD,
        amount=200,
        reason="",
        at=clock.now(),
    )
    assert await store.ledger_entries(account_id, 10) == [hold, topup]
    assert await store.ledger_entries(account_id, 1) == [hold]
