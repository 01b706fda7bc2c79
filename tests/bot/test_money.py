"""Money in the chat: the price before, the shortfall, stars, gifts, free runs; each happens once."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from telegram import LabeledPrice

from genlock.bot.buttons import base36, button
from genlock.bot.rules import ShopRules
from genlock.bot.tongue import tongue
from genlock.domain.catalog import Catalog
from genlock.domain.chat import Payment, PaymentState, Promo
from genlock.domain.errors import ChannelUnknown, LevelRefused, NoSuchPerson, NotPossible, StoreError
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job
from genlock.domain.money import Kind
from genlock.domain.tariff import PriceRow
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.telegram.faults import Fault as Trouble
from tests.bot.world import CATALOG, PACKAGES, Customer, Town, die_once, sqlite_url, town

OPEN = ShopRules(packages=PACKAGES, per_minute=1000, per_hour=10_000, running_max=1000)


async def bought(ann: Customer, stars: int = 100) -> str:
    """Buy a package; gives the receipt."""
    await ann.say("/topup")
    await ann.tap(f"⭐ {stars} →")
    bill = await ann.sees(lambda message: message.kind == "invoice")
    async with ann.town.done(2):  # the question before, and the payment
        payment = await ann.hands.pay(bill)
    assert payment.ok, payment
    return str(payment.charge_id)


async def test_too_little_money_is_told_exactly_and_a_top_up_leads_back_to_the_order(database_url: str) -> None:
    async with town(database_url, rules=OPEN) as here:
        ann = await here.person(having=10)
        await ann.say("/models Kling 3.0")
        await ann.tap("Kling 3.0 ·")
        await ann.say("a storm")
        await ann.tap("Defaults for the rest")
        short = await ann.sees("Missing: 80 credits")
        assert "Balance: 10 credits" in short.text
        assert not any("Generate" in one["text"] for one in short.buttons)
        await ann.tap("Top up")
        await ann.sees("Missing for your order: 80 credits")
        assert "✅ is enough for your order" in ann.screen.text
        await ann.tap("Back")
        await ann.sees("Missing: 80 credits")
        await ann.tap("Top up")
        await ann.tap("⭐ 100 →")
        bill = await ann.sees(lambda message: message.kind == "invoice")
        async with here.done(2):
            await ann.hands.pay(bill)
        await ann.sees("Thank you! Credited: 120 credits")
        await ann.sees("Now your order can go on")
        await ann.tap("Generate · 90 credits")
        await ann.sees("Generation complete")

        assert await ann.available() == 40_000
        assert await here.store.violations(settled=False) == []


async def test_the_balance_tells_what_moved_in_plain_words(here: Town) -> None:
    ann = await here.person(having=50)
    await bought(ann)
    await ann.say("/gen z-image a fox")
    await ann.sees("Generation complete")
    await here.store.transfer(ann.number, Kind.REFUND, 800, "refund:1", "order 1 refunded")
    await here.store.transfer(ann.number, Kind.GRANT, 2500, "admin:7", "for the trouble")
    await here.store.transfer(ann.number, Kind.DEBIT, 500, "admin:8", "too much")
    await ann.say("/balance")
    shown = (await ann.sees("Your balance: 172 credits")).text.splitlines()
    today = tongue("en").day(await here.store.clock())

    assert shown[-7:] == [
        today,
        "\N{MINUS SIGN}0.5 · taken off by support",
        "+2.5 · added by support",
        "+0.8 · refund for order #1",
        "\N{MINUS SIGN}0.8 · order #1",
        "+120 · top-up with stars",
        "+50 · gift",
    ]


async def test_packages_that_are_enough_for_the_order_are_marked(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, markup=6.0)) as here:
        ann = await here.person(having=10)
        await ann.say("/gen kling-3.0/video a storm")
        await ann.tap("Top up")
        await ann.sees("⚠️ Missing for your order: 260 credits")

        assert [one["text"] for one in ann.screen.buttons][:2] == [
            "⭐ 100 → 120 credits",
            "✅ ⭐ 500 → 650 credits",
        ]


@pytest.mark.parametrize(
    ("inviter", "invited", "told"),
    [
        (7000, 3000, "You get 7 credits and your friend gets 3 credits as soon as"),
        (7000, 0, "You get 7 credits as soon as your friend"),
        (0, 3000, "Your friend gets 3 credits as soon as"),
        (0, 0, "Send your friends here"),
    ],
)
async def test_an_invitation_promises_what_it_brings(tmp_path: Path, inviter: int, invited: int, told: str) -> None:
    rules = replace(OPEN, reward_inviter=inviter, reward_invited=invited)
    async with town(sqlite_url(tmp_path), rules=rules) as here:
        ann = await here.person()
        await ann.say("/invite")
        page = await ann.sees("Your link:")

        assert told in page.text
        assert " 0 credits" not in page.text
        assert page.buttons[0]["url"].startswith(
            "https://t.me/share/url?url=https%3A%2F%2Ft.me%2Fsandbox_bot%3Fstart%3Dr"
        )


async def test_free_runs_are_told_where_there_is_something_free(tmp_path: Path) -> None:
    gift = Promo(code="THREERUNS", amount=0, runs=3, uses_max=None, per_person=1, until=None)
    rules = replace(OPEN, free_per_day=2)
    async with town(sqlite_url(tmp_path), rules=rules, catalog=with_free("z-image")) as here:
        ann = await here.person()
        await ann.say("/balance")
        assert "Free runs left today: 2" in ann.screen.text
        await here.store.make_promo(gift, lasting=None, author="op")
        await ann.say("/promo threeruns")
        assert "Free runs left: 5" in ann.screen.text, "those that were given do not end with the day"
    async with town(sqlite_url(tmp_path), rules=rules) as here:
        ann = await here.person("Bob")
        await ann.say("/balance")
        assert "Free runs" not in ann.screen.text


async def test_a_payment_is_credited_once_however_often_it_is_told(database_url: str) -> None:
    async with town(database_url, rules=OPEN) as here:
        ann = await here.person(having=0)
        charge = await bought(ann)
        assert await ann.available() == 120_000
        assert await asyncio.gather(*(here.bot.reconcile() for _ in range(5))) == [0] * 5
        assert await ann.available() == 120_000
        payment = await here.store.payment(charge)
        assert payment is not None
        assert (payment.stars, payment.amount) == (100, 120_000)


async def test_a_payment_whose_message_was_lost_is_found_in_telegrams_list(database_url: str) -> None:
    async with town(database_url, rules=OPEN) as here:
        ann = await here.person(having=0)
        await ann.say("/topup")
        await ann.tap("⭐ 500 →")
        bill = await ann.sees(lambda message: message.kind == "invoice")
        here.postman.lose("successful_payment")
        async with here.done():
            await ann.hands.pay(bill)
        assert await ann.available() == 0
        assert await here.bot.reconcile() == 1
        assert await ann.available() == 650_000
        await ann.sees("Thank you! Credited: 650 credits")
        assert await here.bot.reconcile() == 0


async def test_stars_go_back_only_while_the_credits_are_there(here: Town) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    stars = ann.hands.user.stars
    payments = here.bot._payments
    await here.store.transfer(ann.number, Kind.DEBIT, 1000, "spent", "spent")
    with pytest.raises(NotPossible, match="119 of 120"):
        await payments.refund(charge, "op")
    await here.store.transfer(ann.number, Kind.GRANT, 1000, "back", "back")
    await payments.refund(charge, "op")

    assert ann.hands.user.stars == stars + 100
    assert await ann.available() == 0
    with pytest.raises(NotPossible, match="refunded already"):
        await payments.refund(charge, "op")
    payment = await here.store.payment(charge)
    assert payment is not None
    assert payment.state is PaymentState.REFUNDED
    assert await here.bot.reconcile() == 0
    assert await here.store.violations(settled=False) == []


async def test_a_refund_whose_answer_was_lost_is_gone_on_with(here: Town) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    stars = ann.hands.user.stars
    here.telegram.faults.once(Trouble.DROP_AFTER, method="refundStarPayment")
    with pytest.raises(ChannelUnknown):
        await here.bot._payments.refund(charge, "op")
    assert await ann.available() == 0
    await here.bot._payments.refund(charge, "op")

    assert ann.hands.user.stars == stars + 100
    assert await ann.available() == 0


async def test_two_refunds_of_one_charge_take_and_give_once(here: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    payments, real = here.bot._payments, here.store.payment
    stale = [await real(charge)]

    async def refused(*_: object) -> None:
        raise LevelRefused("BOT_BALANCE_TOO_LOW")

    async def read(which: str) -> Payment | None:
        return stale.pop() if stale else await real(which)

    monkeypatch.setattr(payments, "_give_back", refused)
    with pytest.raises(NotPossible, match="TOO_LOW"):
        await payments.refund(charge, "one")  # while another one has just looked at the payment
    monkeypatch.setattr(here.store, "payment", read)
    with pytest.raises(NotPossible, match="TOO_LOW"):
        await payments.refund(charge, "two")

    assert await ann.available() == 120_000
    now = await real(charge)
    assert now is not None
    assert (now.state, now.refunds) == (PaymentState.PAID, 2)
    assert await here.store.facts("chat:refund:") == []


async def test_an_old_refusal_does_not_undo_a_newer_refund(here: Town) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    payments = here.bot._payments
    begun = await payments._take_back(await paid(here, charge), "one")
    await payments._undo(begun)
    newer = await payments._take_back(await paid(here, charge), "two")
    await payments._undo(begun)

    assert (await paid(here, charge)).state is PaymentState.REFUNDING
    assert newer.refunds == 2
    assert await ann.available() == 0


async def test_a_refund_is_gone_on_with_though_somebody_looked_at_the_open_ones_when_it_began(
    here: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    payments, move = here.bot._payments, here.store.move_payment

    async def looked_at(*arguments: Any) -> int | None:
        monkeypatch.setattr(here.store, "move_payment", move)
        await payments.go_on_refunding(0.0)
        return await move(*arguments)

    monkeypatch.setattr(here.store, "move_payment", looked_at)
    here.telegram.faults.once(Trouble.DROP_BEFORE, method="refundStarPayment")
    with pytest.raises(ChannelUnknown):
        await payments.refund(charge, "op")
    await payments.go_on_refunding(0.0)

    assert (await paid(here, charge)).state is PaymentState.REFUNDED
    assert await here.store.facts("chat:refund:") == []


async def test_a_refund_that_began_while_its_mark_was_taken_away_is_still_marked(
    here: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    payments, drop = here.bot._payments, here.store.drop_fact
    await here.store.keep_fact(f"chat:refund:{charge}", "op")  # of a try that died before it began

    async def begun_before(key: str) -> None:
        monkeypatch.setattr(here.store, "drop_fact", drop)
        here.telegram.faults.once(Trouble.DROP_BEFORE, method="refundStarPayment")
        with pytest.raises(ChannelUnknown):
            await payments.refund(charge, "op")
        await drop(key)

    monkeypatch.setattr(here.store, "drop_fact", begun_before)
    await payments.go_on_refunding(0.0)

    assert [fact.value for fact in await here.store.facts("chat:refund:")] == ["op"]


async def test_a_refusal_that_died_half_undone_does_not_give_credits_and_stars(
    here: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    stars = ann.hands.user.stars
    payments, give, move = here.bot._payments, here.bot._payments._give_back, here.store.move_payment

    async def refused(*_: object) -> None:
        raise LevelRefused("BOT_BALANCE_TOO_LOW")

    async def dead_at_the_end(charge: str, before: PaymentState, state: PaymentState, *more: Any) -> int | None:
        if state is PaymentState.PAID:
            raise StoreError("the instance is gone")
        return await move(charge, before, state, *more)

    with monkeypatch.context() as then:
        then.setattr(payments, "_give_back", refused)
        then.setattr(here.store, "move_payment", dead_at_the_end)
        with pytest.raises(StoreError):
            await payments.refund(charge, "op")
    assert payments._give_back == give
    assert await ann.available() == 120_000
    await payments.go_on_refunding(0.0)  # by now Telegram would take it

    assert (await paid(here, charge)).state is PaymentState.PAID
    assert (await ann.available(), ann.hands.user.stars) == (120_000, stars)
    await payments.refund(charge, "op")

    assert (await paid(here, charge)).state is PaymentState.REFUNDED
    assert (await ann.available(), ann.hands.user.stars) == (0, stars + 100)


async def paid(here: Town, charge: str) -> Payment:
    payment = await here.store.payment(charge)
    assert payment is not None
    return payment


async def test_a_refund_that_outlives_one_without_credits_takes_them_once(
    here: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two operators at one charge: the first finds too little, the second finds what has come since."""
    ann = await here.person(having=0)
    charge = await bought(ann)
    stars = ann.hands.user.stars
    payments, transfer = here.bot._payments, here.store.transfer
    await transfer(ann.number, Kind.DEBIT, 50_000, "spent")
    waiting, go = asyncio.Event(), asyncio.Event()

    async def slow(person: int, kind: Kind, amount: int, key: str, reason: str = "") -> bool:
        if reason.endswith("by the second"):
            waiting.set()
            await go.wait()
        return await transfer(person, kind, amount, key, reason)

    monkeypatch.setattr(here.store, "transfer", slow)
    second = asyncio.create_task(payments.refund(charge, "the second"))
    await waiting.wait()
    with pytest.raises(NotPossible):
        await payments.refund(charge, "the first")
    await transfer(ann.number, Kind.GRANT, 350_000, "more")
    go.set()
    await second
    await payments.refund(charge, "a third")

    assert (await paid(here, charge)).state is PaymentState.REFUNDED
    assert (await ann.available(), ann.hands.user.stars) == (300_000, stars + 100)


