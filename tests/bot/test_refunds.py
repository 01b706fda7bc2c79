"""Refunds: the credits are taken once and the Stars returned once, whatever crashes or happens in between."""

import pytest

from genlock.domain.errors import AccountNotFound, ActionNotAllowed, ChannelOutcomeUnknown, LevelRefused, StoreError
from genlock.domain.money import EntryKind
from genlock.domain.payment import Payment, PaymentState
from genlock.sandbox.telegram.faults import Fault as Trouble
from tests.bot.steps import bought
from tests.bot.world import BotWorld


async def test_stars_go_back_only_while_the_credits_are_there(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    stars = ann.client.user.stars
    payments = world.bot._payments._refunds
    await world.store.transfer(ann.number, EntryKind.DEBIT, 1000, "spent", "spent")
    with pytest.raises(ActionNotAllowed, match="119 of 120"):
        await payments.refund(charge, "op")
    await world.store.transfer(ann.number, EntryKind.GRANT, 1000, "back", "back")
    await payments.refund(charge, "op")

    assert ann.client.user.stars == stars + 100
    assert await ann.available() == 0
    with pytest.raises(ActionNotAllowed, match="refunded already"):
        await payments.refund(charge, "op")
    payment = await world.store.payment(charge)
    assert payment is not None
    assert payment.state is PaymentState.REFUNDED
    assert await world.bot.reconcile() == 0
    assert await world.store.violations(settled=False) == []


async def test_a_refund_whose_answer_was_lost_is_gone_on_with(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    stars = ann.client.user.stars
    world.intake.drop_next("refunded_payment")
    world.telegram.faults.once(Trouble.DROP_AFTER, method="refundStarPayment")
    with pytest.raises(ChannelOutcomeUnknown):
        await world.bot._payments._refunds.refund(charge, "op")
    assert await ann.available() == 0
    await world.bot._payments._refunds.refund(charge, "op")

    assert ann.client.user.stars == stars + 100
    assert await ann.available() == 0


async def test_a_refund_whose_answer_was_lost_is_confirmed_by_telegrams_message(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    world.telegram.faults.once(Trouble.DROP_AFTER, method="refundStarPayment")
    async with world.done():
        with pytest.raises(ChannelOutcomeUnknown):
            await world.bot._payments._refunds.refund(charge, "op")

    assert (await paid(world, charge)).state is PaymentState.REFUNDED
    assert await ann.available() == 0
    assert [(line.actor, line.detail) for line in await world.store.audit(5)] == [("op", "100 ⭐")]
    assert await world.store.kv_list("chat:refund:", world.bot_id) == []


async def test_two_refunds_of_one_charge_take_and_give_once(world: BotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    payments, real = world.bot._payments._refunds, world.store.payment
    stale = [await real(charge)]

    async def refused(*_: object) -> None:
        raise LevelRefused("BOT_BALANCE_TOO_LOW")

    async def read(which: str) -> Payment | None:
        return stale.pop() if stale else await real(which)

    monkeypatch.setattr(payments._service, "refund", refused)
    with pytest.raises(ActionNotAllowed, match="TOO_LOW"):
        await payments.refund(charge, "one")  # while another one has just looked at the payment
    monkeypatch.setattr(world.store, "payment", read)
    with pytest.raises(ActionNotAllowed, match="TOO_LOW"):
        await payments.refund(charge, "two")

    assert await ann.available() == 120_000
    now = await real(charge)
    assert now is not None
    assert (now.state, now.refunds) == (PaymentState.PAID, 2)
    assert await world.store.kv_list("chat:refund:", world.bot_id) == []


async def test_an_old_refusal_does_not_undo_a_newer_refund(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    store = world.store
    begun = await store.begin_refund(charge, "one")
    assert begun is not None
    assert await store.undo_refund(charge, begun.refunds, "refused")
    newer = await store.begin_refund(charge, "two")
    assert not await store.undo_refund(charge, begun.refunds, "refused")

    assert (await paid(world, charge)).state is PaymentState.REFUNDING
    assert newer is not None
    assert newer.refunds == 2
    assert await ann.available() == 0


async def test_a_refund_continues_although_the_open_ones_were_listed_when_it_began(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    payments, begin = world.bot._payments._refunds, world.store.begin_refund

    async def looked_at(charge: str, reason: str) -> Payment | None:
        monkeypatch.setattr(world.store, "begin_refund", begin)
        await payments.resume(0.0)
        return await begin(charge, reason)

    monkeypatch.setattr(world.store, "begin_refund", looked_at)
    world.telegram.faults.once(Trouble.DROP_BEFORE, method="refundStarPayment")
    with pytest.raises(ChannelOutcomeUnknown):
        await payments.refund(charge, "op")
    await payments.resume(0.0)

    assert (await paid(world, charge)).state is PaymentState.REFUNDED
    assert await world.store.kv_list("chat:refund:", world.bot_id) == []


async def test_a_refund_that_lost_its_mark_when_both_sides_crashed_is_finished(world: BotWorld) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    assert await world.store.begin_refund(charge, "refund by op") is not None

    await world.bot._payments._refunds.resume(0.0)

    assert (await paid(world, charge)).state is PaymentState.REFUNDED
    assert await ann.available() == 0
    assert await world.store.violations(settled=False) == []


async def test_a_refund_that_began_while_its_mark_was_taken_away_is_still_marked(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    payments, drop = world.bot._payments._refunds, world.store.kv_delete
    await world.store.kv_put_if_absent(
        f"chat:refund:{charge}", "op", world.bot_id
    )  # of a try that died before it began

    async def begun_before(key: str, bot: str) -> None:
        monkeypatch.setattr(world.store, "kv_delete", drop)
        world.telegram.faults.once(Trouble.DROP_BEFORE, method="refundStarPayment")
        with pytest.raises(ChannelOutcomeUnknown):
            await payments.refund(charge, "op")
        await drop(key, bot)

    monkeypatch.setattr(world.store, "kv_delete", begun_before)
    await payments.resume(0.0)

    assert [fact.value for fact in await world.store.kv_list("chat:refund:", world.bot_id)] == ["op"]


async def test_a_refusal_whose_instance_died_before_the_credits_came_back_is_asked_again(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    stars = ann.client.user.stars
    payments = world.bot._payments._refunds

    async def refused(*_: object) -> None:
        raise LevelRefused("BOT_BALANCE_TOO_LOW")

    async def dead(*_: object) -> bool:
        raise StoreError("the instance is gone")

    with monkeypatch.context() as then:
        then.setattr(payments._service, "refund", refused)
        then.setattr(world.store, "undo_refund", dead)
        with pytest.raises(StoreError):
            await payments.refund(charge, "op")
    assert await ann.available() == 0
    await payments.resume(0.0)  # by now Telegram takes it

    assert (await paid(world, charge)).state is PaymentState.REFUNDED
    assert (await ann.available(), ann.client.user.stars) == (0, stars + 100)


async def paid(world: BotWorld, charge: str) -> Payment:
    payment = await world.store.payment(charge)
    assert payment is not None
    return payment


async def test_a_refund_whose_answer_was_lost_is_ended_with_the_next_look_at_telegrams_list(
    world: BotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await world.add_user(having=0)
    charge = await bought(ann)
    stars = ann.client.user.stars
    await world.bot.reconcile()
    world.telegram.faults.once(Trouble.DROP_BEFORE, method="refundStarPayment")
    with pytest.raises(ChannelOutcomeUnknown):
        await world.bot._payments._refunds.refund(charge, "op")
    await world.bot.reconcile()
    assert (await paid(world, charge)).state is PaymentState.REFUNDING  # it is young, and may still be on the wire
    monkeypatch.setattr("genlock.bot.money.payments.RESUME_SECONDS", 0.0)
    await world.bot.reconcile()

    assert (await paid(world, charge)).state is PaymentState.REFUNDED
    assert ann.client.user.stars == stars + 100
    assert await ann.available() == 0
    assert [line.detail for line in await world.store.audit(5)] == ["100 ⭐"]
    assert await world.store.kv_list("chat:refund:", world.bot_id) == []


async def test_whom_we_cannot_pay_keeps_the_credits(world: BotWorld) -> None:
    account = await world.store.ensure_account("telegram", str(world.caller.bot.id), "77")  # known by a payment only
    await world.store.transfer(account, EntryKind.TOPUP, 120_000, "stars:c77", "100 stars")
    await world.store.add_payment("c77", account, 100, 120_000)
    with pytest.raises(AccountNotFound):
        await world.bot._payments._refunds.refund("c77", "op")

    assert (await world.store.wallet(account)).available == 120_000
    assert (await paid(world, "c77")).state is PaymentState.PAID
