"""What people do and see, and races between edits."""

import asyncio

import pytest

from genlock.sandbox.telegram.api_call import Upload
from genlock.sandbox.telegram.simulated_user import NotInChat, SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.clients import Bytes, Client, Told
from tests.sandbox.samples import picture
from tests.sandbox.waiting import until

RESULT = {"type": "photo", "media": Bytes(picture(), "x.png"), "caption": "done"}


async def test_a_message_deleted_for_both_is_gone_for_the_bot(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    await ann.delete(sent["message_id"], for_both=True)

    with pytest.raises(Told, match="message to edit not found"):
        await client.call("editMessageMedia", chat_id=ann.id, message_id=sent["message_id"], media=RESULT)
    assert ann.messages == []


async def test_a_message_deleted_for_one_side_is_edited_unseen(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    await ann.delete(sent["message_id"], for_both=False)
    edited = await client.call("editMessageMedia", chat_id=ann.id, message_id=sent["message_id"], media=RESULT)

    assert "photo" in edited
    assert ann.messages == []
    assert len(telegram.state.chats[ann.id].messages) == 1


async def test_a_cleared_history_is_empty_for_one(client: Client, ann: SimulatedUser) -> None:
    await ann.say("hello")
    sent = await client.call("sendMessage", chat_id=ann.id, text="hi")
    await ann.clear()
    assert ann.messages == []
    await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="hi again")
    new = await client.call("sendMessage", chat_id=ann.id, text="new")
    assert [message.id for message in ann.messages] == [new["message_id"]]


async def test_sends_make_a_sound_and_edits_do_not(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="one")
    await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="two")
    await client.call("sendMessage", chat_id=ann.id, text="quiet", disable_notification=True)

    assert [told.text for told in ann.notifications] == ["one"]


async def test_in_a_group_each_hides_for_themselves(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bob = telegram.add_user("Bob")
    friends = telegram.group("Friends", [ann, bob])
    sent = await client.call("sendMessage", chat_id=friends.id, text="hi all")
    await ann.delete(sent["message_id"], for_both=False, chat=friends.id)

    assert ann.messages_in(friends.id) == []
    assert [message.text for message in bob.messages_in(friends.id)] == ["hi all"]
    assert (len(ann.notifications), len(bob.notifications)) == (1, 1)


async def test_a_closed_topic_is_closed(client: Client, telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    forum = telegram.group("Forum", [ann], kind="supergroup")
    topic = await forum.topic("Art")
    sent = await client.call("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic)
    assert sent["message_thread_id"] == topic
    await forum.close_topic(topic)
    with pytest.raises(Told, match="topic_closed"):
        await client.call("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic)


async def test_who_writes_again_is_no_longer_blocking(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    await ann.block()
    await ann.say("sorry")
    await client.call("sendMessage", chat_id=ann.id, text="hi")

    kinds = [update.kind for update in telegram.state.updates.pending.values()]
    assert kinds == ["my_chat_member", "my_chat_member", "message"]


async def test_a_button_that_is_not_there_cannot_be_pressed(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="x")
    with pytest.raises(NotInChat):
        await ann.press(sent["message_id"], "menu")
    with pytest.raises(NotInChat):
        await ann.sees("never", seconds=0.05)


async def test_an_address_button_gives_its_address_and_a_reply_button_speaks(
    client: Client, ann: SimulatedUser
) -> None:
    link = {"inline_keyboard": [[{"text": "Original", "url": "https://example.org/a.png"}]]}
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup=link)
    assert await ann.press(ann.last, "Original") == "https://example.org/a.png"
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup={"keyboard": [[{"text": "Menu"}]]})
    assert await ann.press(ann.last, "Menu") == "Menu"
    assert (ann.last.text, ann.last.sender) == ("Menu", ann.id)


async def test_a_reaction_is_told_to_who_asked_for_it(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="x")
    await ann.react(sent["message_id"], "👎")
    assert telegram.state.updates.pending == {}
    await client.call("getUpdates", allowed_updates=["message", "message_reaction"])
    await ann.react(sent["message_id"], "👍")
    (update,) = await client.call("getUpdates")

    told = update["message_reaction"]
    assert (told["old_reaction"][0]["emoji"], told["new_reaction"][0]["emoji"]) == ("👎", "👍")
    hers = await ann.say("hello")
    await client.call(
        "setMessageReaction", chat_id=ann.id, message_id=hers.id, reaction=[{"type": "emoji", "emoji": "👀"}]
    )
    assert hers.reactions == {42: "👀"}


# races


async def test_a_newer_edit_cancels_one_whose_upload_is_on_its_way(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    telegram.upload_seconds = 1.5
    first = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT | {"caption": "first"}))
    await until(lambda: telegram.state.uploading)
    await client.call("editMessageMedia", **where, media=RESULT | {"caption": "second"})

    with pytest.raises(Told) as told:
        await first
    assert told.value.text == "canceled by new edit message request"
    assert ann.last.text == "second"


async def test_a_deletion_during_the_upload_is_told(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    telegram.upload_seconds = 1.5
    edit = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT))
    await until(lambda: telegram.state.uploading)
    await ann.delete(sent["message_id"])

    with pytest.raises(Told) as told:
        await edit
    assert told.value.text == "message was deleted"


async def test_text_edits_go_on_while_the_upload_is_on_its_way(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    telegram.upload_seconds = 1.5
    edit = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT))
    await until(lambda: telegram.state.uploading)
    await client.call("editMessageText", **where, text="99 %")
    assert ann.last.text == "99 %"
    await edit
    assert (ann.last.kind, ann.last.text) == ("photo", "done")


async def test_a_call_goes_on_when_the_caller_hangs_up(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    """The real server finishes what it has begun: that is why a lost answer proves nothing."""
    telegram.upload_seconds = 0.3
    where = f"/bot{telegram.token}/editMessageMedia"
    message = telegram.state.post(telegram.state.chats[ann.id], telegram.state.bot_id, {"text": "wait"})
    stored = await telegram.state.media.take("photo", Upload(name="x", type="", content=picture()), {})
    body = f'{{"chat_id":{ann.id},"message_id":{message.id},"media":{{"type":"photo","media":"{stored.id}"}}}}'
    host, port = telegram.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = [f"POST {where} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    writer.write("\r\n".join([*head, "", body]).encode())
    await writer.drain()
    await until(lambda: telegram.state.uploading)
    writer.transport.abort()

    await ann.sees(lambda seen: seen.kind == "photo", seconds=5)
