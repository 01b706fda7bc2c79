"""Lists of ledger entries and payments for operators, and transfers within an allowance."""

import asyncio
from datetime import timedelta

import pytest

from genlock.domain.errors import AccountNotFound, AllowanceExceeded, IdempotencyKeyReused, InsufficientBalance, Refusal
from genlock.domain.job import State
from genlock.domain.money import ORDER_KINDS, EntryKind, LedgerEntry
from genlock.domain.payment import PaymentState
from genlock.domain.place import NEWEST, Place
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, delivered, ended, queued

MOVES = [kind for kind in EntryKind if kind not in ORDER_KINDS]


def keys(entries: list[LedgerEntry]) -> list[str]:
    return [entry.key for entry in entries]


async def grants(store: SqlDatabase, clock: ManualClock, account_id: int, count: int) -> None:
    for number in range(count):
        clock.advance(1)
        await store.transfer(account_id, EntryKind.GRANT, 10, f"g{number}")


async def test_the_ledger_of_an_account_is_read_in_pages_with_its_balance(
    store: SqlDatabase, clock: ManualClock
) -> None:
    account_id = await account_with(store, 0)
    await grants(store, clock, await account_with(store, 0), 1)
    await store.transfer(account_id, EntryKind.GRANT, 7, "same-b")
    await store.transfer(account_id, EntryKind.GRANT, 7, "same-a")
    clock.advance(1)
    await store.transfer(account_id, EntryKind.DEBIT, 4, "later")

    first = await store.account_ledger(account_id, before=NEWEST, limit=2)
    assert keys(list(first.entries)) == ["later", "same-b"]
    assert first.available == 10
    last = first.entries[-1]
    second = await store.account_ledger(account_id, before=Place.of(last.at, last.key), limit=2)
    assert keys(list(second.entries)) == ["same-a"]
    assert (await store.account_ledger(10**9, before=NEWEST, limit=2)).available is None


async def test_what_moved_balances_is_listed_for_all_accounts_by_kind_and_time(
    store: SqlDatabase, clock: ManualClock
) -> None:
    begin = clock.now()
    account_id = await account_with(store, 0)
    await grants(store, clock, account_id, 3)
    clock.advance(1)
    await store.transfer(account_id, EntryKind.TOPUP, 1000, "t")
    await queued(store, account_id=account_id, price=5)

    found = await store.ledger_moves(MOVES, before=NEWEST, since=None, limit=10)
    assert keys(found) == ["t", "g2", "g1", "g0"]
    assert keys(await store.ledger_moves([EntryKind.GRANT], before=NEWEST, since=None, limit=2)) == ["g2", "g1"]
    after = Place.of(found[1].at, found[1].key)
    assert keys(await store.ledger_moves(MOVES, before=after, since=None, limit=10)) == ["g1", "g0"]
    since = begin + timedelta(seconds=2)
    assert keys(await store.ledger_moves(MOVES, before=NEWEST, since=since, limit=10)) == ["t", "g2", "g1"]


