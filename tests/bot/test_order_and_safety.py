"""Limits, bans, maintenance, and what operators do in the chat."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.bot.rules import ShopRules
from genlock.domain.chat import BroadcastState
from genlock.sandbox.telegram.faults import Fault
from genlock.telegram.turns import Priority, Turns
from tests.bot.test_money import OPEN, bought
from tests.bot.world import Customer, Town, sqlite_url, town

BOSS = 1000001  # the first person of the simulator


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[tuple[Town, Customer, Customer]]:
    """A town with an operator and a customer."""
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as here:
        boss, ann = await here.person("Boss"), await here.person("Ann", having=10)
        assert boss.hands.id == BOSS
        await boss.say("/start")
        await ann.say("/start")
        yield here, boss, ann


# limits


async def test_orders_are_limited_by_what_is_in_the_works(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, running_max=2), speed=0.01) as here:
        ann = await here.person()
        for word in ("one", "two", "three"):
            await ann.say(f"/gen z-image {word}")
        await ann.sees("You have 2 orders in the works")
        assert len(await here.jobs(ann)) == 2
        bob = await here.person("Bob")
        await bob.say("/gen z-image mine")
        assert len(await here.jobs(bob)) == 1


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (replace(OPEN, per_minute=2), r"That is a lot in one minute. You can order again in \d+ seconds"),
        (replace(OPEN, per_hour=2), r"That is a lot in one hour. You can order again in (59|60) minutes"),
    ],
    ids=["minute", "hour"],
)
async def test_orders_are_limited_by_time_and_the_wait_is_told(tmp_path: Path, rules: ShopRules, told: str) -> None:
    async with town(sqlite_url(tmp_path), rules=rules) as here:
        ann = await here.person()
        for word in ("one", "two"):
            await ann.say(f"/gen z-image {word}")
        await ann.say("three")
        await ann.tap("Generate")
        shown = await ann.sees(lambda message: re.search(told, message.text) is not None)

        assert "Price" in shown.text, "the order is still there"
        assert len(await here.jobs(ann)) == 2


# bans and maintenance

Office = tuple[Town, Customer, Customer]


async def test_whoever_is_banned_is_told_so_and_nothing_else(office: Office) -> None:
    here, boss, ann = office
    await boss.say(f"/admin ban {ann.number} spam and worse")
    await boss.sees("Ann is shut out")
    await ann.say("a fox")
    await ann.sees("You cannot use this bot")
    press = await ann.press(ann.screen, "menu")
    assert "You cannot use this bot" in press.text
    assert await here.jobs(ann) == []
    await boss.say(f"/admin unban {ann.number}")
    await ann.say("a fox")
    await ann.sees("Shall I")

    assert [(line.action, line.detail) for line in await here.store.audit(5)] == [
        ("unban", ""), ("ban", "spam and worse"),
    ]  # fmt: skip


async def test_under_maintenance_everybody_reads_why_but_operators_work(office: Office) -> None:
    here, boss, ann = office
    await boss.say("/admin maintenance on Back at <noon>")
    here.bot._maintenance = (0.0, None)
    await ann.say("a fox")
    await ann.sees("🛠 Back at <noon>")
    await boss.say("a fox")
    await boss.sees("Shall I")
    await boss.say("/admin maintenance off")
    here.bot._maintenance = (0.0, None)
    await ann.say("a fox")
    await ann.sees("Shall I")


# operators


async def test_only_operators_have_operators_commands(office: Office) -> None:
    here, boss, ann = office
    await ann.say(f"/admin credit {ann.number} 1000 please")
    await ann.sees("I do not know this command")
    press = await ann.press(ann.screen, "adm:today")
    assert press.text == "I do not know this order."

    assert await ann.available() == 10_000
    assert await here.store.audit(5) == []
    await boss.say("/admin")
    await boss.sees("For operators")


async def test_figures_of_the_day_and_the_week(office: Office) -> None:
    here, boss, ann = office
    await ann.say("/gen z-image a fox")
    await ann.sees("Generation complete")
    await bought(ann)
    await boss.say("/admin")
    shown = await boss.sees("The last 24 hours")

    for line in ("Orders: 1 · delivered: 1 · failed: 0", "newcomers: 2", "Revenue: 0.8 credits", "(100 ⭐)"):
        assert line in shown.text
    await boss.tap("7 days", on=shown)
    await boss.sees("The last 7 days")
    await boss.tap("Attention", on=shown)
    await boss.sees("Nothing needs attention")
    assert here.postman.failures == []


async def test_people_are_found_and_money_is_moved_once_with_a_reason(office: Office) -> None:
    here, boss, ann = office
    await boss.say("/admin find Ann")
    await boss.tap("Ann")
    await boss.sees("Balance 10 credits, held 0 credits")
    handle, repeated = here.bot.handle, []

    async def twice(update: object, *, first: bool, **_: object) -> None:
        repeated.append(update)
        await handle(update, first=first)  # type: ignore[arg-type]
        await handle(update, first=False)  # type: ignore[arg-type]

    here.bot.handle = twice  # type: ignore[method-assign]
    await boss.say(f"/admin credit {ann.hands.id} 2,5 for the trouble")
    await boss.sees("Ann now has 12.5 credits")
    await boss.say(f"/admin debit @ann_{ann.hands.id} 2 again")
    assert await ann.available() == 10_500
    await boss.say(f"/admin debit {ann.number} 1000 too much")
    await boss.sees("There is not so much: 10.5 credits")
    await boss.say(f"/admin credit {ann.number} nothing")
    await boss.sees("I did not understand that")
    await boss.say("/admin credit 99999 5 to nobody")
    await boss.sees("That cannot be: nobody has the number 99999")

    assert len(repeated) == 5
    assert [(line.action, line.detail) for line in await here.store.audit(9)] == [
        ("debit", "2: again"), ("credit", "2.5: for the trouble"),
    ]  # fmt: skip


async def test_an_order_is_looked_at_resent_and_refunded_once(office: Office) -> None:
    here, boss, ann = office
    await ann.say("/gen z-image a fox")
    await ann.sees("Generation complete")
    await boss.say("/admin order #1")
    shown = await boss.sees("Order #1 · Z-Image")
    assert "0.8 credits (captured)" in shown.text
    assert "Delivered" in shown.text
    await boss.say("/admin resend 1")
    await boss.sees("It is on its way again")
    await ann.sees(lambda message: message.kind == "photo" and message.id > 10)
    await here.quiet()
    await boss.say("/admin refund 1")
    await boss.sees("Given back to the person: 0.8 credits")
    await boss.say("/admin refund 1")
    await boss.sees("This order has been refunded before")
    await boss.say("/admin order 99")
    await boss.sees("That cannot be: there is no job 99")

    assert await ann.available() == 10_000
    assert await here.store.violations(settled=False) == []


async def test_stars_are_refunded_by_their_receipt(office: Office) -> None:
    here, boss, ann = office
    charge = await bought(ann)
    await boss.say(f"/admin stars {charge}")
    await boss.sees("Given back: 100 ⭐")
    await ann.sees("Stars on their way back to you: 100")
    await boss.say(f"/admin stars {charge}")
    await boss.sees("has been refunded already")

    assert await ann.available() == 10_000
    assert here.postman.failures == []


async def test_promo_codes_are_made_listed_and_closed(office: Office) -> None:
    here, boss, ann = office
    await boss.say("/admin promo spring 5 uses=10 each=1 days=30")
    await boss.sees("https://t.me/sandbox_bot?start=p_SPRING")
    await boss.say("/admin promo SPRING 5")
    await boss.sees("There is such a code already")
    for wrong in ("x", "five5 5", "spring2", "spring2 5 runs=3", "spring2 -5", "spring2 5 5", "spring2 5 each=0"):
        await boss.say(f"/admin promo {wrong}")
        assert "I did not understand that" in boss.from_bot[-1].text, wrong
    await boss.say("/admin promo FREERUNS runs=3")
    await ann.say("/start p_SPRING")
    assert await ann.available() == 15_000
    await boss.say("/admin promos")
    listed = await boss.sees("SPRING · 5 credits · used 1 of 10")
    assert "FREERUNS · 3 free runs" in listed.text
    await boss.say("/admin close spring")
    await boss.sees("The code is closed")
    assert len(await here.store.audit(9)) == 3


async def test_credit_for_a_name_that_several_people_have_is_refused(office: Office) -> None:
    here, boss, ann = office
    bob = await here.person("Bob", having=0)
    for one in (ann, bob):
        await here.store.see_profile(one.number, language="en", name="X", username="cat", referred_by=None)
    await boss.say("/admin credit @cat 5 sorry")
    await boss.sees("several people match @cat; use the Telegram id")
    assert (await ann.available(), await bob.available()) == (10_000, 0)
    await boss.say(f"/admin credit {bob.hands.id} 5 sorry")

    assert (await ann.available(), await bob.available()) == (10_000, 5_000)


# broadcasts


async def test_a_broadcast_is_looked_at_first_then_reaches_everybody_once(office: Office) -> None:
    here, boss, ann = office
    bob = await here.person("Bob")
    await bob.say("/start")
    async with here.done():
        await bob.hands.block()
    await boss.say("/admin broadcast <b>News</b>: cats")
    await boss.sees("This is how it looks")
    assert not any("News" in message.text for message in ann.from_bot)
    await boss.tap("Send to")
    await asyncio.gather(*(here.bot.broadcast() for _ in range(3)))
    await ann.sees("News: cats")
    shown = await boss.sees("Broadcast 1 · done")

    assert len([message for message in ann.from_bot if message.text == "News: cats"]) == 1
    assert "Sent 2" in shown.text
    assert await here.bot.broadcast() == 0


async def test_a_broadcast_goes_on_after_a_crash_and_stops_when_told(office: Office) -> None:
    here, boss, ann = office
    people = [await here.person(f"P{number}") for number in range(5)]
    for person in people:
        await person.say("/start")
    await boss.say("/admin broadcast Hello")
    await boss.tap("Send to")
    running = await here.store.running_broadcast()
    assert running is not None
    assert running.total == 7
    here.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage", chat=people[0].hands.id)
    for _ in range(4):  # as a process would that dies after each
        found = await here.store.reach_next(running.id)
        assert found is not None
        await here.bot._broadcasts._send(running, found[0], int(found[2]))
    await boss.say("/admin stop")
    stopped = await here.store.broadcast(running.id)
    assert stopped is not None
    assert stopped.state is BroadcastState.STOPPED
    assert await here.bot.broadcast() == 0
    reached = [one for one in (boss, ann, *people) if any(message.text == "Hello" for message in one.from_bot)]

    assert len(reached) >= 4
    assert all(len([m for m in one.from_bot if m.text == "Hello"]) == 1 for one in reached if one is not boss)


async def test_an_old_preview_does_not_send_what_a_newer_one_shows(office: Office) -> None:
    here, boss, _ = office
    await boss.say("/admin broadcast One")
    old = boss.screen
    await boss.say("/admin broadcast Two")
    new = boss.screen
    await boss.tap("Send to", on=old)
    assert "this preview is out of date" in old.text
    assert await here.store.running_broadcast() is None
    await boss.tap("Send to", on=new)

    running = await here.store.running_broadcast()
    assert running is not None
    assert running.text == "Two"


async def closed(here: Town, chat: int) -> Turns:
    """Telegram wants a chat to be left alone; the limits are real."""
    turns = Turns(here.store, str(here.caller.bot.id))
    await turns.stop(chat, 600.0)
    here.caller._turns = turns
    return turns


async def test_a_broadcast_waits_quietly_for_a_closed_chat_and_stops_when_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, boss, ann = office
    await boss.say("/admin broadcast Hello")
    await boss.tap("Send to")
    running = await here.store.running_broadcast()
    assert running is not None
    turns = await closed(here, ann.hands.id)
    take, asked = turns.take, asyncio.Event()
    calls = 0

    async def counted(chat: int, priority: Priority) -> None:
        nonlocal calls
        calls += 1
        asked.set()
        await take(chat, priority)

    monkeypatch.setattr(turns, "take", counted)
    monkeypatch.setattr("genlock.bot.broadcasts.LOOK_SECONDS", 0.5)
    sending = asyncio.ensure_future(here.bot._broadcasts._send(running, ann.number, ann.hands.id))
    async with asyncio.timeout(5):
        await asked.wait()
    await here.store.end_broadcast(running.id, BroadcastState.STOPPED)
    async with asyncio.timeout(5):
        assert not await sending
    assert calls <= 3


async def test_a_broadcast_does_not_wait_for_one_chat_for_ever(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    here, boss, ann = office
    await boss.say("/admin broadcast Hello")
    await boss.tap("Send to")
    await closed(here, ann.hands.id)
    monkeypatch.setattr("genlock.bot.broadcasts.PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("genlock.bot.broadcasts.LOOK_SECONDS", 0.1)
    async with asyncio.timeout(10):
        await here.bot.broadcast()
        [broadcast] = [await here.store.broadcast(1)]

    assert broadcast is not None
    assert (broadcast.state, broadcast.sent, broadcast.failed) == (BroadcastState.DONE, 1, 1)


async def test_a_broadcast_that_telegram_cannot_read_is_refused_at_once(office: Office) -> None:
    here, boss, _ = office
    await boss.say("/admin broadcast <b>News")
    await boss.sees("That cannot be")

    assert await here.store.running_broadcast() is None


async def test_what_operators_did_can_be_read(office: Office) -> None:
    _, boss, ann = office
    await boss.say("/admin log")
    await boss.sees("Nothing yet")
    await boss.say(f"/admin credit {ann.number} 1 gift")
    await boss.say("/admin log")

    await boss.sees("credit 2 1: gift")
