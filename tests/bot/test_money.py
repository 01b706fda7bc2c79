"""Money in the chat: the price before, the shortfall, stars, results that were lost; each happens once."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from telegram import LabeledPrice

from genlock.bot.buttons import button
from genlock.bot.money import invoices
from genlock.domain.catalog import Catalog
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job
from genlock.domain.money import EntryKind
from genlock.domain.tariff import PriceRow
from genlock.engine.reconciliation import PaymentDifferenceKind, ReconciliationRecord
from genlock.engine.tell import send_waiting
from genlock.i18n.translator import translator
from tests.bot.pages import EN, has_button, label, page
from tests.bot.rules import OPEN
from tests.bot.steps import bought
from tests.bot.world import BotWorld, ChatUser, die_once, running_bot, sqlite_url
from tests.changes import PATIENCE_SECONDS
from tests.noon_clock import NoonClock


async def test_too_little_money_is_told_exactly_and_a_top_up_leads_back_to_the_order(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 0.0)  # the same button is meant twice
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=10)
        await ann.write("/models Kling 3.0")
        await ann.tap("Kling 3.0 ·")
        await ann.write("a storm")
        await ann.tap(label("button.rest"))
        short = await ann.sees(page("confirm.short", balance="10\u00a0credits", missing="80\u00a0credits"))
        assert not has_button(short, "button.generate")
        await ann.tap(label("button.topup"))
        await ann.sees(page("topup.missing", credits="80\u00a0credits"))
        assert page("topup.enough")(ann.screen)
        await ann.tap(label("button.back"))
        await ann.sees(page("confirm.short", balance="10\u00a0credits", missing="80\u00a0credits"))
        await ann.tap(label("button.topup"))
        await ann.tap(label("topup.package", stars=100))
        bill = await ann.sees(lambda message: message.kind == "invoice")
        async with world.done(2):
            await ann.client.pay(bill)
        await ann.sees(page("topup.paid", credits="120\u00a0credits"))
        await ann.sees(page("topup.ready"))
        await ann.tap(label("button.generate", price="90\u00a0credits"))
        await ann.sees(page("order.done"))

        assert await ann.available() == 40_000
        assert await world.store.violations(settled=False) == []


async def test_the_balance_tells_what_moved_in_plain_words(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), clock=NoonClock()) as world:
        ann = await world.add_user(having=50)
        await bought(ann)
        await ann.write("/gen z-image a fox")
        await ann.sees(page("order.done"))
        await world.store.transfer(ann.number, EntryKind.REFUND, 800, "refund:1", "order 1 refunded")
        await world.store.transfer(ann.number, EntryKind.GRANT, 2500, "admin:7", "for the trouble")
        await world.store.transfer(ann.number, EntryKind.DEBIT, 500, "admin:8", "too much")
        await ann.write("/balance")
        shown = (await ann.sees(page("balance.title", credits="172\u00a0credits"))).text.splitlines()
        today = translator("en").day(await world.store.read_clock())

        assert shown[-7:] == [
            today,
            "\N{MINUS SIGN}0.5 · deducted by support",
            "+2.5 · added by support",
            "+0.8 · refund for order #1",
            "\N{MINUS SIGN}0.8 · order #1",
            "+120 · top-up with Stars",
            "+50 · gift",
        ]


async def test_packages_that_are_enough_for_the_order_are_marked(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, markup=6.0)) as world:
        ann = await world.add_user(having=10)
        await ann.write("/gen kling-3.0/video a storm")
        await ann.tap(label("button.topup"))
        await ann.sees(page("topup.missing", credits="260\u00a0credits"))

        assert [key["text"] for key in ann.screen.buttons][:2] == [
            "⭐ 100 → 120\u00a0credits",
            "✅ ⭐ 500 → 650\u00a0credits",
        ]


async def test_a_payment_is_credited_once_however_often_it_is_told(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=0)
        charge = await bought(ann)
        assert await ann.available() == 120_000
        assert await asyncio.gather(*(world.bot.reconcile() for _ in range(5))) == [0] * 5
        assert await ann.available() == 120_000
        payment = await world.store.payment(charge)
        assert payment is not None
        assert (payment.paid_amount, payment.amount) == (100, 120_000)


async def test_a_payment_whose_message_was_lost_is_found_in_telegrams_list(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=0)
        await ann.write("/topup")
        await ann.tap(label("topup.package", stars=500))
        bill = await ann.sees(lambda message: message.kind == "invoice")
        world.intake.drop_next("successful_payment")
        async with world.done():
            await ann.client.pay(bill)
        assert await ann.available() == 0
        assert await world.bot.reconcile() == 1
        assert await ann.available() == 650_000
        await ann.sees(page("topup.paid", credits="650\u00a0credits"))
        assert await world.bot.reconcile() == 0
        record = await ReconciliationRecord(world.store, world.bot_id).read()
        assert record is not None
        assert (record.read, record.position, record.error) == (0, 1, "")
        [found] = record.differences
        assert (found.kind, found.paid_amount, found.user) == (
            PaymentDifferenceKind.MISSED_PAYMENT,
            500,
            str(ann.client.id),
        )


async def test_a_list_that_telegram_does_not_give_is_recorded_with_its_error(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    await bought(ann)
    await world.bot.reconcile()

    async def refused(**_: object) -> None:
        raise ChannelBusy(3.0, "Telegram is busy")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.bot._payments._caller, "call", lambda *_, **__: refused())
        with pytest.raises(ChannelBusy):
            await world.bot.reconcile()

    record = await ReconciliationRecord(world.store, world.bot_id).read()
    assert record is not None
    assert "Telegram is busy" in record.error
    assert record.position == 1


async def test_each_bot_has_its_own_place_in_telegrams_list(world: BotWorld) -> None:
    await world.store.kv_put("chat:stars", "1", world.bot_id)
    await world.store.kv_put("chat:stars", "50", "999")  # another bot's
    ann = await world.add_user(having=0)
    charges = [await bought(ann), await bought(ann)]
    world.intake.drop_next("refunded_payment")
    await world.caller.bot.refund_star_payment(ann.client.id, charges[1])

    assert await world.bot.reconcile() == 1
    positions = [await world.store.kv_get("chat:stars", bot) for bot in (world.bot_id, "999")]
    assert [entry and entry.value for entry in positions] == ["3", "50"]


async def test_a_payment_found_in_telegrams_list_first_is_thanked_for_once(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    await ann.write("/topup")
    await ann.tap(label("topup.package", stars=100))
    bill = await ann.sees(lambda message: message.kind == "invoice")
    world.intake.drop_next("successful_payment")
    async with world.done():
        await ann.client.pay(bill)
    assert await world.bot.reconcile() == 1
    await ann.sees(page("topup.paid"))
    async with world.done():
        await world.intake.receive(world.intake.dropped[0])

    assert len([message for message in ann.from_bot if page("topup.paid")(message)]) == 1
    assert await ann.available() == 120_000


async def test_a_crash_after_a_payment_from_telegrams_list_is_credited_loses_no_message(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.engine.tell.AFTER_SECONDS", 0.0)
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    await world.store.transfer(ann.number, EntryKind.DEBIT, 120_000, "spent")
    assert await world.store.book_external_refund(charge, "telegram")  # 120 credits are owed
    await ann.write("/topup")
    await ann.tap(label("topup.package", stars=500))
    bill = await ann.sees(lambda message: message.kind == "invoice")
    world.intake.drop_next("successful_payment")
    async with world.done():
        await ann.client.pay(bill)

    die_once(world.store, "transfer", after=True)
    with pytest.raises(ChannelOutcomeUnknown):
        await world.bot.reconcile()
    await world.bot.reconcile()
    for _ in range(2):
        await send_waiting(world.engine.ctx)

    paid, repaid = page("topup.paid", credits="650\u00a0credits"), page("topup.repaid", credits="120\u00a0credits")
    await ann.sees(lambda message: paid(message) and repaid(message) and "530\u00a0credits" in message.text)
    assert len([message for message in ann.from_bot if paid(message)]) == 1
    assert await ann.available() == 530_000
    assert await world.bot.reconcile() == 0


async def test_a_bill_above_what_the_price_was_made_from_is_told_to_the_operator(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    assert world.recorder.of(Event.COST_ABOVE_PRICE) == []
    dear = replace(world.catalog.get("z-image"), prices=(PriceRow(credits=Decimal(5)),))
    world.kie.service.catalog = Catalog(models={**world.catalog.models, "z-image": dear})
    await ann.write("/gen z-image a fox")
    await ann.sees(lambda message: "#2" in message.text and "complete" in message.text)

    assert len(world.recorder.of(Event.COST_ABOVE_PRICE, cost=5000, paid_for=800)) == 1
    stats = await world.store.stats()
    assert (stats["costs_above_price"], stats["cost_above_price_job"]) == (1, 2), "it is an alarm, too"


async def test_a_dearer_price_is_confirmed_anew(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("a fox")
    await ann.sees(page("confirm.price", price="0.8\u00a0credits"))
    world.set_markup(4.0)
    await ann.tap(label("button.generate"))
    await ann.sees(page("confirm.dearer"))
    assert await world.jobs(ann) == []
    await ann.tap(label("button.generate", price="1.6\u00a0credits"))
    await ann.sees(page("order.done"))


async def test_the_question_before_a_payment_is_answered_though_the_store_hangs(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoices.STORE_SECONDS <= 2, "Telegram waits for ten seconds"
    ann = await world.add_user(having=0)
    await ann.write("/topup")
    await ann.tap(label("topup.package", stars=100))
    bill = await ann.sees(lambda message: message.kind == "invoice")
    session = world.store.session  # type: ignore[attr-defined]
    one, hung = session.one, asyncio.Event()

    async def hang(name: str, /, **params: object) -> object:
        if "update" not in name:  # the queue of updates works; the handler must not need more of the store
            await hung.wait()
        return await one(name, **params)

    session.one = hang
    with monkeypatch.context() as during:
        during.setattr(invoices, "STORE_SECONDS", 0.2)
        async with asyncio.timeout(PATIENCE_SECONDS):
            payment = await ann.client.pay(bill)
    assert payment.reason == EN.plain("topup.unchecked")
    session.one = one
    hung.set()
    assert (await ann.client.pay(bill)).ok
    await ann.sees(page("topup.paid"))

    assert await ann.available() == 120_000


async def test_a_bill_that_is_not_ours_is_refused(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    await ann.write("/start")
    sent = await world.caller.bot.send_invoice(
        ann.client.id, title="x", description="x", payload="credits:1:99999", provider_token="", currency="XTR",
        prices=[LabeledPrice("x", 5)],
    )  # fmt: skip
    async with world.done():
        payment = await ann.client.pay(sent.message_id)

    assert not payment.ok
    assert await ann.available() == 0


async def lost(ann: ChatUser, job: Job) -> None:
    """The user blocks the bot and removes the message before the result is there."""
    async with ann.world.done():
        await ann.client.block()
    await ann.client.delete(int(str(job.placeholder)))
    ann.world.kie.service.release_tasks()
    recorder = ann.world.recorder
    given_up = partial(recorder.of, Event.ATTENTION, job=job.id, delivery=Delivery.UNDELIVERABLE)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await recorder.more(lambda: len(given_up()), than=0)
    assert await ann.available() == 10_000
    async with ann.world.done():
        await ann.client.unblock()


async def test_a_result_that_was_not_paid_for_is_given_by_no_other_button(database_url: str) -> None:
    """A client may press what we never showed: the original of a result whose credits were returned."""
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=10)
        world.kie.service.hold_tasks()
        await ann.write("a fox")
        await ann.tap(label("button.generate"))
        job = (await world.jobs(ann))[0]
        await lost(ann, job)
        await ann.write("/history")
        for data in (f"original:{job.id}:0", f"next:{job.id}:0:image_animate", f"nexts:{job.id}:0"):
            press = await ann.press(ann.screen, data)
            assert page("order.part_unpaid")(press), data
        assert [message for message in ann.from_bot if message.kind in ("document", "photo")] == []
        assert (await ann.available(), len(await world.jobs(ann))) == (10_000, 1)


async def test_a_result_that_could_not_be_delivered_costs_its_price_when_it_is_shown_again(database_url: str) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=10)
        world.kie.service.hold_tasks()
        await ann.write("a fox")
        await ann.tap(label("button.generate"))
        job = (await world.jobs(ann))[0]
        await lost(ann, job)
        await ann.write("/history")
        again = str(button("x", "again", job.id).data)
        press = await ann.press(ann.screen, again)
        assert page("order.again_paid")(press)
        await ann.sees(page("order.done"))
        assert await ann.available() == 9_200
        await ann.press(ann.screen, again)  # it is theirs now
        await world.quiet()

        assert await ann.available() == 9_200
        assert await world.store.violations(settled=False) == []


async def test_who_cannot_pay_for_a_lost_result_is_told_how_much_is_missing(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=OPEN) as world:
        ann = await world.add_user(having=10)
        world.kie.service.hold_tasks()
        await ann.write("a fox")
        await ann.tap(label("button.generate"))
        job = (await world.jobs(ann))[0]
        await lost(ann, job)
        await world.store.transfer(ann.number, EntryKind.DEBIT, 9_500, "spent elsewhere")
        await ann.write("/history")
        press = await ann.press(ann.screen, str(button("x", "again", job.id).data))

        assert "costs 0.8\u00a0credits now. You need 0.3\u00a0credits more" in press.text
        assert (await world.store.job(job.id)).delivery is Delivery.UNDELIVERABLE  # type: ignore[union-attr]
        assert await ann.available() == 500
