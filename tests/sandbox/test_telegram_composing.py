"""Users of the simulator edit, forward, send stickers and record voice messages, as in Telegram."""

from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.probe import probe_content
from genlock.sandbox.telegram.simulated_user import NotInChat, SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import Bytes, connect
from tests.sandbox.sample_media import picture, sound


async def post(telegram: TelegramSimulator, path: str, body: Any, *, form: bool = False) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{telegram.url}/sim/people/{path}", **{"data" if form else "json": body}) as response,
    ):
        return response.status, await response.json()


def updates(telegram: TelegramSimulator, kind: str) -> list[dict[str, Any]]:
    return [update.payload for update in telegram.state.updates.pending.values() if update.kind == kind]


async def test_an_edited_text_or_caption_is_one_update_and_the_same_text_again_none(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    text, photo = await ann.say("a cat"), await ann.send_photo(picture(), caption="my house")
    for _ in range(2):
        status, view = await post(telegram, f"{ann.id}/edit", {"message": text.id, "text": "a dog /start"})
        assert (status, view["message"]["text"]) == (200, "a dog /start")
    await ann.edit(photo, "")
    first, second = updates(telegram, "edited_message")
    assert (first["message_id"], first["text"]) == (text.id, "a dog /start")
    assert first["entities"][0]["type"] == "bot_command"
    assert first["edit_date"] >= first["date"]
    assert (second["message_id"], "caption" in second, "photo" in second) == (photo.id, False, True)


async def test_only_own_messages_with_a_text_or_caption_are_edited(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    ben = telegram.add_user("Ben")
    friends = telegram.group("Friends", [ann, ben])
    said, sticker = await ben.say("hi", chat=friends.id), await ann.send_sticker("😀")
    [forwarded] = await ann.forward([said], to=ann.id)
    for message in (said, sticker, forwarded):
        with pytest.raises(NotInChat):
            await ann.edit(message, "changed")
    with pytest.raises(ValueError, match="empty"):
        await ann.edit(await ann.say("x"), "")
    assert (await post(telegram, f"{ann.id}/edit", {"message": sticker.id, "text": "x"}))[0] == 400
    assert (await post(telegram, f"{ann.id}/edit", {"message": 99_999, "text": "x"}))[0] == 404
    assert updates(telegram, "edited_message") == []
    await ben.edit(said, "hi all", chat=friends.id)
    assert updates(telegram, "edited_message") == [], "a bot in a group sees only what is meant for it"


async def test_a_forwarded_message_names_its_first_author_and_an_album_stays_one(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    ben = telegram.add_user("Ben")
    friends = telegram.group("Friends", [ann, ben])
    album = await ben.send_album([picture(), picture()], caption="two", chat=friends.id)
    body = {"chat": friends.id, "messages": [message.id for message in album], "to": ann.id}
    status, views = await post(telegram, f"{ann.id}/forward", body)
    assert status == 200
    received = updates(telegram, "message")
    assert [message["message_id"] for message in received] == [view["message"]["message_id"] for view in views]
    assert {message["forward_origin"]["sender_user"]["first_name"] for message in received} == {"Ben"}
    assert {message["from"]["first_name"] for message in received} == {"Ann"}
    assert len({message["media_group_id"] for message in received} | {str(album[0].album)}) == 2
    assert received[0]["caption"] == "two"
    [again] = await ann.forward([received[0]["message_id"]], to=friends.id)
    assert again.forwarded is not None
    assert again.forwarded["sender_user"]["first_name"] == "Ben"
    assert again.album is None


async def test_protected_hidden_and_missing_messages_are_not_forwarded(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bot = connect("python-telegram-bot", telegram)
    secret = await bot.call("sendMessage", chat_id=ann.id, text="secret", protect_content=True)
    shown = await bot.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture(), "x.png"))
    await bot.close()
    await ann.delete(shown["message_id"], for_both=False)
    answers = [
        await post(telegram, f"{ann.id}/forward", {"messages": [number]})
        for number in (secret["message_id"], shown["message_id"], 99_999)
    ]
    assert [status for status, _ in answers] == [400, 400, 404]
    assert "protected" in answers[0][1]["error"]
    assert len(ann.messages) == 1


async def test_a_sticker_has_the_fields_of_the_bot_api_and_one_unique_id(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    status, view = await post(telegram, f"{ann.id}/sticker", {"sticker": "😀"})
    assert (status, view["shown"]) == (200, "sticker")
    second = await ann.send_sticker("😀", reply_to=view["message"]["message_id"])
    one, other = (update["sticker"] for update in updates(telegram, "message"))
    assert one["file_unique_id"] == other["file_unique_id"]
    assert (one["type"], one["width"], one["is_animated"], one["is_video"]) == ("regular", 512, False, False)
    assert probe_content(telegram.files.read(str(second.file_id))).type == "image/webp"
    assert (await post(telegram, f"{ann.id}/sticker", {"sticker": "🚫"}))[0] == 404


async def test_a_recording_in_any_format_becomes_an_ogg_voice_message_and_none_a_sample_voice(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    form = aiohttp.FormData({"chat": str(ann.id)})
    form.add_field("file", sound(), filename="recording.webm")
    assert (await post(telegram, f"{ann.id}/voice", form, form=True))[0] == 200
    assert (await post(telegram, f"{ann.id}/voice", aiohttp.FormData({"chat": str(ann.id)}), form=True))[0] == 200
    for update in updates(telegram, "message"):
        assert update["voice"]["mime_type"] == "audio/ogg"
        assert update["voice"]["duration"] in range(2, 5)
    broken = aiohttp.FormData({"chat": str(ann.id)})
    broken.add_field("file", b"no sound", filename="recording.webm")
    status, answer = await post(telegram, f"{ann.id}/voice", broken, form=True)
    assert (status, answer["error"]) == (400, "the recording cannot be decoded")
    assert len(ann.messages) == 2
