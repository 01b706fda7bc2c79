"""Invoices: which of them can be paid, by whom, and what becomes of a payment that was made all the same."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from telegram import LabeledPrice

from genlock.bot.money import invoices
from genlock.bot.money.invoices import Invoice
from genlock.bot.rules import Package
from genlock.domain.errors import StoreUnavailable
from genlock.i18n.translator import translator
from genlock.sandbox.telegram.chats import Message
from genlock.sandbox.telegram.payments import _charge
from tests.bot.pages import label, page, text_pattern
from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url


async def invoice_of(ann: ChatUser, stars: int = 100) -> Message:
    await ann.write("/topup")
    await ann.tap(label("topup.package", stars=stars))
    return await ann.sees(lambda message: message.kind == "invoice")


async def refusal(ann: ChatUser, bill: Message | str) -> str:
    """Try to pay; gives the reason that Telegram shows. Nothing was charged."""
    stars = ann.client.user.stars
    async with ann.world.done():
        payment = await ann.client.pay(bill)
    assert not payment.ok
    assert ann.client.user.stars == stars
    assert await ann.available() == 0
    return payment.reason


def change_rules(world: BotWorld, **changes: object) -> None:
    world.bot._bundle.rules = replace(world.bot._bundle.rules, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_an_old_invoice_is_refused_with_words_that_say_nothing_was_charged(
    world: BotWorld, language: str
) -> None:
    ann = await world.add_user(having=0, language=language)
    await ann.write("/start")
    bill = await invoice_of_in(ann, language)
    change_rules(world, invoice_hours=-1.0)

    assert await refusal(ann, bill) == translator(language).plain("topup.expired")


async def invoice_of_in(ann: ChatUser, language: str) -> Message:
    await ann.write("/topup")
    credits_ = translator(language).credits(120_000)
    await ann.tap(f"⭐ 100 → {credits_}")
    return await ann.sees(lambda message: message.kind == "invoice")


async def test_an_invoice_whose_package_is_no_longer_sold_at_this_price_is_refused(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    bill = await invoice_of(ann)
    for packages in ((Package(stars=100, credits=90),), (Package(stars=500, credits=650),), ()):
        change_rules(world, packages=packages)
        assert await refusal(ann, bill) == translator("en").plain("topup.expired")


async def test_a_banned_user_and_a_user_during_maintenance_cannot_pay(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=OPEN) as world:
        ann = await world.add_user(having=0)
        bill = await invoice_of(ann)
        await world.store.set_ban(ann.number, banned=True, reason="x")
        assert text_pattern("topup.banned").search(await refusal(ann, bill))
        await world.store.set_ban(ann.number, banned=False, reason="")
        await world.store.kv_put("chat:maintenance", "", world.bot_id)
        async with world.another_bot():
            assert await refusal(ann, bill) == translator("en").plain("topup.maintenance")


@pytest.mark.parametrize("hangs", [True, False], ids=["hangs", "fails"])
async def test_a_payment_that_cannot_be_checked_is_refused_and_can_be_made_later(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    async def outage() -> None:
        if hangs:
            await asyncio.Event().wait()
        raise StoreUnavailable

    ann = await world.add_user(having=0)
    bill = await invoice_of(ann)
    with monkeypatch.context() as during:
        during.setattr(invoices, "STORE_SECONDS", 0.05)
        during.setattr(world.store, "read_clock", outage)
        assert await refusal(ann, bill) == translator("en").plain("topup.unchecked")
    async with world.done():
        assert (await ann.client.pay(bill)).ok


async def test_an_invoice_of_another_user_or_with_a_forged_payload_is_refused(world: BotWorld) -> None:
    ann, bob = await world.add_user(having=0), await world.add_user("Bob", having=0)
    now = int((await world.store.read_clock()).timestamp())
    good = Invoice(stars=100, credits=120, issued=now, user=ann.client.id)
    payloads = [
        str(replace(good, user=bob.client.id)), str(replace(good, user=0)), str(replace(good, credits=99_999)),
        "credits:100:120", "credits:100:120:0:0", "credits:100:120:x:y", "credits:100", f"credits:100:{'9' * 100}:1:1",
        "credits:²:³:1:1", "other:100:120:1:1", ":", str(replace(good, issued=now - 25 * 3600)),
    ]  # fmt: skip
    accepted = []
    for payload in payloads:
        link = await world.caller.bot.create_invoice_link(
            title="x",
            description="x",
            payload=payload,
            currency="XTR",
            prices=[LabeledPrice("x", 100)],
            provider_token="",
        )
        async with world.done():
            payment = await ann.client.pay(link)
        if payment.ok:
            accepted.append(payload)

    assert accepted == []


async def test_a_payment_for_an_old_invoice_that_was_taken_all_the_same_is_credited_once_to_the_payer(
    world: BotWorld,
) -> None:
    ann, bob = await world.add_user(having=0), await world.add_user("Bob", having=0)
    await invoice_of(ann)
    bill = next(invoice for invoice in world.telegram.state.stars_ledger.invoices.values())
    change_rules(world, invoice_hours=-1.0, packages=())
    await bob.write("/start")
    for payload in (bill.payload, "credits:100:120"):
        async with world.done():
            _charge(world.telegram.state, bob.client.user, replace(bill, payload=payload), bob.client.id)
    await world.bot.reconcile()

    assert (await ann.available(), await bob.available()) == (0, 240_000)


async def test_a_payment_that_no_invoice_of_ours_asked_for_is_not_credited_and_the_user_is_told(
    world: BotWorld,
) -> None:
    ann = await world.add_user(having=0)
    await invoice_of(ann)
    bill = next(invoice for invoice in world.telegram.state.stars_ledger.invoices.values())
    async with world.done():
        _charge(world.telegram.state, ann.client.user, replace(bill, payload="credits:5:99999:1:1"), ann.client.id)

    await ann.sees(page("topup.strange"))
    assert await ann.available() == 0
    assert [line.action for line in await world.store.audit(5)] == ["strange payment"]
