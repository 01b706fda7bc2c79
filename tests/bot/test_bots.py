"""Two bots on one database: each handles its own updates and sees its own users; a user is told at their address."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from genlock.channels.telegram.updates import read_update
from genlock.domain.broadcast import BroadcastState
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo
from genlock.domain.update import UpdateState
from genlock.i18n.translator import translator
from tests.bot.conftest import Office
from tests.bot.pages import label, page
from tests.bot.test_money import OPEN, bought
from tests.bot.world import Town, sqlite_url, town

EN = translator("en")

OTHER = "999"


async def account_of_another_bot(here: Town) -> int:
    """A user of another bot, with a profile, an address and credits."""
    account_id = await here.store.ensure_account("telegram", OTHER, "5005")
    await here.store.ensure_profile(account_id, language="en", name="Olga", username="olga", referred_by=None)
    await here.store.set_account_address(account_id, "5005/en")
    await here.store.transfer(account_id, EntryKind.GRANT, 10_000, "test:olga")
    return account_id


async def test_an_update_of_another_bot_is_not_answered_by_ours(here: Town) -> None:
    ann = await here.person()
    await ann.say("/start")
    before = len(ann.from_bot)
    user = {"id": ann.hands.id, "is_bot": False, "first_name": "Ann", "language_code": "en"}
    message = {"message_id": 900, "date": 1, "chat": {"id": ann.hands.id, "type": "private"}, "from": user}
    data = {"update_id": 700, "message": {**message, "text": "/balance"}}
    await here.intake.receive(read_update(OTHER, data, json.dumps(data)))
    await ann.say("/start")  # claimed and handled after the other bot's update was due
    await asyncio.sleep(0.3)

    waiting = await here.store.updates(state=UpdateState.NEW, limit=10)
    assert [(update.bot, update.attempts) for update in waiting] == [(OTHER, 0)]
    assert not any(page("balance.title")(one) for one in ann.from_bot[before:])


async def test_operators_see_and_change_accounts_of_their_own_bot_only(office: Office) -> None:
    here, boss, ann = office
    olga = await account_of_another_bot(here)
    for name in (str(olga), "5005", "@olga"):
        await boss.say(f"/admin credit {name} 5 gift")
        assert page("admin.no_person", word=name)(boss.from_bot[-1])
    await boss.say("/admin find Olga")
    assert page("admin.person_not_found", text="Olga")(boss.from_bot[-1])
    await boss.say(f"/admin credit {ann.number} 5 gift")

    assert (await here.store.wallet(olga)).available == 10_000
    assert await ann.available() == 15_000
    assert [line.subject for line in await here.store.audit(9, here.bot_id)] == [str(ann.number)]
    assert await here.store.audit(9, OTHER) == []


async def test_stars_of_another_bots_payment_are_not_refunded(office: Office) -> None:
    here, boss, _ = office
    olga = await account_of_another_bot(here)
    await here.store.add_payment("c1", olga, 100, 10_000)
    await boss.say("/admin stars c1")

    assert page("admin.no_payment")(boss.from_bot[-1])
    assert (await here.store.wallet(olga)).available == 10_000


async def test_maintenance_broadcasts_and_promo_codes_belong_to_a_bot(office: Office) -> None:
    here, boss, ann = office
    await account_of_another_bot(here)
    await here.store.kv_put("chat:maintenance", "Closed", OTHER)
    begun = await here.store.begin_broadcast("Theirs", bot=OTHER, author="1", request_key="k")
    theirs = Promo(code="THEIRS", amount=5000, runs=0, uses_max=None, per_account=1, until=None, bot=OTHER)
    await here.store.create_promo(theirs, lasting=None, author="1")
    here.bot._maintenance = (0.0, None)
    await ann.say("/balance")
    assert page("balance.title")(ann.screen)
    assert await here.bot.broadcast() == 0
    await boss.say("/admin stop")
    assert page("admin.broadcast_none")(boss.from_bot[-1])
    await boss.say("/admin close THEIRS")
    assert page("admin.no_promo", code="THEIRS")(boss.from_bot[-1])
    await ann.say("/promo THEIRS")
    assert page("promo.unknown")(ann.screen)
    await boss.say("/admin broadcast Ours")
    await boss.tap(label("admin.broadcast_go"))
    await here.bot.broadcast()

    assert [one.text for one in ann.from_bot if one.text in ("Ours", "Theirs")] == ["Ours"]
    still = await here.store.broadcast(begun.id)
    assert still is not None
    assert (still.state, still.sent) == (BroadcastState.RUNNING, 0)


# telling users


async def test_the_address_of_an_account_is_the_private_chat_in_the_users_language(here: Town) -> None:
    ann = await here.person()
    assert (await here.store.account(ann.number)).address == ""
    await ann.say("/start")
    assert (await here.store.account(ann.number)).address == f"{ann.hands.id}/en"
    await ann.press(ann.screen, "speak:ru")
    await ann.say("/start")

    assert (await here.store.account(ann.number)).address == f"{ann.hands.id}/ru"


async def test_an_operator_is_not_told_that_a_user_was_reached_who_was_not(office: Office) -> None:
    here, boss, ann = office
    charge = await bought(ann)
    await ann.say("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await here.quiet()
    async with here.done():
        await ann.hands.block()
    not_reached = EN.plain("admin.person_not_reached")
    for command, key, values in (
        (f"credit {ann.number} 5 gift", "admin.credited", {"credits": "5 credits"}),
        (f"debit {ann.number} 5 mistake", "admin.debited", {"credits": "5 credits"}),
        ("refund 1", "admin.refunded", {"credits": "0.8 credits"}),
        (f"stars {charge}", "admin.stars_refunded", {"stars": 100, "credits": "120 credits"}),
    ):
        await boss.say(f"/admin {command}")
        await boss.sees(page(key, reached=not_reached, **values))

    assert await ann.available() == 10_000


async def test_an_operator_is_told_that_the_user_of_an_order_without_a_chat_was_not_reached(office: Office) -> None:
    here, boss, ann = office
    await ann.say("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await here.store.set_account_address(ann.number, "")
    await boss.say("/admin refund 1")

    refunded = page("admin.refunded", credits="0.8 credits", reached=EN.plain("admin.person_not_reached"))
    assert refunded(boss.from_bot[-1])
    assert not any(page("account.refunded")(one) for one in ann.from_bot)


async def test_a_user_who_never_wrote_in_private_counts_as_not_reached_by_a_broadcast(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=replace(OPEN)) as here:
        ann = await here.person()
        await ann.say("/start")
        bob = await here.store.ensure_account("telegram", here.bot_id, "77")
        await here.store.ensure_profile(bob, language="en", name="Bob", username="bob", referred_by=None)
        begun = await here.store.begin_broadcast("News", bot=here.bot_id, author="1", request_key="k")
        await here.bot.broadcast()
        ended = await here.store.broadcast(begun.id)

        assert ended is not None
        assert (ended.state, ended.sent, ended.failed) == (BroadcastState.DONE, 1, 1)
        assert (await here.store.profile(bob)).blocked_at is None
