"""Messages that are queued in the commit of what they report: with it, or not at all, and once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from genlock.domain.errors import AccountNotFound, AllowanceExceeded, IdempotencyKeyReused, InsufficientBalance
from genlock.domain.money import EntryKind
from genlock.domain.queued_message import QUEUED, QueuedMessage
from genlock.domain.webhook import NewWebhook
from genlock.engine.refunds import REFUND, REFUNDED
from genlock.engine.tell import make_message
from genlock.stores.database import SqlDatabase
from tests.stores.builders import account_with

Transfer = Callable[..., Coroutine[Any, Any, bool]]


async def queued(store: SqlDatabase) -> list[QueuedMessage]:
    return [QueuedMessage.load(entry.key, entry.value) for entry in await store.kv_list(QUEUED)]


async def test_a_message_takes_the_place_of_an_entry_once(store: SqlDatabase) -> None:
    await store.kv_put("erase:1", "7", "bot")
    messages = [make_message(1, f"text {number}") for number in range(5)]
    assert not await store.kv_replace_by_message("erase:1", messages[0], "other bot")
    assert await queued(store) == []

    replaced = await asyncio.gather(*(store.kv_replace_by_message("erase:1", message, "bot") for message in messages))

    assert sorted(replaced) == [False] * 4 + [True]
    assert await queued(store) == [messages[replaced.index(True)]]
    assert await store.kv_get("erase:1", "bot") is None


@pytest.fixture(params=["any", "within an allowance"])
def transfer(request: pytest.FixtureRequest, store: SqlDatabase) -> Transfer:
    """Both ways in which operators move credits."""

    async def within(account_id: int, kind: EntryKind, amount: int, key: str, **more: Any) -> bool:
        more |= {"allowance": "op", "most": 500}
        return await store.transfer_within_allowance(account_id, kind, amount, key, "because", **more)

    return within if request.param == "within an allowance" else store.transfer


async def test_a_transfer_queues_its_message(store: SqlDatabase, transfer: Transfer) -> None:
    account_id = await account_with(store, 0)
    message = make_message(account_id, "You got 300 <b>credits</b>")

    assert await transfer(account_id, EntryKind.GRANT, 300, "key", message=message)
    assert await transfer(account_id, EntryKind.DEBIT, 100, "other key")

    assert await queued(store) == [message]
    assert (await store.wallet(account_id)).available == 200
    assert await store.violations(settled=False) == []


async def test_a_transfer_that_is_repeated_queues_one_message(store: SqlDatabase, transfer: Transfer) -> None:
    account_id = await account_with(store, 0)
    messages = [make_message(account_id, f"text {number}") for number in range(10)]

    done = await asyncio.gather(
        *(transfer(account_id, EntryKind.GRANT, 300, "key", message=message) for message in messages)
    )

    assert await queued(store) == [messages[done.index(True)]]


async def test_a_transfer_that_is_refused_queues_no_message(store: SqlDatabase, transfer: Transfer) -> None:
    account_id = await account_with(store, 100)
    message = make_message(account_id, "text")
    assert await transfer(account_id, EntryKind.GRANT, 1, "key")

    with pytest.raises(InsufficientBalance):
        await transfer(account_id, EntryKind.DEBIT, 102, "too much", message=message)
    with pytest.raises(IdempotencyKeyReused):
        await transfer(account_id, EntryKind.GRANT, 2, "key", message=message)
    with pytest.raises(AccountNotFound):
        await transfer(10**9, EntryKind.GRANT, 1, "unknown", message=message)

    assert await queued(store) == []


async def test_a_transfer_that_exceeds_the_allowance_queues_no_message(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    message = make_message(account_id, "text")
    with pytest.raises(AllowanceExceeded):
        await store.transfer_within_allowance(
            account_id, EntryKind.GRANT, 501, "key", "because", allowance="op", most=500, message=message
        )

    assert await queued(store) == []
    assert await store.allowance_used("op") == 0


async def test_a_top_up_that_repays_a_debt_queues_its_message(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    await paid(store, account_id, "c1")
    await store.transfer(account_id, EntryKind.DEBIT, 120, "spent")
    assert await store.book_external_refund("c1", "telegram")
    message = make_message(account_id, "text")

    assert await store.transfer(account_id, EntryKind.TOPUP, 500, "stars:c2", message=message)

    assert await queued(store) == [message]
    wallet = await store.wallet(account_id)
    assert (wallet.available, wallet.debt) == (380, 0)


async def test_an_endpoint_that_is_disabled_queues_the_message_to_its_owner_once(store: SqlDatabase) -> None:
    account_id = await account_with(store)
    added = await store.add_webhook(
        NewWebhook(account_id=account_id, public_id="we_1", url="https://example.org"), most=20
    )
    assert added is not None
    messages = [make_message(account_id, f"text {number}") for number in range(5)]

    done = await asyncio.gather(*(store.disable_webhook(added.id, "gone", message) for message in messages))

    assert sorted(done) == [False] * 4 + [True]
    assert await queued(store) == [messages[done.index(True)]]


# refunds of payments


async def paid(store: SqlDatabase, account_id: int, charge: str) -> None:
    assert await store.transfer(account_id, EntryKind.TOPUP, 120, f"stars:{charge}")
    assert await store.add_payment(charge, account_id, 10, 120)


async def marks(store: SqlDatabase, bot: str) -> list[tuple[str, str]]:
    found = [*await store.kv_list(REFUND, bot), *await store.kv_list(REFUNDED, bot)]
    return [(entry.key, entry.value) for entry in found]


async def test_the_mark_of_an_open_refund_becomes_that_of_one_whose_user_is_to_be_told(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)
    bot = (await store.account(account_id)).bot
    for charge in ("c1", "c2"):
        await paid(store, account_id, charge)
        await store.kv_put(f"{REFUND}{charge}", "op", bot)
        await store.kv_put(f"{REFUND}{charge}", "op 2", "another bot")
    assert not await store.finish_refund("c1"), "it has not begun"
    assert await store.begin_refund("c1", "why")
    assert await marks(store, bot) == [(f"{REFUND}c1", "op"), (f"{REFUND}c2", "op")]

    ends = await asyncio.gather(*(store.finish_refund("c1") for _ in range(5)))
    assert sorted(ends) == [False] * 4 + [True]
    assert await store.book_external_refund("c1", "telegram") is None
    assert await marks(store, bot) == [(f"{REFUND}c2", "op"), (f"{REFUNDED}c1", "op")]

    assert await store.begin_refund("c2", "why")
    booked = await asyncio.gather(*(store.book_external_refund("c2", "telegram") for _ in range(5)))
    assert len(list(filter(None, booked))) == 1
    assert not await store.finish_refund("c2")
    assert await marks(store, bot) == [(f"{REFUNDED}c1", "op"), (f"{REFUNDED}c2", "op")]
    assert len(await marks(store, "another bot")) == 2


async def test_the_user_of_a_refund_without_a_mark_is_to_be_told(store: SqlDatabase) -> None:
    """Such as one that the payment service made, or whose mark an instance before this version has removed."""
    account_id = await account_with(store, 0)
    bot = (await store.account(account_id)).bot
    for charge in ("c1", "c2"):
        await paid(store, account_id, charge)
    assert await store.begin_refund("c1", "why")

    assert await store.finish_refund("c1")
    assert await store.book_external_refund("c2", "telegram")

    assert await marks(store, bot) == [(f"{REFUNDED}c1", ""), (f"{REFUNDED}c2", "")]
