"""Replies of the bot: with a quotation, to a message of another chat, and to one that is gone."""

import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import ApiFailure, Client
from tests.sandbox.sample_media import picture


async def test_a_reply_quotes_a_part_of_the_message(client: Client, ann: SimulatedUser) -> None:
    said = await ann.say("🐈 a black cat")
    reply = {"message_id": said.id, "quote": "<b>black</b>", "quote_parse_mode": "HTML"}
    sent = await client.call("sendMessage", chat_id=ann.id, text="this?", reply_parameters=reply)
    assert (sent["quote"]["text"], sent["quote"]["position"]) == ("black", 5)
    assert sent["quote"]["entities"][0]["type"] == "bold"
    assert sent["reply_to_message"]["message_id"] == said.id
    with pytest.raises(ApiFailure, match="quote_text_invalid"):
        await client.call("sendMessage", chat_id=ann.id, text="x", reply_parameters=reply | {"quote": "white"})


async def test_a_reply_to_another_chat_shows_its_media_and_its_author(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann], kind="supergroup")
    posted = await ann.send_photo(picture(), caption="look", chat=friends.id)
    reply = {"message_id": posted.id, "chat_id": friends.id}
    sent = await client.call("sendMessage", chat_id=ann.id, text="nice", reply_parameters=reply)
    assert "reply_to_message" not in sent
    external = sent["external_reply"]
    assert (external["chat"]["id"], external["message_id"]) == (friends.id, posted.id)
    assert external["origin"]["sender_user"]["id"] == ann.id
    assert external["photo"]
    private = await ann.say("hi")
    reply = {"message_id": private.id, "chat_id": ann.id}
    sent = await client.call("sendMessage", chat_id=friends.id, text="there", reply_parameters=reply)
    assert "chat" not in sent["external_reply"], "ids of private chats are not shown elsewhere"


async def test_a_reply_to_a_missing_message_is_refused_unless_it_may_be_sent_without(
    client: Client, ann: SimulatedUser
) -> None:
    reply = {"message_id": 77, "quote": "x"}
    with pytest.raises(ApiFailure, match="message to be replied not found"):
        await client.call("sendMessage", chat_id=ann.id, text="x", reply_parameters=reply)
    allowed = reply | {"allow_sending_without_reply": True}
    sent = await client.call("sendMessage", chat_id=ann.id, text="x", reply_parameters=allowed)
    assert "reply_to_message" not in sent
    assert "quote" not in sent
