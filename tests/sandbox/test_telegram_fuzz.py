"""Random calls to the simulator get a result or a Bot API error, never a server error."""

from random import Random
from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.methods import NAMES
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.random_examples import examples

FIELDS = (
    *("chat_id", "from_chat_id", "message_id", "message_ids", "text", "caption", "parse_mode", "entities"),
    *("caption_entities", "reply_markup", "reply_parameters", "message_thread_id", "media", "photo", "document"),
    *("video", "audio", "voice", "animation", "offset", "limit", "timeout", "allowed_updates", "url", "commands"),
    *("scope", "language_code", "menu_button", "user_id", "file_id", "callback_query_id", "title", "description"),
    *("payload", "currency", "prices", "telegram_payment_charge_id", "pre_checkout_query_id", "ok", "action"),
    *("reaction", "draft_id", "secret_token", "max_connections", "name", "short_description"),
)
#: of methods that the product does not use
MORE_FIELDS = (
    *("live_photo", "video_note", "sticker", "stickers", "old_sticker", "emoji", "emoji_list", "sticker_type"),
    *("mask_position", "position", "latitude", "longitude", "live_period", "heading", "phone_number", "first_name"),
    *("question", "options", "correct_option_ids", "type", "explanation", "open_period", "close_date", "star_count"),
    *("thumbnail", "cover", "start_timestamp", "rights", "result", "invite_link", "member_limit", "expire_date"),
    *("icon_color", "icon_custom_emoji_id", "custom_emoji_ids", "subscription_period", "creates_join_request"),
)
VALUES: tuple[Any, ...] = (
    *(None, "", "x", "0", "-1", 0, -5, 10**30, 1.5, True, [], {}, [[]], [None], [1], {"a": 1}, [{}], [[{}]], "{", "[1"),
    *("<b>", "<a href=>x</a>", "&#0;&#xD800;", "💥" * 5000, "XTR", "HTML", "attach://x", "\x00", [{"type": "photo"}]),
    *([{"type": "bold"}], [{"type": "bold", "offset": "x", "length": None}], {"inline_keyboard": {"a": 1}}),
    *({"inline_keyboard": [["x"]]}, {"inline_keyboard": [[{"text": "x", "url": 5}]]}, {"keyboard": "x"}),
    *({"keyboard": [5]}, {"type": []}, {"type": "photo", "media": 5}, {"message_id": "x"}, {"message_id": [1]}),
    *([{"label": "x", "amount": "y"}], [{"amount": None}], [5], {"type": "chat", "chat_id": {}}, "http://[::1"),
)


async def forum_of(telegram: TelegramSimulator, user: SimulatedUser) -> Group:
    """Return a group with a topic where the bot is an administrator."""
    forum = telegram.group("Forum", [user], kind="supergroup")
    await forum.set_bot("administrator")
    await forum.topic("first")
    return forum


@pytest.mark.parametrize("seed", range(6))
async def test_no_random_call_causes_a_server_error(
    telegram: TelegramSimulator, ann: SimulatedUser, first_seed: int, seed: int
) -> None:
    rng = Random(first_seed + seed)
    base = f"{telegram.url}/bot{telegram.token}"
    server_errors = []
    async with aiohttp.ClientSession() as session:
        sent = await ann.say("x")
        forum = await forum_of(telegram, ann)
        topic = min(forum.chat.topics)
        for _ in range(examples(800)):
            name = rng.choice([*NAMES])
            arguments = {field: rng.choice(VALUES) for field in (*FIELDS, *MORE_FIELDS) if rng.random() < 0.5}
            arguments |= {"timeout": 0, "message_thread_id": topic}
            arguments |= {"chat_id": rng.choice((ann.id, ann.id, forum.id))} if rng.random() < 0.8 else {}
            arguments |= {"message_id": sent.id + 1} if rng.random() < 0.5 else {}
            if name in {"getUpdates", "setWebhook"}:
                continue
            async with session.post(f"{base}/{name}", json=arguments) as response:
                if response.status >= 500:
                    server_errors.append((name, {field: str(value)[:60] for field, value in arguments.items()}))
    assert server_errors == []


async def test_random_polls_and_webhooks_cause_no_server_error(
    telegram: TelegramSimulator, ann: SimulatedUser, first_seed: int
) -> None:
    rng = Random(first_seed + 1)
    base = f"{telegram.url}/bot{telegram.token}"
    async with aiohttp.ClientSession() as session:
        for _ in range(examples(100)):
            arguments = {field: rng.choice(VALUES) for field in ("offset", "limit", "allowed_updates", "secret_token")}
            async with session.post(f"{base}/getUpdates", json=arguments) as response:
                assert response.status < 500, arguments
            async with session.post(f"{base}/setWebhook", json=arguments | {"url": rng.choice(VALUES)}) as response:
                assert response.status < 500, arguments
            await ann.say("x")
            async with session.post(f"{base}/deleteWebhook") as response:
                assert response.status == 200
