"""Refunds that Telegram makes without us: the credits go, what was spent is owed, and the next top-up repays it."""

import asyncio

import pytest

from genlock.bot.money import payments
from genlock.domain.alarm import ALARMS
from genlock.domain.errors import StoreUnavailable
from genlock.domain.money import EntryKind
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.queued_message import QueuedMessage
from genlock.engine.reconciliation import PaymentDifferenceKind
from tests.bot.pages import label, page
from tests.bot.rules import OPEN
from tests.bot.steps import bought
from tests.bot.world import BotWorld, ChatUser, running_bot


async def refunded_by_telegram(ann: ChatUser, charge: str) -> None:
    """Telegram refunds a payment and posts its service message, which the bot handles."""
    async with ann.world.done():
        await ann.world.caller.bot.refund_star_payment(ann.client.id, charge)


async def money(ann: ChatUser) -> tuple[int, int]:
    wallet = await ann.world.store.wallet(ann.number)
    return wallet.available, wallet.debt


async def spend(ann: ChatUser, amount: int, key: str = "spent") -> None:
    await ann.world.store.transfer(ann.number, EntryKind.DEBIT, amount, key)


async def test_a_refund_made_elsewhere_takes_the_credits_and_tells_the_user(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    await refunded_by_telegram(ann, charge)

    await ann.sees(page("topup.refunded_outside", stars=100, credits="120\u00a0credits"))
    assert await money(ann) == (0, 0)
    payment = await world.store.payment(charge)
    assert payment is not None
    assert payment.state is PaymentState.REFUNDED
    assert await world.bot.reconcile() == 0
    assert len([message for message in ann.from_bot if page("topup.refunded_outside")(message)]) == 1


async def test_credits_that_were_spent_before_the_refund_are_owed_and_repaid_by_the_next_top_up(
    database_url: str,
) -> None:
    async with running_bot(database_url, rules=OPEN) as world:
        ann = await world.add_user(having=0)
        charge = await bought(ann)
        await spend(ann, 70_000)
        await refunded_by_telegram(ann, charge)
        await ann.sees(page("topup.refunded_owing", stars=100, credits="50\u00a0credits", debt="70\u00a0credits"))
        assert await money(ann) == (0, 70_000)
        await ann.write("/balance")
        await ann.sees(page("balance.debt", credits="70\u00a0credits"))
        await bought(ann)
        await ann.sees(page("topup.repaid", credits="70\u00a0credits"))

        assert await money(ann) == (50_000, 0)
        assert await world.store.violations(settled=False) == []


async def test_a_gift_does_not_repay_the_debt(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    await spend(ann, 120_000)
    await refunded_by_telegram(ann, charge)
    await world.store.transfer(ann.number, EntryKind.GRANT, 5_000, "gift")

    assert await money(ann) == (5_000, 120_000)


async def test_a_refund_is_booked_once_by_message_and_by_list_in_either_order(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    for by_list_first in (True, False):
        charge = await bought(ann)
        world.intake.drop_next("refunded_payment")
        await world.caller.bot.refund_star_payment(ann.client.id, charge)
        message = await world.intake.next_dropped()
        if by_list_first:
            await world.bot.reconcile()
        async with world.done():
            await world.intake.receive(message)
        if not by_list_first:
            await world.bot.reconcile()

        assert await money(ann) == (0, 0), by_list_first
    assert len([answer for answer in ann.from_bot if page("topup.refunded_outside")(answer)]) == 2
    assert await world.store.violations(settled=False) == []


async def unreported_refund(world: BotWorld, ann: ChatUser) -> str:
    """Refund a payment outside; its message is lost, so that only Telegram's list tells of it."""
    charge = await bought(ann)
    world.intake.drop_next("refunded_payment")
    await world.caller.bot.refund_star_payment(ann.client.id, charge)
    await world.intake.next_dropped()
    return charge


async def test_a_stop_lets_the_message_about_a_refund_arrive_that_was_just_booked(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    await unreported_refund(world, ann)
    refunds, telling, go_on = world.bot._payments._refunds, asyncio.Event(), asyncio.Event()
    send = refunds._send_queued

    async def send_slowly(message: QueuedMessage) -> bool:
        telling.set()
        await go_on.wait()
        return await send(message)

    monkeypatch.setattr(refunds, "_send_queued", send_slowly)
    reconciling = asyncio.create_task(world.bot.reconcile())
    await telling.wait()
    reconciling.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    await asyncio.wait([reconciling])

    assert reconciling.cancelled()
    await ann.sees(page("topup.refunded_outside", stars=100, credits="120\u00a0credits"))


async def test_differences_of_a_run_that_fails_later_are_recorded(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    charge = await unreported_refund(world, ann)
    put = world.store.kv_put

    async def lose_connection_at_the_position(key: str, *values: str) -> None:
        await put(key, *values)
        if key == payments.POSITION:
            raise StoreUnavailable

    monkeypatch.setattr(world.store, "kv_put", lose_connection_at_the_position)
    with pytest.raises(StoreUnavailable):
        await world.bot.reconcile()

    record = await world.bot._payments.reconciliation.read()
    assert record is not None
    assert [(found.kind, found.charge) for found in record.differences] == [
        (PaymentDifferenceKind.EXTERNAL_REFUND, charge)
    ]


async def test_a_refund_that_is_known_before_its_payment_leaves_no_credits(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    await ann.write("/topup")
    await ann.tap(label("topup.package", stars=100))
    bill = await ann.sees(lambda message: message.kind == "invoice")
    world.intake.drop_next("successful_payment")
    async with world.done():
        payment = await ann.client.pay(bill)
    late = await world.intake.next_dropped()
    await refunded_by_telegram(ann, str(payment.charge_id))
    assert await money(ann) == (0, 0)
    async with world.done():
        await world.intake.receive(late)
    await world.bot.reconcile()

    assert await money(ann) == (0, 0)
    assert await world.store.violations(settled=False) == []


async def test_a_refund_during_an_order_leaves_nothing_to_spend_when_the_order_is_cancelled(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    await spend(ann, 119_200)
    world.kie.service.speed = 0.01
    await ann.write("/gen z-image a fox")
    assert await money(ann) == (0, 0)
    await refunded_by_telegram(ann, charge)
    [job] = await world.jobs(ann)
    assert await money(ann) == (0, 120_000)
    await world.engine.cancel(job.id, "op")

    assert await money(ann) == (0, 119_200)
    assert await world.store.violations(settled=False) == []


async def test_a_refund_of_ours_is_not_reported_as_one_from_outside(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    async with world.done():
        await world.bot._payments._refunds.refund(charge, "op")

    assert not any(page("topup.refunded_outside")(message) for message in ann.from_bot)
    assert (await world.store.stats())["external_refunds"] == 0
    assert await world.store.kv_list("chat:refund:", world.bot_id) == []


async def test_the_operators_get_an_alarm_and_an_audit_line(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    await spend(ann, 20_000)
    await refunded_by_telegram(ann, charge)
    stats = await world.store.stats()

    assert [alarm.name for alarm in ALARMS if alarm.check(stats)] == ["external_refund"]
    [line] = await world.store.audit(5)
    assert (line.action, line.subject) == ("refund by Telegram", charge)
    assert "100 credits deducted, 20 owed" in line.detail


async def test_an_instance_that_dies_before_it_tells_the_user_tells_on_the_next_attempt(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    refunds = world.bot._payments._refunds
    real, calls = refunds._report, []

    async def dies_once(payment: Payment) -> None:
        calls.append(payment)
        if len(calls) == 1:
            raise TimeoutError("the instance is gone")
        await real(payment)

    monkeypatch.setattr(refunds, "_report", dies_once)
    monkeypatch.setattr(world.intake, "failures", type("Ignored", (list,), {"append": lambda *_: None})())
    await refunded_by_telegram(ann, charge)

    await ann.sees(page("topup.refunded_outside"))
    assert await money(ann) == (0, 0)