async def test_a_refund_that_died_before_the_credits_were_taken_takes_them(here: Town) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    await here.store.move_payment(charge, PaymentState.PAID, PaymentState.REFUNDING)
    await here.bot._payments.refund(charge, "op")

    assert (await paid(here, charge)).state is PaymentState.REFUNDED
    assert await ann.available() == 0


async def test_a_refund_whose_answer_was_lost_is_ended_with_the_next_look_at_telegrams_list(
    here: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    stars = ann.hands.user.stars
    await here.bot.reconcile()
    here.telegram.faults.once(Trouble.DROP_BEFORE, method="refundStarPayment")
    with pytest.raises(ChannelUnknown):
        await here.bot._payments.refund(charge, "op")
    await here.bot.reconcile()
    assert (await paid(here, charge)).state is PaymentState.REFUNDING  # it is young, and may still be on the wire
    monkeypatch.setattr("genlock.bot.payments.REFUND_SECONDS", 0.0)
    await here.bot.reconcile()

    assert (await paid(here, charge)).state is PaymentState.REFUNDED
    assert ann.hands.user.stars == stars + 100
    assert await ann.available() == 0
    assert [line.detail for line in await here.store.audit(5)] == ["100 ⭐"]
    assert await here.store.facts("chat:refund:") == []


async def test_whom_we_cannot_pay_keeps_the_credits(here: Town) -> None:
    person = await here.store.person("telegram", str(here.caller.bot.id), "77")  # known by a payment only
    await here.store.transfer(person, Kind.TOPUP, 120_000, "stars:c77", "100 stars")
    await here.store.keep_payment("c77", person, 100, 120_000)
    with pytest.raises(NoSuchPerson):
        await here.bot._payments.refund("c77", "op")

    assert (await here.store.wallet(person)).available == 120_000
    assert (await paid(here, "c77")).state is PaymentState.PAID


async def test_each_bot_has_its_own_place_in_telegrams_list(here: Town) -> None:
    await here.store.set_fact("chat:stars", "1")
    await here.store.set_fact("chat:stars:999", "50")  # another bot's
    ann = await here.person(having=0)
    charges = [await bought(ann), await bought(ann)]
    await here.caller.bot.refund_star_payment(ann.hands.id, charges[1])

    assert await here.bot.reconcile() == 1
    mine = await here.store.fact(f"chat:stars:{here.caller.bot.id}")
    assert mine is not None
    assert mine.value == "3"
    assert await here.store.fact("chat:stars") is None


async def test_a_payment_found_in_telegrams_list_first_is_thanked_for_once(here: Town) -> None:
    ann = await here.person(having=0)
    await ann.say("/topup")
    await ann.tap("⭐ 100 →")
    bill = await ann.sees(lambda message: message.kind == "invoice")
    here.postman.lose("successful_payment")
    async with here.done():
        await ann.hands.pay(bill)
    assert await here.bot.reconcile() == 1
    await ann.sees("Thank you!")
    async with here.done():
        here.postman._put(here.postman.lost[0])

    assert len([one for one in ann.from_bot if "Thank you!" in one.text]) == 1
    assert await ann.available() == 120_000


async def test_a_refund_made_elsewhere_takes_the_credits(here: Town) -> None:
    ann = await here.person(having=0)
    charge = await bought(ann)
    await here.caller.bot.refund_star_payment(ann.hands.id, charge)
    assert await here.bot.reconcile() == 1

    assert await ann.available() == 0
    payment = await here.store.payment(charge)
    assert payment is not None
    assert payment.state is PaymentState.REFUNDED


async def test_newcomers_are_welcomed_with_credit_once(database_url: str) -> None:
    async with town(database_url, rules=replace(OPEN, welcome=5000)) as here:
        ann = await here.person(having=0)
        await ann.say("/start")
        await ann.sees("A gift to begin with: 5 credits")
        await ann.say("/start")
        bob = await here.person("Bob", having=0)
        await bob.say("a fox")

        assert await ann.available() == 5000
        assert await bob.available() == 5000


async def test_a_newcomers_credit_is_not_lost_in_a_crash(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, welcome=5000)) as here:
        here.postman.patient = True
        ann = await here.person(having=0)
        die_once(here.store, "see_profile", after=True)
        await ann.say("a fox")

        assert await ann.available() == 5000


