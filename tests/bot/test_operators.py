"""What operators do in the chat, and what people are told of it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.app.telegram import operator_language
from genlock.bot.admin.broadcasts import Content
from genlock.channels.telegram.operators import notify_operators
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.broadcast import BroadcastState, Recipient
from genlock.domain.errors import ChannelOutcomeUnknown
from genlock.domain.payment import PaymentState
from genlock.i18n.translator import translator
from genlock.sandbox.kie.faults import Fault as Failure
from genlock.sandbox.telegram.faults import Fault
from genlock.stores.sqlite import SqliteStore
from tests.bot.conftest import BOSS, Office
from tests.bot.pages import label, page
from tests.bot.test_gifts import with_free
from tests.bot.test_money import OPEN, bought
from tests.bot.test_unexpected_input import picture
from tests.bot.world import BotWorld, running_bot, sqlite_url

EN = translator("en")


async def test_only_operators_have_operators_commands(office: Office) -> None:
    world, boss, ann = office
    await ann.write(f"/admin credit {ann.number} 1000 please")
    await ann.sees(page("misc.unknown_command"))
    press = await ann.press(ann.screen, "adm:today")
    assert press.text == "I can't find this order."

    assert await ann.available() == 10_000
    assert await world.store.audit(5) == []
    await boss.write("/admin")
    await boss.sees(page("admin.title"))


async def test_figures_of_the_day_and_the_week(office: Office) -> None:
    world, boss, ann = office
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await bought(ann)
    await boss.write("/admin")
    shown = await boss.sees(page("admin.today"))

    for line in ("Orders: 1 · delivered: 1 · failed: 0", "new: 2", "Revenue: 0.8 credits", "Top-ups: 100 ⭐"):
        assert line in shown.text
    await boss.tap(label("admin.button_week"), on=shown)
    await boss.sees(page("admin.week"))
    await boss.tap(label("admin.button_attention"), on=shown)
    await boss.sees(page("admin.attention_none"))
    assert world.intake.failures == []


async def test_people_are_found_and_money_is_moved_once_with_a_reason(office: Office) -> None:
    world, boss, ann = office
    await boss.write("/admin find Ann")
    await boss.sees(page("admin.person_balance", available="10 credits"))
    await boss.write("/admin find")
    await boss.tap("Ann · 2")
    handle, repeated = world.bot.handle, []

    async def twice(update: object, *, first: bool, **_: object) -> None:
        repeated.append(update)
        await handle(update, first=first)  # type: ignore[arg-type]
        await handle(update, first=False)  # type: ignore[arg-type]

    world.bot.handle = twice  # type: ignore[method-assign]
    await boss.write(f"/admin credit {ann.client.id} 2,5 for the trouble")
    credited = await boss.sees(page("admin.credited", credits="2.5 credits", reached=EN.plain("admin.person_told")))
    assert page("admin.person_balance", available="12.5 credits")(credited)
    await ann.sees(page("account.credited", credits="2.5 credits", balance="12.5 credits"))
    await boss.write(f"/admin debit @ann_{ann.client.id} 2 again")
    await boss.tap(label("admin_ask.debit_yes", credits="2 credits"))
    await ann.sees(page("account.debited", credits="2 credits"))
    assert await ann.available() == 10_500
    await boss.write(f"/admin debit {ann.number} 1000 too much")
    await boss.sees(page("admin.too_little", balance="10.5 credits"))
    for wrong in ("0", "-1", "nan", "inf", "1e99999999", "1.2345", "1234567890"):
        await boss.write(f"/admin credit {ann.number} {wrong} by mistake")
        assert page("admin.usage_credit")(boss.from_bot[-1]), wrong
    await boss.write(f"/admin credit {ann.number} nothing")
    await boss.sees(page("admin.not_understood"))
    await boss.write("/admin credit 99999 5 to no account")
    await boss.sees(page("admin.no_person", word="99999"))

    assert len(repeated) == 13
    assert len([one for one in ann.from_bot if page("account.credited")(one) or page("account.debited")(one)]) == 2
    assert [(line.action, line.detail) for line in await world.store.audit(9)] == [
        ("debit", "2: again"), ("credit", "2.5: for the trouble"),
    ]  # fmt: skip


async def test_an_order_is_looked_at_resent_and_refunded_once(office: Office) -> None:
    world, boss, ann = office
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await boss.write("/admin order #1")
    shown = await boss.sees(page("admin.order", code="#1", title="Z-Image"))
    for line in ("Ann · user 2", "0.8 credits, charged", "✅ Delivered", "· sent to the provider"):
        assert line in shown.text
    await boss.write("/admin resend 1")
    await boss.sees(page("admin.resent"))
    await ann.sees(lambda message: message.kind == "photo" and message.id > 10)
    await world.quiet()
    await boss.write("/admin refund 1")
    await boss.tap(label("admin_ask.refund_yes", credits="0.8 credits"))
    card = await boss.sees(page("admin.refunded", credits="0.8 credits", reached=EN.plain("admin.person_told")))
    assert "0.8 credits, charged and refunded" in card.text
    assert not any("Refund" in one["text"] for one in card.buttons)
    await ann.sees(page("account.refunded", code="#1", credits="0.8 credits"))
    await boss.write("/admin refund 1")
    await boss.sees(page("admin.refunded_before"))
    await boss.write("/admin order 99")
    await boss.sees(page("admin.no_order", code="#99"))

    assert await ann.available() == 10_000
    assert await world.store.violations(settled=False) == []


async def test_stars_are_refunded_by_their_receipt(office: Office) -> None:
    world, boss, ann = office
    charge = await bought(ann)
    await boss.write(f"/admin stars {charge}")
    await boss.tap(label("admin_ask.stars_yes", stars=100))
    await boss.sees(page("admin.stars_refunded", stars=100, credits="120 credits"))
    await ann.sees(page("topup.refunded", stars=100))
    await boss.write(f"/admin stars {charge}")
    await boss.sees(page("admin.stars_before"))

    assert await ann.available() == 10_000
    assert world.intake.failures == []


async def test_whatever_is_too_long_for_a_message_is_still_answered(office: Office) -> None:
    world, boss, ann = office
    for number in range(10):
        await ann.write(f"/gen z-image a fox {number}")
    await world.quiet()
    assert isinstance(world.store, SqliteStore)
    reason = f"stage error: RuntimeError('{'<' * 460}')"
    await world.store.session.call(
        lambda connection: connection.execute(
            "UPDATE jobs SET attention_code = 'stage_error', attention_reason = ?", (reason,)
        )
    )
    for line, answer in (
        ("attention", "#1 · Z-Image"),
        (f"ban {ann.number} {'why ' * 1000}", "Ann"),
        (f"maintenance on {'why ' * 1000}", "Turn maintenance on?"),
        (f"find {'&' * 4000}", "No user matches"),
        (f"stars {'&' * 4000}", "no such payment"),
    ):
        await boss.write(f"/admin {line}")
        assert answer in boss.from_bot[-1].text, line[:20]
        assert boss.from_bot[-1].buttons


async def test_promo_codes_are_made_listed_and_closed(office: Office) -> None:
    world, boss, ann = office
    await boss.write("/admin promo spring 5 uses=10 each=1 days=30")
    await boss.sees("https://t.me/sandbox_bot?start=p_SPRING")
    await boss.write("/admin promo SPRING 5")
    await boss.sees(page("admin.promo_exists"))
    for wrong in ("x", "five5 5", "spring2", "spring2 5 runs=3", "spring2 -5", "spring2 5 5", "spring2 5 each=0",
                  "spring2 5 days=999999999"):  # fmt: skip
        await boss.write(f"/admin promo {wrong}")
        assert page("admin.not_understood")(boss.from_bot[-1]), wrong
    await boss.write("/admin promo FREERUNS runs=3")
    await boss.sees(page("admin.promo_useless"))
    await ann.write("/start p_SPRING")
    assert await ann.available() == 15_000
    await boss.write("/admin promos")
    listed = await boss.sees(page("admin.promo_limit", uses=1, n=10))
    await boss.tap(label("admin.button_end_promo", code="SPRING"), on=listed)
    await boss.tap(label("admin_ask.close_yes", code="SPRING"), on=listed)
    await boss.sees(page("admin.promo_shut", code="SPRING"))
    assert "used 1 of 10 · closed" in listed.text
    assert not any("End" in one["text"] for one in listed.buttons)
    await boss.write("/admin close spring")
    await boss.sees(page("admin.no_promo", code="SPRING"))
    assert len(await world.store.audit(9)) == 2


async def test_credit_for_a_name_that_several_people_have_is_refused(office: Office) -> None:
    world, boss, ann = office
    bob = await world.add_user("Bob", having=0)
    for one in (ann, bob):
        await world.store.ensure_profile(one.number, language="en", name="X", username="cat", referred_by=None)
    await boss.write("/admin credit @cat 5 sorry")
    await boss.sees(page("admin.many_people", word="@cat"))
    assert (await ann.available(), await bob.available()) == (10_000, 0)
    await boss.write(f"/admin credit {bob.client.id} 5 sorry")

    assert (await ann.available(), await bob.available()) == (10_000, 5_000)


# broadcasts


async def test_a_broadcast_is_looked_at_first_then_reaches_everybody_once(office: Office) -> None:
    world, boss, ann = office
    bob = await world.add_user("Bob")
    await bob.write("/start")
    async with world.done():
        await bob.client.block()
    await boss.write("/admin broadcast <b>News</b>: cats")
    await boss.sees(page("admin.preview"))
    assert not any("News" in message.text for message in ann.from_bot)
    await boss.tap(label("admin.broadcast_go"))
    await asyncio.gather(*(world.bot.broadcast() for _ in range(3)))
    await ann.sees("News: cats")
    shown = await boss.sees(page("admin.broadcast", number=1, state=EN.plain("admin.broadcast_done")))

    assert len([message for message in ann.from_bot if message.text == "News: cats"]) == 1
    assert page("admin.broadcast", sent=2, total=2)(shown)
    assert await world.bot.broadcast() == 0


async def test_a_broadcast_goes_to_several_users_at_the_same_time(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, _ = office
    people = [await world.add_user(f"P{number}") for number in range(5)]
    for person in people:
        await person.write("/start")
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    all_on_their_way = asyncio.Barrier(7)

    async def send(_content: Content, _caller: object, _chat: int, _priority: object) -> None:
        await all_on_their_way.wait()

    monkeypatch.setattr(Content, "send", send)
    async with asyncio.timeout(30):
        assert await world.bot.broadcast() == 7
    sent = await world.store.broadcast(1)
    assert sent is not None
    assert (sent.sent, sent.failed, sent.state) == (7, 0, BroadcastState.DONE)


async def test_a_broadcast_goes_on_after_a_crash_and_stops_when_told(office: Office) -> None:
    world, boss, ann = office
    people = [await world.add_user(f"P{number}") for number in range(5)]
    for person in people:
        await person.write("/start")
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    running = await world.store.running_broadcast()
    assert running is not None
    assert running.total == 7
    world.telegram.faults.once(Fault.DROP_AFTER, method="sendMessage", chat=people[0].client.id)
    for _ in range(4):  # as a process would that dies after each
        found = await world.store.next_recipient(running.id)
        assert found is not None
        await world.bot._broadcasts._send(running, Content.load(running), found)
    await boss.write("/admin stop")
    stopped = await world.store.broadcast(running.id)
    assert stopped is not None
    assert stopped.state is BroadcastState.STOPPED
    assert await world.bot.broadcast() == 0
    reached = [one for one in (boss, ann, *people) if any(message.text == "Hello" for message in one.from_bot)]

    assert len(reached) >= 4
    assert all(len([m for m in one.from_bot if m.text == "Hello"]) == 1 for one in reached if one is not boss)


async def test_an_old_preview_does_not_send_what_a_newer_one_shows(office: Office) -> None:
    world, boss, _ = office
    await boss.write("/admin broadcast One")
    old = boss.screen
    await boss.write("/admin broadcast Two")
    new = boss.screen
    await boss.tap(label("admin.broadcast_go"), on=old)
    assert page("admin.preview_old")(old)
    assert await world.store.running_broadcast() is None
    await boss.tap(label("admin.broadcast_go"), on=new)

    running = await world.store.running_broadcast()
    assert running is not None
    assert running.text == "Two"


async def closed(world: BotWorld, chat: int) -> TelegramRateLimiter:
    """Telegram wants a chat to be left alone; the limits are real."""
    turns = TelegramRateLimiter(world.store, str(world.caller.bot.id))
    await turns.stop(chat, 600.0)
    world.caller._limiter = turns
    return turns


async def test_a_broadcast_waits_quietly_for_a_closed_chat_and_stops_when_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    running = await world.store.running_broadcast()
    assert running is not None
    turns = await closed(world, ann.client.id)
    take, asked = turns.acquire, asyncio.Event()
    calls = 0

    async def counted(chat: int, priority: Priority) -> None:
        nonlocal calls
        calls += 1
        asked.set()
        await take(chat, priority)

    monkeypatch.setattr(turns, "acquire", counted)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.STOP_CHECK_SECONDS", 0.5)
    recipient = Recipient(account_id=ann.number, language="en", address=(await world.store.account(ann.number)).address)
    sending = asyncio.ensure_future(world.bot._broadcasts._send(running, Content.load(running), recipient))
    async with asyncio.timeout(30):
        await asked.wait()
    await world.store.end_broadcast(running.id, BroadcastState.STOPPED)
    async with asyncio.timeout(30):
        assert not await sending
    assert calls <= 3


async def test_a_broadcast_does_not_wait_forever_for_one_chat(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    world, boss, ann = office
    await boss.write("/admin broadcast Hello")
    await boss.tap(label("admin.broadcast_go"))
    await closed(world, ann.client.id)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.PERMIT_WAIT_SECONDS", 0.3)
    monkeypatch.setattr("genlock.bot.admin.broadcasts.STOP_CHECK_SECONDS", 0.1)
    async with asyncio.timeout(30):
        await world.bot.broadcast()
        [broadcast] = [await world.store.broadcast(1)]

    assert broadcast is not None
    assert (broadcast.state, broadcast.sent, broadcast.failed) == (BroadcastState.DONE, 1, 1)


async def test_a_broadcast_that_telegram_cannot_read_is_refused_at_once(office: Office) -> None:
    world, boss, _ = office
    await boss.write("/admin broadcast <b>News")
    await boss.sees(page("admin.unread"))

    assert await world.store.running_broadcast() is None


async def test_what_operators_did_can_be_read(office: Office) -> None:
    _, boss, ann = office
    await boss.write("/admin log")
    await boss.sees(page("admin.log_none"))
    await boss.write(f"/admin credit {ann.number} 1 gift")
    await boss.write("/admin log")

    await boss.sees(f"· Boss · {EN.plain('admin.audit_credit', subject=2, detail='1: gift')}")


async def test_every_page_of_the_overview_leads_back_to_it(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    _, boss, _ = office
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 0.0)  # the same button is meant several times
    await boss.write("/admin")
    shown = boss.screen
    for name in ("Users", "Attention", "Promo codes", "Broadcast", "Maintenance", "Refunds", "Log", "Commands"):
        await boss.tap(name, on=shown)
        assert not page("admin.title")(shown), name
        await boss.tap(label("admin.button_home"), on=shown)
        assert page("admin.title")(shown)

    assert boss.screen == shown, "it was one message all the time"


async def test_a_command_that_is_not_whole_is_explained(office: Office) -> None:
    _, boss, _ = office
    for said, told in (
        ("credit 2", "/admin credit USER CREDITS REASON"),
        ("ban", "/admin ban USER REASON"),
        ("order x", "/admin order NUMBER"),
        ("stars", "/admin stars RECEIPT"),
        ("close", "/admin close CODE"),
        ("broadcast", "/admin broadcast TEXT"),
        ("maintenance", "/admin maintenance on"),
        ("nonsense", "/admin find NAME"),
    ):
        await boss.write(f"/admin {said}")
        assert told in boss.from_bot[-1].text


async def test_operators_read_their_own_language(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as world:
        boss, ann = await world.add_user("Босс", language="ru"), await world.add_user("Ann", having=10)
        await boss.write("/start")
        await ann.write("/start")
        world.kie.faults.order(Failure.TASK_FAIL)
        await ann.write("/gen z-image a fox")
        await world.quiet()
        await boss.write("/admin order 1")
        failed = await boss.sees(page("admin.order", language="ru", code="#1"))
        assert page("admin.state_failed", language="ru")(failed)
        assert "0,8 кредита" in failed.text
        for said, told in (
            ("person 77", "Пользователя"),
            ("order 77", "Заказа #77 нет"),
            ("refund 1", "возвращать нечего"),
            ("cancel 1", "этим заказом так нельзя"),
            ("stars nothing", "Такого платежа нет"),
            ("close NOTHING", "Открытого промокода NOTHING нет"),
            ("stop", "Рассылка сейчас не идёт"),
        ):
            await boss.write(f"/admin {said}")
            assert told in boss.from_bot[-1].text, said


async def test_stars_are_refunded_by_a_button_after_a_question(office: Office) -> None:
    _, boss, ann = office
    charge = await bought(ann)
    await boss.write(f"/admin person {ann.number}")
    card = boss.screen
    await boss.tap(label("admin.button_payments"), on=card)
    assert charge in card.text
    await boss.tap(label("admin.payment_row", stars=100), on=card)
    assert page("admin_ask.stars", stars=100, name="Ann")(card)
    assert await ann.available() == 130_000
    await boss.tap(label("admin_ask.stars_yes", stars=100), on=card)
    assert await boss.sees(page("admin.stars_refunded", stars=100)) == card
    assert not any("↩️" in one["text"] for one in card.buttons)

    assert await ann.available() == 10_000


async def test_a_refund_that_telegram_has_not_confirmed_is_seen_and_asked_for_again(office: Office) -> None:
    world, boss, ann = office
    charge = await bought(ann)
    world.telegram.faults.once(Fault.DROP_BEFORE, method="refundStarPayment")
    await boss.write(f"/admin stars {charge}")
    await boss.tap(label("admin_ask.stars_yes", stars=100))
    await boss.sees(page("admin.stars_open"))
    assert (await world.store.stats())["refunds_open"] == 1
    await boss.write("/admin")
    overview = await boss.sees(page("admin.refunds_now", n=1))
    await boss.tap(label("admin.button_refunds"), on=overview)
    assert "100 ⭐ · Ann · requested " in overview.text
    await boss.tap(label("admin.button_ask_now"), on=overview)
    await boss.sees(page("admin.refunds_none"))
    await ann.sees(page("topup.refunded", stars=100))

    payment = await world.store.payment(charge)
    assert payment is not None
    assert payment.state is PaymentState.REFUNDED
    assert await ann.available() == 10_000
    assert (await world.store.stats())["refunds_open"] == 0


async def test_a_refund_that_is_asked_for_again_stays_the_one_that_was_begun(office: Office) -> None:
    world, _, ann = office
    charge = await bought(ann)
    world.telegram.faults.switch(Fault.DROP_BEFORE, method="refundStarPayment", times=2)
    for operator in ("one", "two"):
        with pytest.raises(ChannelOutcomeUnknown):
            await world.bot._payments._refunds.refund(charge, operator)
    [fact] = await world.store.kv_list("chat:refund:", world.bot_id)

    assert fact.value == "one", "so its age is that of the first try"


async def test_the_looks_of_a_broadcast_are_the_operators_own(office: Office) -> None:
    world, boss, ann = office
    line = "/admin broadcast\n5 < 6 & news 🎉 here"
    looks = [
        {"type": "bot_command", "offset": 0, "length": 6},
        {"type": "bold", "offset": 0, "length": 22},
        {"type": "text_link", "offset": 25, "length": 7, "url": "https://example.com/"},
    ]
    await boss.write(line, entities=looks)
    await boss.sees(page("admin.preview"))
    await boss.tap(label("admin.broadcast_go"))
    await world.bot.broadcast()
    [seen] = [one for one in ann.from_bot if "news" in one.text]

    assert seen.text == "5 < 6 & news 🎉 here"
    assert [(one["type"], one["offset"], one["length"]) for one in seen.content["entities"]] == [
        ("bold", 0, 5), ("text_link", 8, 7),
    ]  # fmt: skip


async def test_a_picture_with_its_caption_is_broadcast_after_a_crash(office: Office) -> None:
    world, boss, ann = office
    await boss.send("photo", picture(), caption="/admin broadcast <b>Look</b> at this")
    await boss.tap(label("admin.broadcast_go"))
    async with world.another_bot() as bot:
        await bot.broadcast()
    seen = await ann.sees(lambda message: message.kind == "photo")

    assert seen.text == "Look at this"
    assert len([one for one in ann.from_bot if one.kind == "photo"]) == 1


async def test_runs_are_given_where_models_are_free(tmp_path: Path) -> None:
    rules = replace(OPEN, admin_ids=frozenset({BOSS}))
    async with running_bot(sqlite_url(tmp_path), rules=rules, catalog=with_free("z-image")) as world:
        boss = await world.add_user("Boss")
        await boss.write("/admin promo FREERUNS runs=3")
        await boss.sees(page("admin.promo_made", code="FREERUNS", gift=EN.plain("unit.runs", n=3)))


async def test_alarms_come_in_the_operators_language(office: Office) -> None:
    world, boss, ann = office
    await world.store.set_language(ann.number, "ru")

    async def language(outside: int) -> str:
        return await operator_language(world.store, outside)

    texts = {"en": "Look at `genlock <doctor>`", "ru": "Посмотрите `genlock`"}
    await notify_operators(
        world.caller, [boss.client.id, ann.client.id, 999], language, lambda code: texts[code or "en"]
    )

    assert boss.from_bot[-1].text == "Look at genlock <doctor>"
    assert [one["type"] for one in boss.from_bot[-1].content["entities"]] == ["code"]
    assert ann.from_bot[-1].text == "Посмотрите genlock"
