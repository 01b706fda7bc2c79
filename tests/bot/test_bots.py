"""Two bots on one database: each handles its own updates and sees its own users; a user is told at their address."""

import json
from dataclasses import replace
from pathlib import Path

from genlock.channels.telegram.updates import read_update
from genlock.domain.broadcast import BroadcastState
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo
from genlock.domain.update import UpdateState
from tests.bot.conftest import Office
from tests.bot.pages import EN, label, page
from tests.bot.rules import OPEN
from tests.bot.steps import bought
from tests.bot.world import BotWorld, running_bot, sqlite_url
from tests.stores.builders import ensure_profile

OTHER = "999"


async def account_of_another_bot(world: BotWorld) -> int:
    """A user of another bot, with a profile, an address and credits."""
    account_id = await world.store.ensure_account("telegram", OTHER, "5005")
    await ensure_profile(world.store, account_id, language="en", name="Olga", username="olga", referred_by=None)
    await world.store.set_account_address(account_id, "5005/en")
    await world.store.transfer(account_id, EntryKind.GRANT, 10_000, "test:olga")
    return account_id


async def test_an_update_of_another_bot_is_not_answered_by_ours(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    before = len(ann.from_bot)
    user = {"id": ann.client.id, "is_bot": False, "first_name": "Ann", "language_code": "en"}
    message = {"message_id": 900, "date": 1, "chat": {"id": ann.client.id, "type": "private"}, "from": user}
    data = {"update_id": 700, "message": {**message, "text": "/balance"}}
    await world.intake.receive(read_update(OTHER, data, json.dumps(data)))
    assert world.engine.updates is not None
    await world.engine.updates.claim()  # it would take the update: it is due
    await ann.write("/start")

    waiting = await world.store.updates(state=UpdateState.NEW, limit=10)
    assert [(update.bot, update.attempts) for update in waiting] == [(OTHER, 0)]
    assert not any(page("balance.title")(answer) for answer in ann.from_bot[before:])


async def test_operators_see_and_change_accounts_of_their_own_bot_only(office: Office) -> None:
    world, boss, ann = office
    olga = await account_of_another_bot(world)
    for name in (str(olga), "5005", "@olga"):
        await boss.write(f"/admin credit {name} 5 gift")
        assert page("admin.no_user", word=name)(boss.from_bot[-1])
    await boss.write("/admin find Olga")
    assert page("admin.user_not_found", text="Olga")(boss.from_bot[-1])
    await boss.write(f"/admin credit {ann.number} 5 gift")

    assert (await world.store.wallet(olga)).available == 10_000
    assert await ann.available() == 15_000
    [entry] = await world.store.ledger_entries(ann.number, 1)
    assert entry.key.startswith(f"admin:{world.bot_id}:"), "update ids of two bots may be the same"
    assert [line.subject for line in await world.store.audit(9, world.bot_id)] == [str(ann.number)]
    assert await world.store.audit(9, OTHER) == []


async def test_users_of_another_bot_do_not_crowd_out_ours(office: Office) -> None:
    world, boss, ann = office
    name = (await world.store.profile(ann.number)).name
    for number in range(12):
        other = await world.store.ensure_account("telegram", OTHER, str(6000 + number))
        await ensure_profile(world.store, other, language="en", name=name, username="", referred_by=None)
    await boss.write("/admin find")
    assert name in repr(boss.from_bot[-1].markup), "on a button"
    await boss.write(f"/admin find {name}")
    assert page("admin.user", name=name)(boss.from_bot[-1])


async def test_stars_of_another_bots_payment_are_not_refunded(office: Office) -> None:
    world, boss, _ = office
    olga = await account_of_another_bot(world)
    await world.store.add_payment("c1", olga, 100, 10_000)
    await boss.write("/admin stars c1")

    assert page("admin.refund_no_payment")(boss.from_bot[-1])
    assert (await world.store.wallet(olga)).available == 10_000


async def test_maintenance_broadcasts_and_promo_codes_belong_to_a_bot(office: Office) -> None:
    world, boss, ann = office
    await account_of_another_bot(world)
    await world.store.kv_put("chat:maintenance", "Closed", OTHER)
    begun = await world.store.begin_broadcast("Theirs", bot=OTHER, author="1", request_key="k")
    theirs = Promo(code="THEIRS", amount=5000, runs=0, uses_max=None, per_account=1, until=None, bot=OTHER)
    await world.store.create_promo(theirs, lasting=None, author="1")
    world.bot._access._maintenance = (0.0, None)
    await ann.write("/balance")
    assert page("balance.title")(ann.screen)
    assert await world.bot.broadcast() == 0
    await boss.write("/admin stop")
    assert page("admin.broadcast_none")(boss.from_bot[-1])
    await boss.write("/admin close THEIRS")
    assert page("admin.no_promo", code="THEIRS")(boss.from_bot[-1])
    await ann.write("/promo THEIRS")
    assert page("promo.unknown")(ann.screen)
    await boss.write("/admin broadcast Ours")
    await boss.tap(label("admin.broadcast_go"))
    await world.bot.broadcast()

    assert [message.text for message in ann.from_bot if message.text in ("Ours", "Theirs")] == ["Ours"]
    still = await world.store.broadcast(begun.id)
    assert still is not None
    assert (still.state, still.sent) == (BroadcastState.RUNNING, 0)


# telling users


async def test_the_address_of_an_account_is_the_private_chat_in_the_users_language(world: BotWorld) -> None:
    ann = await world.add_user()
    assert (await world.store.account(ann.number)).address == ""
    await ann.write("/start")
    assert (await world.store.account(ann.number)).address == f"{ann.client.id}/en"
    await ann.press(ann.screen, "speak:ru")
    await ann.write("/start")

    assert (await world.store.account(ann.number)).address == f"{ann.client.id}/ru"


async def test_an_operator_is_not_told_that_a_user_was_reached_who_was_not(office: Office) -> None:
    world, boss, ann = office
    charge = await bought(ann)
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await world.quiet()
    async with world.done():
        await ann.client.block()
    not_reached = EN.plain("admin.user_not_reached")
    for command, key, values in (
        (f"credit {ann.number} 5 gift", "admin.credited", {"credits": "5\u00a0credits"}),
        (f"debit {ann.number} 5 mistake", "admin.debited", {"credits": "5\u00a0credits"}),
        ("refund 1", "admin.refunded", {"credits": "0.8\u00a0credits"}),
        (f"stars {charge}", "admin.stars_refunded", {"stars": 100, "credits": "120\u00a0credits"}),
    ):
        await boss.write(f"/admin {command}")
        if not command.startswith("credit"):
            await boss.tap(label(f"admin_ask.{command.split()[0]}_yes"))
        await boss.sees(page(key, reached=not_reached, **values))

    assert await ann.available() == 10_000


async def test_an_operator_is_told_that_the_user_of_an_order_without_a_chat_was_not_reached(office: Office) -> None:
    world, boss, ann = office
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    await world.store.set_account_address(ann.number, "")
    await boss.write("/admin refund 1")
    await boss.tap(label("admin_ask.refund_yes"))

    refunded = page("admin.refunded", credits="0.8\u00a0credits", reached=EN.plain("admin.user_not_reached"))
    assert refunded(boss.from_bot[-1])
    assert not any(page("account.refunded")(message) for message in ann.from_bot)


async def test_a_user_who_never_wrote_in_private_counts_as_not_reached_by_a_broadcast(tmp_path: Path) -> None:
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN)) as world:
        ann = await world.add_user()
        await ann.write("/start")
        bob = await world.store.ensure_account("telegram", world.bot_id, "77")
        await ensure_profile(world.store, bob, language="en", name="Bob", username="bob", referred_by=None)
        begun = await world.store.begin_broadcast("News", bot=world.bot_id, author="1", request_key="k")
        await world.bot.broadcast()
        ended = await world.store.broadcast(begun.id)

        assert ended is not None
        assert (ended.state, ended.sent, ended.failed) == (BroadcastState.DONE, 1, 1)
        assert (await world.store.profile(bob)).blocked_at is None