def with_free(*ids: str) -> Catalog:
    return Catalog(models={name: replace(model, free=name in ids) for name, model in CATALOG.models.items()})


async def test_models_marked_free_are_free_so_often_a_day(database_url: str) -> None:
    async with town(database_url, rules=replace(OPEN, free_per_day=2), catalog=with_free("z-image")) as here:
        ann = await here.person(having=1)
        for number in range(2):
            await ann.say(f"fox {number}")
            await ann.sees("Price: free")
            await ann.tap("Generate · free")
            await ann.sees(f"#{number + 1} · free")
        assert await ann.available() == 1000
        await ann.say("fox 3")
        await ann.sees("Price: 0.8 credits")
        assert await here.store.violations(settled=False) == []


async def test_a_free_run_that_failed_is_not_lost(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, free_per_day=1), catalog=with_free("z-image")) as here:
        ann = await here.person(having=0)
        here.kie.faults.order(Fault.TASK_FAIL)
        await ann.say("a fox")
        await ann.tap("Generate · free")
        await ann.sees("did not work out")
        await ann.say("a fox")
        await ann.tap("Generate · free")
        await ann.sees("Generation complete")


async def test_an_invitation_is_rewarded_after_the_first_result_and_money_of_the_guests_own(database_url: str) -> None:
    rules = replace(OPEN, reward_inviter=7000, reward_invited=3000)
    async with town(database_url, rules=rules) as here:
        ann = await here.person("Ann", having=0)
        await ann.say("/invite")
        page = await ann.sees("Your link:")
        payload = page.text.rpartition("start=")[2]
        bob = await here.person("Bob", having=10)
        await bob.say(f"/start {payload}")
        await bob.say("/start")
        assert await here.bot.reward() == 0
        await bob.say("/gen z-image a fox")
        await bob.sees("Generation complete")
        assert await here.bot.reward() == 0  # what gifts have paid for brings no gifts
        await bought(bob)
        await asyncio.gather(*(here.bot.reward() for _ in range(5)))

        assert await ann.available() == 7000
        assert await bob.available() == 10_000 - 800 + 120_000 + 3000
        await ann.sees("7 credits for you!")
        await bob.sees("3 credits for you,")
        assert len([message for message in ann.from_bot if "for you!" in message.text]) == 1
        assert await here.bot.reward() == 0


