"""What operators do in the chat, and what people are told of it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.channels.telegram.operators import notify_operators
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.alarm import Words
from genlock.domain.broadcast import BroadcastState
from genlock.domain.errors import ChannelOutcomeUnknown
from genlock.domain.payment import PaymentState
from genlock.sandbox.kie.faults import Fault as Failure
from genlock.sandbox.telegram.faults import Fault
from genlock.service import _language_of
from genlock.stores.sqlite import SqliteStore
from tests.bot.conftest import BOSS, Office
from tests.bot.test_gifts import with_free
from tests.bot.test_kindness import picture
from tests.bot.test_money import OPEN, bought
from tests.bot.world import Town, sqlite_url, town


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
    shown = await boss.sees("last 24 hours")

    for line in ("Orders: 1 · delivered: 1 · failed: 0", "newcomers: 2", "Revenue: 0.8 credits", "Topped up: 100 ⭐"):
        assert line in shown.text
    await boss.tap("7 days", on=shown)
    await boss.sees("last 7 days")
    await boss.tap("Attention", on=shown)
    await boss.sees("Nothing needs attention")
    assert here.postman.failures == []


async def test_people_are_found_and_money_is_moved_once_with_a_reason(office: Office) -> None:
    here, boss, ann = office
    await boss.say("/admin find Ann")
    await boss.sees("Balance: 10 credits")
    await boss.say("/admin find")
    await boss.tap("Ann · 2")
    handle, repeated = here.bot.handle, []

    async def twice(update: object, *, first: bool, **_: object) -> None:
        repeated.append(update)
        await handle(update, first=first)  # type: ignore[arg-type]
        await handle(update, first=False)  # type: ignore[arg-type]

    here.bot.handle = twice  # type: ignore[method-assign]
    await boss.say(f"/admin credit {ann.hands.id} 2,5 for the trouble")
    credited = await boss.sees("Credited: 2.5 credits. The person has been told.")
    assert "Balance: 12.5 credits" in credited.text
    await ann.sees("Added to your balance: 2.5 credits.\nBalance: 12.5 credits")
    await boss.say(f"/admin debit @ann_{ann.hands.id} 2 again")
    await ann.sees("Taken off your balance: 2 credits")
    assert await ann.available() == 10_500
    await boss.say(f"/admin debit {ann.number} 1000 too much")
    await boss.sees("There is not so much on the balance: 10.5 credits")
    for wrong in ("0", "-1", "nan", "inf", "1e99999999", "1.2345", "1234567890"):
        await boss.say(f"/admin credit {ann.number} {wrong} by mistake")
        assert "/admin credit PERSON CREDITS REASON" in boss.from_bot[-1].text, wrong
    await boss.say(f"/admin credit {ann.number} nothing")
    await boss.sees("I did not understand that")
    await boss.say("/admin credit 99999 5 to nobody")
    await boss.sees("Nobody has the number, Telegram id or name 99999")

    assert len(repeated) == 12
    assert len([one for one in ann.from_bot if "balance: 2" in one.text]) == 2, "told once each"
    assert [(line.action, line.detail) for line in await here.store.audit(9)] == [
        ("debit", "2: again"), ("credit", "2.5: for the trouble"),
    ]  # fmt: skip


async def test_an_order_is_looked_at_resent_and_refunded_once(office: Office) -> None:
    here, boss, ann = office
    await ann.say("/gen z-image a fox")
    await ann.sees("Generation complete")
    await boss.say("/admin order #1")
    shown = await boss.sees("Order #1 · Z-Image")
    for line in ("Ann · number 2", "0.8 credits, charged", "✅ Delivered", "· given to the provider"):
        assert line in shown.text
    await boss.say("/admin resend 1")
    await boss.sees("On its way once more")
    await ann.sees(lambda message: message.kind == "photo" and message.id > 10)
    await here.quiet()
    await boss.say("/admin refund 1")
    card = await boss.sees("Given back: 0.8 credits. The person has been told.")
    assert "0.8 credits, charged and given back" in card.text
    assert not any("Refund" in one["text"] for one in card.buttons)
    await ann.sees("Money back for order #1: 0.8 credits")
    await boss.say("/admin refund 1")
    await boss.sees("This order has been refunded before")
    await boss.say("/admin order 99")
    await boss.sees("There is no order #99")

    assert await ann.available() == 10_000
    assert await here.store.violations(settled=False) == []


async def test_stars_are_refunded_by_their_receipt(office: Office) -> None:
    here, boss, ann = office
    charge = await bought(ann)
    await boss.say(f"/admin stars {charge}")
    await boss.sees("Given back: 100 ⭐. Taken off: 120 credits.")
    await ann.sees("Stars on their way back to you: 100")
    await boss.say(f"/admin stars {charge}")
    await boss.sees("has been refunded already")

    assert await ann.available() == 10_000
    assert here.postman.failures == []


async def test_whatever_is_too_long_for_a_message_is_still_answered(office: Office) -> None:
    here, boss, ann = office
    for number in range(10):
        await ann.say(f"/gen z-image a fox {number}")
    await here.quiet()
    assert isinstance(here.store, SqliteStore)
    reason = f"stage error: RuntimeError('{'<' * 460}')"
    await here.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET attention_code = 'stage_error', attention_reason = ?", (reason,)
        )
    )
    for line, answer in (
        ("attention", "#1 · Z-Image"),
        (f"ban {ann.number} {'why ' * 1000}", "Ann"),
        (f"maintenance on {'why ' * 1000}", "Maintenance is on"),
        (f"find {'&' * 4000}", "Nobody"),
        (f"stars {'&' * 4000}", "no such payment"),
    ):
        await boss.say(f"/admin {line}")
        assert answer in boss.from_bot[-1].text, line[:20]
        assert boss.from_bot[-1].buttons


async def test_promo_codes_are_made_listed_and_closed(office: Office) -> None:
    here, boss, ann = office
    await boss.say("/admin promo spring 5 uses=10 each=1 days=30")
    await boss.sees("https://t.me/sandbox_bot?start=p_SPRING")
    await boss.say("/admin promo SPRING 5")
    await boss.sees("There is such a code already")
    for wrong in ("x", "five5 5", "spring2", "spring2 5 runs=3", "spring2 -5", "spring2 5 5", "spring2 5 each=0",
                  "spring2 5 days=999999999"):  # fmt: skip
        await boss.say(f"/admin promo {wrong}")
        assert "I did not understand that" in boss.from_bot[-1].text, wrong
    await boss.say("/admin promo FREERUNS runs=3")
    await boss.sees("No model is free here")
    await ann.say("/start p_SPRING")
    assert await ann.available() == 15_000
    await boss.say("/admin promos")
    listed = await boss.sees("SPRING · 5 credits\nused 1 of 10 · until ")
    await boss.tap("End SPRING", on=listed)
    await boss.sees("SPRING is closed")
    assert "used 1 of 10 · closed" in listed.text
    assert not any("End" in one["text"] for one in listed.buttons)
    await boss.say("/admin close spring")
    await boss.sees("There is no open promo code SPRING")
    assert len(await here.store.audit(9)) == 2


async def test_credit_for_a_name_that_several_people_have_is_refused(office: Office) -> None:
    here, boss, ann = office
    bob = await here.person("Bob", having=0)
    for one in (ann, bob):
        await here.store.see_profile(one.number, language="en", name="X", username="cat", referred_by=None)
    await boss.say("/admin credit @cat 5 sorry")
    await boss.sees("Several people are called @cat. Use the Telegram id.")
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
    assert "Sent: 2 of 2" in shown.text
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
    assert "This preview is out of date" in old.text
    assert await here.store.running_broadcast() is None
    await boss.tap("Send to", on=new)

    running = await here.store.running_broadcast()
    assert running is not None
    assert running.text == "Two"


async def closed(here: Town, chat: int) -> TelegramRateLimiter:
    """Telegram wants a chat to be left alone; the limits are real."""
    turns = TelegramRateLimiter(here.store, str(here.caller.bot.id))
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
    monkeypatch.setattr("genlock.bot.admin.broadcasts.LOOK_SECONDS", 0.5)
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
    monkeypatch.setattr("genlock.bot.admin.broadcasts.PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.LOOK_SECONDS", 0.1)
    async with asyncio.timeout(10):
        await here.bot.broadcast()
        [broadcast] = [await here.store.broadcast(1)]

    assert broadcast is not None
    assert (broadcast.state, broadcast.sent, broadcast.failed) == (BroadcastState.DONE, 1, 1)


async def test_a_broadcast_that_telegram_cannot_read_is_refused_at_once(office: Office) -> None:
    here, boss, _ = office
    await boss.say("/admin broadcast <b>News")
    await boss.sees("Telegram does not take it")

    assert await here.store.running_broadcast() is None


async def test_what_operators_did_can_be_read(office: Office) -> None:
    _, boss, ann = office
    await boss.say("/admin log")
    await boss.sees("Operators have done nothing yet")
    await boss.say(f"/admin credit {ann.number} 1 gift")
    await boss.say("/admin log")

    await boss.sees("· Boss · credited 2: 1: gift")


async def test_every_page_of_the_overview_leads_back_to_it(office: Office) -> None:
    _, boss, _ = office
    await boss.say("/admin")
    shown = boss.screen
    for name in ("People", "Attention", "Promo codes", "Broadcast", "Maintenance", "Refunds", "Log", "Commands"):
        await boss.tap(name, on=shown)
        assert "For operators" not in shown.text, name
        await boss.tap("Overview", on=shown)
        assert "For operators" in shown.text

    assert boss.screen == shown, "it was one message all the time"


async def test_a_command_that_is_not_whole_is_explained(office: Office) -> None:
    _, boss, _ = office
    for said, told in (
        ("credit 2", "/admin credit PERSON CREDITS REASON"),
        ("ban", "/admin ban PERSON REASON"),
        ("order x", "/admin order NUMBER"),
        ("stars", "/admin stars RECEIPT"),
        ("close", "/admin close CODE"),
        ("broadcast", "/admin broadcast TEXT"),
        ("maintenance", "/admin maintenance on"),
        ("nonsense", "/admin find NAME"),
    ):
        await boss.say(f"/admin {said}")
        assert told in boss.from_bot[-1].text


async def test_operators_read_their_own_language(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as here:
        boss, ann = await here.person("Босс", language="ru"), await here.person("Ann", having=10)
        await boss.say("/start")
        await ann.say("/start")
        here.kie.faults.order(Failure.TASK_FAIL)
        await ann.say("/gen z-image a fox")
        await here.quiet()
        await boss.say("/admin order 1")
        failed = await boss.sees("Заказ #1")
        assert "удался, человеку сообщили" in failed.text
        assert "0,8 кредита" in failed.text
        for said, told in (
            ("person 77", "Никого"),
            ("order 77", "Заказа #77 нет"),
            ("refund 1", "возвращать нечего"),
            ("cancel 1", "заказом так сейчас нельзя"),
            ("stars nothing", "Такого платежа нет"),
            ("close NOTHING", "Открытого промокода NOTHING нет"),
            ("stop", "Рассылка сейчас не идёт"),
        ):
            await boss.say(f"/admin {said}")
            assert told in boss.from_bot[-1].text, said


async def test_stars_are_refunded_by_a_button_after_a_question(office: Office) -> None:
    _, boss, ann = office
    charge = await bought(ann)
    await boss.say(f"/admin person {ann.number}")
    card = boss.screen
    await boss.tap("Payments", on=card)
    assert charge in card.text
    await boss.tap("↩️ 100 ⭐", on=card)
    assert "Give 100 ⭐ back to Ann?" in card.text
    assert await ann.available() == 130_000
    await boss.tap("Give back 100 ⭐", on=card)
    assert await boss.sees("Given back: 100 ⭐") == card
    assert not any("↩️" in one["text"] for one in card.buttons)

    assert await ann.available() == 10_000


async def test_a_refund_that_telegram_has_not_confirmed_is_seen_and_asked_for_again(office: Office) -> None:
    here, boss, ann = office
    charge = await bought(ann)
    here.telegram.faults.once(Fault.DROP_BEFORE, method="refundStarPayment")
    await boss.say(f"/admin stars {charge}")
    await boss.sees("Telegram has not confirmed the refund yet")
    assert (await here.store.stats())["refunds_open"] == 1
    await boss.say("/admin")
    overview = await boss.sees("Refunds not confirmed: 1")
    await boss.tap("Refunds", on=overview)
    assert "100 ⭐ · Ann · begun " in overview.text
    await boss.tap("Ask Telegram now", on=overview)
    await boss.sees("Telegram has confirmed every refund")
    await ann.sees("Stars on their way back to you: 100")

    payment = await here.store.payment(charge)
    assert payment is not None
    assert payment.state is PaymentState.REFUNDED
    assert await ann.available() == 10_000
    assert (await here.store.stats())["refunds_open"] == 0


async def test_a_refund_that_is_asked_for_again_stays_the_one_that_was_begun(office: Office) -> None:
    here, _, ann = office
    charge = await bought(ann)
    here.telegram.faults.switch(Fault.DROP_BEFORE, method="refundStarPayment", times=2)
    for operator in ("one", "two"):
        with pytest.raises(ChannelOutcomeUnknown):
            await here.bot._payments.refund(charge, operator)
    [fact] = await here.store.kv_list("chat:refund:")

    assert fact.value == "one", "so its age is that of the first try"


async def test_the_looks_of_a_broadcast_are_the_operators_own(office: Office) -> None:
    here, boss, ann = office
    text = "/admin broadcast\n5 < 6 & news 🎉 here"
    looks = [
        {"type": "bot_command", "offset": 0, "length": 6},
        {"type": "bold", "offset": 0, "length": 22},
        {"type": "text_link", "offset": 25, "length": 7, "url": "https://example.com/"},
    ]
    await boss.say(text, entities=looks)
    await boss.sees("This is how it looks")
    await boss.tap("Send to")
    await here.bot.broadcast()
    [seen] = [one for one in ann.from_bot if "news" in one.text]

    assert seen.text == "5 < 6 & news 🎉 here"
    assert [(one["type"], one["offset"], one["length"]) for one in seen.content["entities"]] == [
        ("bold", 0, 5), ("text_link", 8, 7),
    ]  # fmt: skip


async def test_a_picture_with_its_caption_is_broadcast_after_a_crash(office: Office) -> None:
    here, boss, ann = office
    await boss.send("photo", picture(), caption="/admin broadcast <b>Look</b> at this")
    await boss.tap("Send to")
    async with here.another_bot() as bot:
        await bot.broadcast()
    seen = await ann.sees(lambda message: message.kind == "photo")

    assert seen.text == "Look at this"
    assert len([one for one in ann.from_bot if one.kind == "photo"]) == 1


async def test_runs_are_given_where_models_are_free(tmp_path: Path) -> None:
    rules = replace(OPEN, admin_ids=frozenset({BOSS}))
    async with town(sqlite_url(tmp_path), rules=rules, catalog=with_free("z-image")) as here:
        boss = await here.person("Boss")
        await boss.say("/admin promo FREERUNS runs=3")
        await boss.sees("FREERUNS is made: 3 free runs.")


async def test_alarms_come_in_the_operators_language(office: Office) -> None:
    here, boss, ann = office
    await here.store.set_language(ann.number, "ru")

    async def language(outside: int) -> str:
        return await _language_of(here.store, outside)

    words = Words(english="Look at `genlock <doctor>`", russian="Посмотрите `genlock`")
    await notify_operators(here.caller, [boss.hands.id, ann.hands.id, 999], language, words)

    assert boss.from_bot[-1].text == "Look at genlock <doctor>"
    assert [one["type"] for one in boss.from_bot[-1].content["entities"]] == ["code"]
    assert ann.from_bot[-1].text == "Посмотрите genlock"