async def test_entries_of_orders_are_listed_by_their_job(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.scan.STEP", 2)
    held = await queued(store, price=5)
    clock.advance(10)
    later = clock.now()
    paid, released = await delivered(store, price=6), await ended(store, State.FAILED, price=7)
    await queued(store, price=0)

    everything = await store.order_ledger(list(ORDER_KINDS), before=None, since=None, limit=10)
    assert {entry.key for entry in everything.entries} == {
        f"hold:{held.id}", f"hold:{paid.id}", f"settle:{paid.id}", f"hold:{released.id}", f"settle:{released.id}"
    }  # fmt: skip
    assert [entry.job_id for entry in everything.entries] == [released.id] * 2 + [paid.id] * 2 + [held.id]
    assert everything.before is None

    async def of(kind: EntryKind, **page: object) -> tuple[list[str], int | None]:
        found = await store.order_ledger([kind], **{"before": None, "since": None, "limit": 10, **page})  # type: ignore[arg-type]
        return keys(list(found.entries)), found.before

    assert await of(EntryKind.CAPTURE) == ([f"settle:{paid.id}"], None)
    assert await of(EntryKind.RELEASE) == ([f"settle:{released.id}"], None)
    assert await of(EntryKind.HOLD, limit=1) == ([f"hold:{released.id}"], released.id)
    assert await of(EntryKind.HOLD, limit=1, before=released.id) == ([f"hold:{paid.id}"], paid.id)
    assert await of(EntryKind.HOLD, since=later) == ([f"hold:{released.id}", f"hold:{paid.id}"], None)


async def test_a_page_of_order_entries_looks_at_a_bounded_number_of_jobs(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.scan.STEP", 1)
    monkeypatch.setattr("genlock.stores.money_lists.ORDER_STEPS_MAX", 3)
    rare = await ended(store, State.FAILED, price=7)
    for _ in range(4):
        await queued(store, price=1)

    page = await store.order_ledger([EntryKind.RELEASE], before=None, since=None, limit=5)
    assert not page.entries
    assert page.before is not None
    rest = await store.order_ledger([EntryKind.RELEASE], before=page.before, since=None, limit=5)
    assert [entry.job_id for entry in rest.entries] == [rare.id]


async def test_the_job_of_a_time(store: SqlDatabase, clock: ManualClock) -> None:
    start = clock.now()
    assert await store.job_id_at(start) >= 0
    jobs = []
    for _ in range(5):
        jobs.append(await queued(store, price=0))
        clock.advance(60)

    assert await store.job_id_at(start - timedelta(days=1)) == jobs[0].id
    assert await store.job_id_at(start + timedelta(seconds=61)) == jobs[2].id
    assert await store.job_id_at(start + timedelta(seconds=120)) == jobs[2].id
    assert await store.job_id_at(clock.now()) == jobs[-1].id + 1


async def test_payments_are_listed_by_state_and_account(store: SqlDatabase, clock: ManualClock) -> None:
    account_id, other = await account_with(store, 0), await account_with(store, 0)
    for number, owner in enumerate((account_id, account_id, other, other)):
        clock.advance(1)
        await store.transfer(owner, EntryKind.TOPUP, 100, f"stars:c{number}")
        await store.add_payment(f"c{number}", owner, 1, 100)
    await store.begin_refund("c0", "op")
    await store.begin_refund("c1", "op")
    await store.finish_refund("c1")
    clock.advance(60)
    await store.book_external_refund("c2", "outside")

    found = await store.payments_before(before=NEWEST, since=None, limit=3)
    assert [payment.charge for payment in found] == ["c3", "c2", "c1"]
    rest = await store.payments_before(before=Place.of(found[-1].at, "c1"), since=None, limit=3)
    assert [payment.charge for payment in rest] == ["c0"]
    since = await store.payments_before(before=NEWEST, since=found[1].at, limit=3)
    assert [payment.charge for payment in since] == ["c3", "c2"]
    for state, charges in ((PaymentState.REFUNDING, ["c0"]), (PaymentState.REFUNDED, ["c2", "c1"])):
        in_state = await store.payments_in_state(state, before=NEWEST, since=None, limit=5)
        assert [payment.charge for payment in in_state] == charges
    assert [refund.charge for refund in await store.external_refunds(before=NEWEST, since=None, limit=5)] == ["c2"]
    own = await store.account_payments(account_id, before=NEWEST, limit=1)
    assert [payment.charge for payment in own] == ["c1"]
    assert [
        payment.charge
        for payment in await store.account_payments(account_id, before=Place.of(own[0].at, "c1"), limit=5)
    ] == ["c0"]


def test_a_place_is_written_and_read_and_hostile_ones_are_refused() -> None:
    place = Place(microseconds=1_700_000_000_000_001, key="stars:a~b")
    assert Place.parse(str(place)) == place
    for text in ("", "~", "12", "-1~x", "\uff11~x", "9" * 17 + "~x", "9" * 16 + "~x", "1~" + "x" * 301, "1~\0", "a~b"):
        with pytest.raises(Refusal):
            Place.parse(text)


async def within(store: SqlDatabase, account_id: int, amount: int, key: str, kind: EntryKind = EntryKind.GRANT) -> bool:
    return await store.transfer_within_allowance(account_id, kind, amount, key, "because", allowance="op", most=100)


async def test_transfers_within_an_allowance_add_up_to_its_limit(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)

    assert await within(store, account_id, 60, "one")
    assert not await within(store, account_id, 60, "one")
    with pytest.raises(AllowanceExceeded) as refused:
        await within(store, account_id, 41, "two")
    assert (refused.value.amount, refused.value.used, refused.value.most) == (41, 60, 100)
    assert await within(store, account_id, 40, "three", EntryKind.DEBIT)

    assert await store.allowance_used("op") == 100
    assert await store.allowance_used("another") == 0
    assert (await store.wallet(account_id)).available == 20
    entry = await store.ledger_entry("one")
    assert entry is not None
    assert (entry.kind, entry.amount, entry.reason) == (EntryKind.GRANT, 60, "because")
    assert await store.violations(settled=False) == []


async def test_an_allowance_begins_anew_every_day(store: SqlDatabase, clock: ManualClock) -> None:
    account_id = await account_with(store, 0)
    assert await within(store, account_id, 100, "one")

    clock.advance(86_400)

    assert await store.allowance_used("op") == 0
    assert await within(store, account_id, 100, "two")


async def test_an_allowance_changes_nothing_when_the_transfer_is_refused(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    with pytest.raises(InsufficientBalance):
        await within(store, account_id, 10, "one", EntryKind.DEBIT)
    with pytest.raises(AccountNotFound):
        await within(store, 10**9, 10, "one")
    assert await within(store, account_id, 10, "one")
    with pytest.raises(IdempotencyKeyReused):
        await within(store, account_id, 11, "one")

    assert await store.allowance_used("op") == 10


async def test_concurrent_transfers_do_not_pass_the_allowance_together(store: SqlDatabase) -> None:
    accounts = [await account_with(store, 0) for _ in range(20)]

    done = await asyncio.gather(
        *(within(store, account_id, 30, f"key-{account_id}") for account_id in accounts), return_exceptions=True
    )

    assert [outcome for outcome in done if not isinstance(outcome, AllowanceExceeded)] == [True] * 3
    assert await store.allowance_used("op") == 90
    assert sum([(await store.wallet(account_id)).available for account_id in accounts]) == 90


async def test_concurrent_repetitions_within_an_allowance_happen_once(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)

    done = await asyncio.gather(*(within(store, account_id, 30, "same") for _ in range(20)))

    assert sum(done) == 1
    assert await store.allowance_used("op") == 30


async def test_what_is_given_otherwise_counts_under_the_same_allowance(store: SqlDatabase, clock: ManualClock) -> None:
    await store.use_allowance("op", 60, 100)
    with pytest.raises(AllowanceExceeded) as refused:
        await store.use_allowance("op", 41, 100)
    assert (refused.value.used, refused.value.most) == (60, 100)
    await store.use_allowance("op", -20, 100)
    assert await store.allowance_used("op") == 40
    results = await asyncio.gather(*(store.use_allowance("op", 10, 100) for _ in range(9)), return_exceptions=True)
    assert sum(result is None for result in results) == 6
    assert await store.allowance_used("op") == 100
    clock.advance(86_400)
    assert await store.allowance_used("op") == 0
    await store.use_allowance("op", 100, 100)