async def test_nobody_invites_themselves_or_those_who_were_here(here: Town) -> None:
    ann, bob = await here.person("Ann"), await here.person("Bob")
    await ann.say("/start")
    await bob.say("/start")
    cid, dora = await here.person("Cid"), await here.person("Dora")
    for guest, host in ((ann, bob), (bob, ann), (cid, cid), (dora, ann)):
        await guest.say(f"/start r{base36(host.number)}")

    people = (ann, bob, cid, dora)
    assert [(await here.store.profile(one.number)).referred_by for one in people] == [None, None, None, ann.number]


async def test_a_bill_above_what_the_price_was_made_from_is_told_to_the_operator(here: Town) -> None:
    ann = await here.person()
    await ann.say("/gen z-image a fox")
    await ann.sees("Generation complete")
    assert here.recorder.of(Event.COST_ABOVE) == []
    dear = replace(here.catalog.get("z-image"), prices=(PriceRow(credits=Decimal(5)),))
    here.kie.shop.catalog = Catalog(models={**here.catalog.models, "z-image": dear})
    await ann.say("/gen z-image a fox")
    await ann.sees(lambda message: "#2" in message.text and "complete" in message.text)

    assert len(here.recorder.of(Event.COST_ABOVE, cost=5000, paid_for=800)) == 1


