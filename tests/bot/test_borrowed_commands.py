"""Commands that the sender did not write are not carried out: forwarded, by an inline bot, in the name of a chat."""

from dataclasses import replace
from typing import Any

from genlock.bot.buttons import base36
from genlock.domain.events import Event
from genlock.domain.promo import Promo
from tests.bot.pages import page
from tests.bot.world import BotWorld, ChatUser

CHANNEL = {"id": -1001, "type": "channel", "title": "News"}
USER = {"id": 99, "is_bot": False, "first_name": "Mallory"}
BOT = {"id": 77, "is_bot": True, "first_name": "Inline", "username": "inline_bot"}
BORROWED: dict[str, dict[str, Any]] = {
    "forwarded from a user": {"forward_origin": {"type": "user", "date": 1, "sender_user": USER}},
    "forwarded from a hidden user": {
        "forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Mallory"}
    },
    "forwarded from a channel": {"forward_origin": {"type": "channel", "date": 1, "chat": CHANNEL, "message_id": 5}},
    "forwarded, by an old Bot API server": {"forward_from": USER, "forward_date": 1},
    "made by an inline bot": {"via_bot": BOT},
    "sent by a bot that acts for the operator's account": {"sender_business_bot": BOT},
}
LINES = [
    "/admin credit {id} 1000 gift",
    "/admin@{bot} maintenance on",
    "/promo GIFT",
    "/gen z-image a fox",
    "/start r1",
]


async def receive(ann: ChatUser, text: str, extra: dict[str, Any], *, caption: bool = False, **chat: Any) -> None:
    """Hand the bot a message with fields that the simulator's users cannot make."""
    world, user = ann.world, ann.client.user.as_json()
    number = 10_000 + world.recorder.settled
    entities = (
        [{"type": "bot_command", "offset": 0, "length": len(text.split(maxsplit=1)[0])}] if text.startswith("/") else []
    )
    content: dict[str, Any] = {"text": text, "entities": entities}
    if caption:
        photo = {"file_id": "f", "file_unique_id": "f", "width": 9, "height": 9, "file_size": 9}
        content = {"caption": text, "caption_entities": entities, "photo": [photo]}
    message = {
        "message_id": number, "date": 1_700_000_000, "from": user, **content, **extra,
        "chat": {"id": ann.client.id, "type": "private", "first_name": "Ann", **chat},
    }  # fmt: skip
    await world.deliver({"update_id": 5_000_000 + number, "message": message})


async def test_a_command_that_the_operator_did_not_write_does_nothing(world: BotWorld) -> None:
    boss = await world.add_user("Boss", having=100)
    bundle = world.bot._bundle
    bundle.rules = replace(bundle.rules, admin_ids=frozenset({boss.client.id}))
    await boss.write("/start")
    gift = Promo(code="GIFT", amount=50_000, runs=0, uses_max=None, per_account=1, until=None)
    await world.store.create_promo(gift, lasting=None, author="op")
    carried_out = []
    for why, extra in BORROWED.items():
        for line in LINES:
            for caption in (False, True):
                text = line.format(id=boss.client.id, bot=bundle.username)
                before = len(boss.from_bot)
                await receive(boss, text, extra, caption=caption)
                answers = boss.from_bot[before:]
                if [page("misc.forwarded_command")(answer) for answer in answers] != [True]:
                    carried_out.append((why, text, caption, [answer.text for answer in answers]))

    assert carried_out == []
    assert await boss.available() == 100_000
    assert await world.store.audit(5) == []
    assert await world.jobs(boss) == []
    assert await world.store.kv_get("chat:maintenance", world.bot_id) is None
    await receive(boss, f"/admin credit {boss.client.id} 5 gift", {})
    assert await boss.available() == 105_000  # their own words work


async def test_a_caption_of_what_was_shared_through_this_bot_is_no_command(world: BotWorld) -> None:
    boss = await world.add_user("Boss", having=100)
    bundle = world.bot._bundle
    bundle.rules = replace(bundle.rules, admin_ids=frozenset({boss.client.id}))
    await boss.write("/start")
    bot = {"id": int(world.bot_id), "is_bot": True, "first_name": "Bot", "username": bundle.username}
    for extra in ({}, BORROWED["forwarded from a user"]):
        for line in LINES:
            text = line.format(id=boss.client.id, bot=bundle.username)
            await receive(boss, text, {**extra, "via_bot": bot}, caption=True)

    assert await boss.available() == 100_000
    assert await world.store.audit(5) == []
    assert await world.jobs(boss) == []
    assert await world.store.kv_get("chat:maintenance", world.bot_id) is None


async def test_a_forwarded_command_that_follows_a_mention_in_a_group_does_nothing(world: BotWorld) -> None:
    """Telegram marks no command in other alphabets, so such a command is read from what is left without the mention."""
    ann = await world.add_user()
    group = world.telegram.group("Friends", [ann.client])
    chat: dict[str, Any] = {"id": group.id, "type": "group", "title": "Friends"}
    text = f"@{world.bot._bundle.username} /баланс"
    mention = {"entities": [{"type": "mention", "offset": 0, "length": text.index(" ")}]}
    for extra in BORROWED.values():
        await receive(ann, text, {**extra, **mention}, **chat)
    assert group.messages == []

    await receive(ann, text, mention, **chat)
    assert len(group.messages) == 1, "their own words work"


async def test_a_forwarded_invitation_is_not_accepted(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    await receive(bob, f"/start r{base36(ann.number)}", BORROWED["forwarded from a user"])
    assert (await world.store.profile(bob.number)).referred_by is None


async def test_a_forwarded_text_is_a_prompt_like_any_other_and_costs_nothing_until_it_is_confirmed(
    world: BotWorld,
) -> None:
    ann = await world.add_user()
    await receive(ann, "a fox in the snow", BORROWED["forwarded from a channel"])

    await ann.sees(page("confirm.suggestion"))
    assert await world.jobs(ann) == []


async def test_messages_in_the_name_of_a_chat_are_not_taken_for_a_user(world: BotWorld) -> None:
    ann = await world.add_user()
    chats: list[dict[str, Any]] = [{}, {"id": -100777, "type": "supergroup", "title": "G"}]
    for chat in chats:
        for extra in ({"sender_chat": CHANNEL}, {"sender_chat": CHANNEL, "is_automatic_forward": True}):
            await receive(ann, "/gen z-image a fox", extra, **chat)

    assert ann.from_bot == []
    assert await world.jobs(ann) == []


async def test_channel_posts_business_messages_and_edits_carry_out_no_command(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.write("/start")
    user, chat = ann.client.user.as_json(), {"id": ann.client.id, "type": "private", "first_name": "Ann"}
    message = {
        "message_id": 5, "date": 1_700_000_000, "from": user, "chat": chat, "text": "/gen z-image a fox",
        "entities": [{"type": "bot_command", "offset": 0, "length": 4}],
    }  # fmt: skip
    business = {**message, "business_connection_id": "b"}
    bodies = [
        {"channel_post": {**message, "chat": CHANNEL, "sender_chat": CHANNEL}}, {"business_message": business},
        {"edited_business_message": business}, {"edited_message": {**message, "edit_date": 1_700_000_001}},
        {"edited_channel_post": {**message, "chat": CHANNEL}},
    ]  # fmt: skip
    for number, body in enumerate(bodies):
        await world.deliver({"update_id": 6_000_000 + number, **body})

    assert await world.jobs(ann) == []
    assert world.recorder.of(Event.GEN_CREATE) == []
