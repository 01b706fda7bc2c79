"""Broadcasts, on both databases, also under concurrent calls."""

import asyncio

import pytest

from genlock.domain.broadcast import BroadcastOutcome, BroadcastState, Segment
from genlock.domain.money import EntryKind
from genlock.stores.broadcasts import SENDER_SECONDS
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, ensure_profile, profiled


async def test_a_broadcast_passes_over_many_users_of_other_bots(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.broadcasts.PROFILES_AT_ONCE", 2)
    for number in range(7):
        other = await store.ensure_account("chat", "other", str(number))
        await ensure_profile(store, other, language="en", name="O", username="", referred_by=None)
    last = await profiled(store, "last")
    await store.set_account_address(last, "there")
    broadcast = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u")

    found = await store.next_recipient(broadcast.id)
    assert found is not None
    assert (found.account_id, found.address) == (last, "there")
    assert await store.next_recipient(broadcast.id) is None


async def test_concurrent_senders_of_a_broadcast_reach_every_user_once(store: SqlDatabase) -> None:
    accounts = [await profiled(store, str(number)) for number in range(100, 120)]
    await store.set_blocked(accounts[3], blocked=True)
    await store.set_ban(accounts[4], banned=True, reason="x")
    sent = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1")
    assert await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1") == sent
    assert sent.total == await store.count_reachable("bot") == 18
    reached: list[int] = []

    async def send() -> None:
        while found := await store.next_recipient(sent.id):
            reached.append(found.account_id)
            outcome = BroadcastOutcome.SENT if found.account_id % 2 else BroadcastOutcome.FAILED
            await store.count_broadcast_message(sent.id, found, outcome)
            await store.count_broadcast_message(sent.id, found, outcome)  # the second one changes nothing

    await asyncio.gather(*(send() for _ in range(5)))
    assert sorted(reached) == [account for account in accounts if account not in accounts[3:5]]
    now = await store.broadcast(sent.id)
    assert now is not None
    assert now.sent + now.failed == 18
    assert await store.end_broadcast(sent.id, BroadcastState.DONE)
    assert not await store.end_broadcast(sent.id, BroadcastState.STOPPED)


@pytest.mark.parametrize("window", [1, 1000])
async def test_a_broadcast_to_a_segment_reaches_its_users_only(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr("genlock.stores.broadcasts.PROFILES_AT_ONCE", window)
    names = {}
    for name, language in (("silent", "en"), ("silent_ru", "ru"), ("payer", "en"), ("fresh", "ru")):
        if name == "payer":
            clock.advance(10 * 86_400)
        account_id = await store.ensure_account("chat", "bot", name)
        await ensure_profile(store, account_id, language=language, name=name, username="", referred_by=None)
        names[account_id] = name
    for account_id, name in names.items():
        if name in ("payer", "silent_ru"):
            assert await store.transfer(account_id, EntryKind.TOPUP, 500, name)
            assert await store.add_payment(name, account_id, 50, 500)

    wanted = {
        Segment(): ["silent", "silent_ru", "payer", "fresh"],
        Segment(language="ru"): ["silent_ru", "fresh"],
        Segment(paid=True): ["silent_ru", "payer"],
        Segment(paid=False): ["silent", "fresh"],
        Segment(silent_days=7): ["silent", "silent_ru"],
        Segment(language="ru", paid=True, silent_days=7): ["silent_ru"],
        Segment(language="de"): [],
    }
    for segment, users in wanted.items():
        sent = await store.begin_broadcast("Hi", bot="bot", author="op", request_key=str(segment), segment=segment)
        reached = []
        while found := await store.next_recipient(sent.id):
            reached.append(names[found.account_id])
        assert (reached, sent.total, sent.segment) == (users, len(users), segment)
        assert await store.count_reachable("bot", segment) == len(users)


async def test_a_stopped_broadcast_reaches_no_further_user(store: SqlDatabase) -> None:
    await profiled(store, "1")
    sent = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1")
    assert await store.running_broadcast() == sent
    await store.end_broadcast(sent.id, BroadcastState.STOPPED)

    assert await store.next_recipient(sent.id) is None
    assert await store.running_broadcast() is None


async def test_a_recipient_that_was_given_back_is_taken_again_by_one_sender(
    store: SqlDatabase, clock: ManualClock
) -> None:
    await profiled(store, "1")
    sent = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1")
    first = await store.next_recipient(sent.id)
    assert first is not None
    assert await store.begin_broadcast_message(sent.id, first)
    assert not await store.begin_broadcast_message(sent.id, first), "one call at most"
    await store.return_recipient(sent.id, first, 30.0)
    assert await store.next_recipient(sent.id) is None
    assert not await store.end_broadcast(sent.id, BroadcastState.DONE)

    clock.advance(30)
    found = [
        recipient for recipient in await asyncio.gather(*(store.next_recipient(sent.id) for _ in range(4))) if recipient
    ]
    [second] = found
    assert (second.account_id, second.token) == (first.account_id, first.token + 1)
    assert not await store.begin_broadcast_message(sent.id, first)
    await store.count_broadcast_message(sent.id, first, BroadcastOutcome.SENT)
    await store.count_broadcast_message(sent.id, second, BroadcastOutcome.FAILED)
    now = await store.broadcast(sent.id)
    assert now is not None
    assert (now.sent, now.failed, now.unknown) == (0, 1, 0)
    assert await store.end_broadcast(sent.id, BroadcastState.DONE)


async def test_a_sender_that_crashed_is_replaced_unless_its_call_may_have_been_made(
    store: SqlDatabase, clock: ManualClock
) -> None:
    for name in "12":
        await profiled(store, name)
    sent = await store.begin_broadcast("Hello", bot="bot", author="op", request_key="u1")
    before, during = [await store.next_recipient(sent.id) for _ in range(2)]
    assert before is not None
    assert during is not None
    assert await store.begin_broadcast_message(sent.id, during)
    await store.expire_recipients()
    assert await store.next_recipient(sent.id) is None

    clock.advance(SENDER_SECONDS)
    await store.expire_recipients()
    again = await store.next_recipient(sent.id)
    assert again is not None
    assert again.account_id == before.account_id
    assert await store.next_recipient(sent.id) is None
    now = await store.broadcast(sent.id)
    assert now is not None
    assert (now.sent, now.failed, now.unknown) == (0, 0, 1)

    await store.end_broadcast(sent.id, BroadcastState.STOPPED)
    assert not await store.begin_broadcast_message(sent.id, again)
    clock.advance(SENDER_SECONDS)
    await store.expire_recipients()
    assert await store.next_recipient(sent.id) is None