async def test_promo_codes_cannot_be_guessed(database_url: str) -> None:
    async with town(database_url, rules=OPEN) as here:
        await here.store.make_promo(
            Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_person=1, until=None),
            lasting=None,
            author="op",
        )
        ann, bob = await here.person("Ann", having=0), await here.person("Bob", language="ru", having=0)
        for number in range(10):
            await ann.say(f"/promo guess{number}")
            assert "There is no such promo code" in ann.screen.text
        for guess in ("/promo secret", "/start p_SECRET"):
            await ann.say(guess)
            assert "You can try another in " in ann.screen.text
        assert await ann.available() == 0
        await bob.say("/promo secret")

        assert await bob.available() == 5000


async def test_a_promo_code_whose_instance_died_before_its_credit_is_credited_though_no_more_may_be_tried(
    database_url: str,
) -> None:
    async with town(database_url, rules=OPEN) as here:
        here.postman.patient = True
        await here.store.make_promo(
            Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_person=1, until=None),
            lasting=None,
            author="op",
        )
        ann = await here.person(having=0)
        for number in range(9):
            await ann.say(f"/promo guess{number}")
        die_once(here.store, "use_promo", after=True)
        await ann.say("/promo secret")
        await ann.sees("Added to your balance: 5 credits!")
        await ann.say("/promo secret")

        assert "You can try another in " in ann.screen.text
        assert await ann.available() == 5000


