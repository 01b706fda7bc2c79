"""What a bot learns of its users, through two client libraries written for the real server."""

import asyncio

import pytest

from genlock.sandbox.telegram.chats import CallbackQuery
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.bot_messages import KEYBOARD, KINDS, send
from tests.sandbox.client_libraries import ApiFailure, Client
from tests.sandbox.sample_media import picture, sample


async def test_user_actions_arrive_as_updates(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "text", reply_markup=KEYBOARD)
    await ann.start("ref-7")
    await ann.send_photo(picture(), caption="like this")
    await ann.send_album([picture(), picture()])
    await ann.press(sent["message_id"], "Menu")
    await ann.block()
    updates = await client.call("getUpdates")

    start, photo, *album, press, block = updates
    assert start["message"]["text"] == "/start ref-7"
    assert start["message"]["entities"] == [{"type": "bot_command", "offset": 0, "length": 6}]
    assert start["message"]["from"]["language_code"] == "ru"
    assert (await client.download(photo["message"]["photo"][-1]["file_id"]))[:2] == b"\xff\xd8"
    assert len({update["message"]["media_group_id"] for update in album}) == 1
    assert press["callback_query"]["data"] == "menu"
    assert press["callback_query"]["message"]["message_id"] == sent["message_id"]
    assert block["my_chat_member"]["new_chat_member"]["status"] == "kicked"
    numbers = [update["update_id"] for update in updates]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert await client.call("getUpdates", offset=numbers[-1] + 1) == []


async def test_a_callback_query_is_answered_once_and_in_time(client: Client, ann: SimulatedUser) -> None:
    await send(client, ann.id, "text", reply_markup=KEYBOARD)
    press = await ann.press(ann.last, "menu")
    assert isinstance(press, CallbackQuery)
    (update,) = await client.call("getUpdates")
    number = update["callback_query"]["id"]
    with pytest.raises(ApiFailure, match="url_invalid"):
        await client.call("answerCallbackQuery", callback_query_id=number, url="https://example.org/")
    own = "https://t.me/sandbox_bot?start=topup"
    await client.call("answerCallbackQuery", callback_query_id=number, text="Saved", show_alert=True, url=own)

    assert (press.text, press.alert, press.url) == ("Saved", True, own)
    with pytest.raises(ApiFailure, match="query is too old"):
        await client.call("answerCallbackQuery", callback_query_id=number)
    press.answered, press.at = False, press.at - 61
    with pytest.raises(ApiFailure, match="query is too old"):
        await client.call("answerCallbackQuery", callback_query_id=number)


async def test_both_libraries_parse_every_kind_of_update(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    bob = telegram.add_user("Bob")
    await friends.add(bob)
    await ann.say("/gen cat", chat=friends.id)
    await ann.say("nothing for bots", chat=friends.id)
    await friends.set_bot("administrator", by=ann)
    moved = await friends.migrate()
    topic = await moved.topic("Art")
    await ann.say("in the topic", chat=moved.id, thread=topic)
    await ann.edit(await ann.say("tpyo"), "typo")
    for kind in KINDS:
        content, name = sample(kind)
        await ann.send(kind, content, name=name)
    updates = [update.as_json() for update in telegram.state.updates.pending.values()]

    read = [client.read_update(update) for update in updates]
    assert [update["update_id"] for update in read] == [update["update_id"] for update in updates]
    failure = [update["message"]["text"] for update in read if "text" in update.get("message", {})]
    assert failure == ["/gen cat", "in the topic", "tpyo"]
    assert any("edited_message" in update for update in read)


async def test_a_second_poller_ends_the_first(client: Client, telegram: TelegramSimulator) -> None:
    first = asyncio.create_task(client.call("getUpdates", timeout=20))
    await telegram.until(lambda: telegram.state.updates._poll)
    assert await client.call("getUpdates") == []

    with pytest.raises(ApiFailure) as failure:
        await first
    assert failure.value.kind == "conflict"
    assert failure.value.text.startswith("terminated by other getupdates request")


async def test_a_webhook_is_set_reported_and_removed(client: Client) -> None:
    assert await client.call("setWebhook", url="http://127.0.0.1:9/hook", secret_token="abc", max_connections=7) is True
    info = await client.call("getWebhookInfo")
    assert (info["url"], info["max_connections"], info["pending_update_count"]) == ("http://127.0.0.1:9/hook", 7, 0)
    with pytest.raises(ApiFailure) as failure:
        await client.call("getUpdates")
    assert failure.value.text.startswith("can't use getupdates method while webhook is active")
    assert await client.call("deleteWebhook") is True
    assert await client.call("getUpdates") == []
