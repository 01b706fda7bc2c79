"""Links to users in texts."""

from typing import Any

import aiohttp

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import Client


async def test_a_link_to_a_user_mentions_the_user(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bot = telegram.state.bot_id
    text = f'<a href="tg://user?id={ann.id}">Ann</a> <a href="tg://user?id={bot}">bot</a>'
    sent = await client.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")
    shown = [(entity["type"], entity["user"]["id"]) for entity in sent["entities"]]
    assert shown == [("text_mention", ann.id), ("text_mention", bot)]
    assert "url" not in sent["entities"][0]


async def test_a_link_to_a_user_whom_telegram_cannot_find_is_left_out(client: Client, ann: SimulatedUser) -> None:
    text = '<a href="tg://user?id=5">unknown</a> <b>else</b>'
    sent = await client.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")
    assert [entity["type"] for entity in sent["entities"]] == ["bold"]
    sent = await client.call("sendMessage", chat_id=ann.id, text="[unknown](tg://user?id=5)", parse_mode="Markdown")
    assert "entities" not in sent


async def test_a_given_mention_has_the_names_that_telegram_knows(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    user = {"id": ann.id, "is_bot": False, "first_name": "Wrong"}
    given: dict[str, Any] = {"type": "text_mention", "offset": 0, "length": 3, "user": user}
    call = {"chat_id": ann.id, "text": "Ann", "entities": [given]}
    url = f"{telegram.url}/bot{telegram.token}/sendMessage"
    async with aiohttp.ClientSession() as session, session.post(url, json=call) as response:
        [entity] = (await response.json())["result"]["entities"]
    assert entity["user"] == ann.user.as_json()