async def test_a_guess_that_was_refused_is_not_made_when_its_update_is_tried_again(here: Town) -> None:
    here.postman.patient = True
    await here.store.make_promo(
        Promo(code="SECRET", amount=5000, runs=0, uses_max=None, per_person=1, until=None), lasting=None, author="op"
    )
    ann = await here.person(having=0)
    for number in range(10):
        await ann.say(f"/promo guess{number}")
    die_once(here.bot._desk, "show_draft", after=False)
    await ann.say("/promo secret")

    assert "You can try another in " in ann.screen.text
    assert await ann.available() == 0


async def test_promo_codes_give_credits_or_runs_and_say_why_not(here: Town) -> None:
    ann = await here.person(having=0)
    await here.store.make_promo(
        Promo(code="CAT", amount=5000, runs=0, uses_max=1, per_person=1, until=None), lasting=None, author="op"
    )
    await here.store.make_promo(
        Promo(code="RUNS", amount=0, runs=3, uses_max=None, per_person=1, until=None), lasting=None, author="op"
    )
    await ann.say("/promo cat")
    await ann.sees("Added to your balance: 5 credits!")
    await ann.say("/promo CAT")
    await ann.sees("You have used this promo code already")
    await ann.say("/balance")
    await ann.sees("+5 · promo code")
    await ann.tap("Promo code")
    await ann.sees("Write your promo code")
    await ann.say("dog")
    await ann.sees("There is no such promo code")
    await ann.say("runs")
    await ann.sees("A gift: 3 free runs!")
    bob = await here.person("Bob", having=0)
    await bob.say("/start p_CAT")
    await bob.sees("There is no such promo code, or it is over")

    assert await ann.available() == 5000


