"""What simulated users do and see, and races between edits."""

import asyncio

import pytest

from genlock.sandbox.telegram.api_call import Upload
from genlock.sandbox.telegram.simulated_user import NotInChat, SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.loop_clock import LoopClock
from tests.sandbox.client_libraries import ApiFailure, Bytes, Client
from tests.sandbox.sample_media import picture

RESULT = {"type": "photo", "media": Bytes(picture(), "x.png"), "caption": "done"}
#: shorter than any client library waits for an answer
UPLOAD_SECONDS = 4.0


async def test_a_message_deleted_for_both_sides_cannot_be_edited(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    await ann.delete(sent["message_id"], for_both=True)

    with pytest.raises(ApiFailure, match="message to edit not found"):
        await client.call("editMessageMedia", chat_id=ann.id, message_id=sent["message_id"], media=RESULT)
    assert ann.messages == []


async def test_a_message_deleted_for_the_user_only_can_still_be_edited(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    await ann.delete(sent["message_id"], for_both=False)
    edited = await client.call("editMessageMedia", chat_id=ann.id, message_id=sent["message_id"], media=RESULT)

    assert "photo" in edited
    assert ann.messages == []
    assert len(telegram.state.chats[ann.id].messages) == 1


async def test_a_cleared_history_is_empty_for_the_user(client: Client, ann: SimulatedUser) -> None:
    await ann.say("hello")
    sent = await client.call("sendMessage", chat_id=ann.id, text="hi")
    await ann.clear()
    assert ann.messages == []
    await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="hi again")
    new = await client.call("sendMessage", chat_id=ann.id, text="new")
    assert [message.id for message in ann.messages] == [new["message_id"]]


async def test_sends_cause_notifications_and_edits_do_not(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="one")
    await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="two")
    await client.call("sendMessage", chat_id=ann.id, text="quiet", disable_notification=True)

    assert [told.text for told in ann.notifications] == ["one"]


async def test_in_a_group_each_user_hides_messages_separately(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bob = telegram.add_user("Bob")
    friends = telegram.group("Friends", [ann, bob])
    sent = await client.call("sendMessage", chat_id=friends.id, text="hi all")
    await ann.delete(sent["message_id"], for_both=False, chat=friends.id)

    assert ann.messages_in(friends.id) == []
    assert [message.text for message in bob.messages_in(friends.id)] == ["hi all"]
    assert (len(ann.notifications), len(bob.notifications)) == (1, 1)


async def test_a_closed_topic_refuses_messages(client: Client, telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    forum = telegram.group("Forum", [ann], kind="supergroup")
    topic = await forum.topic("Art")
    sent = await client.call("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic)
    assert sent["message_thread_id"] == topic
    await forum.close_topic(topic)
    with pytest.raises(ApiFailure, match="topic_closed"):
        await client.call("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic)


async def test_a_user_who_writes_again_unblocks_the_bot(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    await ann.block()
    await ann.say("sorry")
    await client.call("sendMessage", chat_id=ann.id, text="hi")

    kinds = [update.kind for update in telegram.state.updates.pending.values()]
    assert kinds == ["my_chat_member", "my_chat_member", "message"]


async def test_a_missing_button_cannot_be_pressed(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="x")
    with pytest.raises(NotInChat):
        await ann.press(sent["message_id"], "menu")
    with pytest.raises(NotInChat):
        await ann.sees("never", seconds=0.05)


async def test_a_url_button_returns_its_url_and_a_reply_button_sends_its_text(
    client: Client, ann: SimulatedUser
) -> None:
    link = {"inline_keyboard": [[{"text": "Original", "url": "https://example.org/a.png"}]]}
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup=link)
    assert await ann.press(ann.last, "Original") == "https://example.org/a.png"
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup={"keyboard": [[{"text": "Menu"}]]})
    assert await ann.press(ann.last, "Menu") == "Menu"
    assert (ann.last.text, ann.last.sender) == ("Menu", ann.id)


async def test_a_reaction_is_sent_only_if_allowed_updates_names_it(
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


def end_uploads(telegram: TelegramSimulator, loop_clock: LoopClock) -> None:
    """Those that wait, and those that are about to."""
    telegram.upload_seconds = 0.0
    loop_clock.advance(UPLOAD_SECONDS)


@pytest.mark.slow
async def test_a_newer_edit_cancels_one_that_is_still_uploading(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    loop_clock, telegram.upload_seconds = LoopClock(), UPLOAD_SECONDS
    first = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT | {"caption": "first"}))
    await telegram.until(lambda: telegram.state.uploading)
    [upload] = telegram.state.uploading.values()
    second = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT | {"caption": "second"}))
    await telegram.until(lambda: upload not in telegram.state.uploading.values())
    end_uploads(telegram, loop_clock)

    with pytest.raises(ApiFailure) as told:
        await first
    await second
    assert told.value.text == "canceled by new edit message request"
    assert ann.last.text == "second"


@pytest.mark.slow
async def test_a_deletion_during_the_upload_is_reported(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    loop_clock, telegram.upload_seconds = LoopClock(), UPLOAD_SECONDS
    edit = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT))
    await telegram.until(lambda: telegram.state.uploading)
    await ann.delete(sent["message_id"])
    end_uploads(telegram, loop_clock)

    with pytest.raises(ApiFailure) as told:
        await edit
    assert told.value.text == "message was deleted"


@pytest.mark.slow
async def test_text_edits_work_during_an_upload(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text="wait")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    loop_clock, telegram.upload_seconds = LoopClock(), UPLOAD_SECONDS
    edit = asyncio.create_task(client.call("editMessageMedia", **where, media=RESULT))
    await telegram.until(lambda: telegram.state.uploading)
    await client.call("editMessageText", **where, text="99 %")
    assert ann.last.text == "99 %"
    end_uploads(telegram, loop_clock)
    await edit
    assert (ann.last.kind, ann.last.text) == ("photo", "done")


async def test_a_call_is_executed_although_the_caller_disconnects(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    """As on the real server: a lost answer does not mean that the call was not executed."""
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
    await telegram.until(lambda: telegram.state.uploading)
    writer.transport.abort()

    await ann.sees(lambda seen: seen.kind == "photo")


def test_usernames_have_latin_letters_only_as_in_telegram(telegram: TelegramSimulator) -> None:
    users = [telegram.add_user(name, language="ru", started=False) for name in ("Аня", "Ann", "2Pac", "007", "Zoë K.")]
    names = [telegram.state.users[user.id].username.rpartition("_")[0] for user in users]
    assert names == ["user", "ann", "pac", "user", "zok"]
