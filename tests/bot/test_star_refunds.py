"""Operators refund Stars by receipt and by button, each once."""

import pytest

from genlock.domain.errors import ChannelOutcomeUnknown
from genlock.domain.payment import PaymentState
from genlock.sandbox.telegram.faults import Fault
from tests.bot.conftest import Office
from tests.bot.pages import label, page
from tests.bot.steps import bought


async def test_stars_are_refunded_by_their_receipt(office: Office) -> None:
    world, boss, ann = office
    charge = await bought(ann)
    await boss.write(f"/admin stars {charge}")
    await boss.tap(label("admin_ask.stars_yes", stars=100))
    await boss.sees(page("admin.stars_refunded", stars=100, credits="120\u00a0credits"))
    await ann.sees(page("topup.refunded", stars=100))
    await boss.write(f"/admin stars {charge}")
    await boss.sees(page("admin.refund_done_before"))

    assert await ann.available() == 10_000
    assert world.intake.failures == []


async def test_stars_are_refunded_by_a_button_after_a_question(office: Office) -> None:
    _, boss, ann = office
    charge = await bought(ann)
    await boss.write(f"/admin user {ann.number}")
    card = boss.screen
    await boss.tap(label("admin.button_payments"), on=card)
    assert charge in card.text
    await boss.tap(label("admin.payment_row", stars=100), on=card)
    assert page("admin_ask.stars", stars=100, name="Ann")(card)
    assert await ann.available() == 130_000
    await boss.tap(label("admin_ask.stars_yes", stars=100), on=card)
    assert await boss.sees(page("admin.stars_refunded", stars=100)) == card
    assert not any("↩️" in button["text"] for button in card.buttons)

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
    assert "100\u00a0⭐ · Ann · requested " in overview.text
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