async def test_a_dearer_price_is_confirmed_anew(here: Town) -> None:
    ann = await here.person()
    await ann.say("a fox")
    await ann.sees("Price: 0.8 credits")
    here.bot._desk.shop._markup = 4.0
    await ann.tap("Generate")
    await ann.sees("The price has changed since you looked")
    assert await here.jobs(ann) == []
    await ann.tap("Generate · 1.6 credits")
    await ann.sees("Generation complete")


async def test_the_question_before_a_payment_is_answered_though_the_store_hangs(here: Town) -> None:
    ann = await here.person(having=0)
    await ann.say("/topup")
    await ann.tap("⭐ 100 →")
    bill = await ann.sees(lambda message: message.kind == "invoice")
    one, hung = here.store.one, asyncio.Event()  # type: ignore[attr-defined]

    async def hang(name: str, /, **params: object) -> object:
        await hung.wait()
        return await one(name, **params)

    here.store.one = hang  # type: ignore[attr-defined]
    async with asyncio.timeout(5):
        payment = await ann.hands.pay(bill)
    assert payment.ok
    here.store.one = one  # type: ignore[attr-defined]
    hung.set()
    await ann.sees("Thank you!")

    assert await ann.available() == 120_000


async def test_a_bill_that_is_not_ours_is_refused(here: Town) -> None:
    ann = await here.person(having=0)
    await ann.say("/start")
    sent = await here.caller.bot.send_invoice(
        ann.hands.id, title="x", description="x", payload="credits:1:99999", provider_token="", currency="XTR",
        prices=[LabeledPrice("x", 5)],
    )  # fmt: skip
    async with here.done():
        payment = await ann.hands.pay(sent.message_id)

    assert not payment.ok
    assert await ann.available() == 0


async def lost(ann: Customer, job: Job) -> None:
    """The person blocks the bot and removes the message before the result is there."""
    async with ann.town.done():
        await ann.hands.block()
    await ann.hands.delete(int(str(job.placeholder)))
    async with asyncio.timeout(20):
        while True:
            now = await ann.town.store.job(job.id)
            if now is not None and now.delivery is Delivery.UNDELIVERABLE:
                break
            await asyncio.sleep(0.02)
    assert await ann.available() == 10_000
    async with ann.town.done():
        await ann.hands.unblock()


async def test_a_result_that_could_not_be_delivered_costs_its_price_when_it_is_shown_again(database_url: str) -> None:
    async with town(database_url, rules=OPEN, speed=4.0) as here:
        ann = await here.person(having=10)
        await ann.say("a fox")
        await ann.tap("Generate")
        job = (await here.jobs(ann))[0]
        await lost(ann, job)
        await ann.say("/history")
        again = str(button("x", "again", job.id).data)
        press = await ann.press(ann.screen, again)
        assert "gave the money back" in press.text
        await ann.sees("Generation complete")
        assert await ann.available() == 9_200
        await ann.press(ann.screen, again)  # it is theirs now
        await here.quiet()

        assert await ann.available() == 9_200
        assert await here.store.violations(settled=False) == []


async def test_who_cannot_pay_for_a_lost_result_is_told_how_much_is_missing(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=OPEN, speed=4.0) as here:
        ann = await here.person(having=10)
        await ann.say("a fox")
        await ann.tap("Generate")
        job = (await here.jobs(ann))[0]
        await lost(ann, job)
        await here.store.transfer(ann.number, Kind.DEBIT, 9_500, "spent elsewhere")
        await ann.say("/history")
        press = await ann.press(ann.screen, str(button("x", "again", job.id).data))

        assert "costs 0.8 credits now. Missing: 0.3 credits" in press.text
        assert (await here.store.job(job.id)).delivery is Delivery.UNDELIVERABLE  # type: ignore[union-attr]
        assert await ann.available() == 500
