"""The Bot API's methods that edit and delete messages, through two client libraries written for the real server."""

from typing import Any

import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from tests.sandbox.bot_messages import KEYBOARD, OTHER_KEYBOARD, media, send
from tests.sandbox.client_libraries import ApiFailure, Client

REPLACEABLE = ("text", "photo", "video", "animation", "audio", "document")


TARGETS = ("photo", "video", "animation", "audio", "document")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", REPLACEABLE)
async def test_an_edit_changes_the_kind_of_a_message(
    client: Client, ann: SimulatedUser, source: str, target: str
) -> None:
    sent = await send(client, ann.id, source, reply_markup=KEYBOARD)
    edited = await client.call(
        "editMessageMedia",
        chat_id=ann.id,
        message_id=sent["message_id"],
        media=media(target, caption="done"),
        reply_markup=OTHER_KEYBOARD,
    )

    assert target in edited
    assert edited["message_id"] == sent["message_id"]
    assert edited["edit_date"]
    assert len(ann.messages) == 1
    assert (ann.last.kind, ann.last.text, ann.last.buttons[0]["text"]) == (target, "done", "Back")
    assert len(ann.notifications) == 1


async def test_a_voice_message_cannot_be_edited_into_other_media(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "voice")

    with pytest.raises(ApiFailure, match="message media can't be edited"):
        await client.call("editMessageMedia", chat_id=ann.id, message_id=sent["message_id"], media=media("photo"))
    await client.call("editMessageCaption", chat_id=ann.id, message_id=sent["message_id"], caption="said")
    assert ann.last.text == "said"


async def test_a_long_text_is_refused_after_everything_else_that_is_wrong_with_an_edit(
    client: Client, ann: SimulatedUser
) -> None:
    """The server measures sends itself, but leaves edits to Telegram behind it."""
    text, photo = await send(client, ann.id, "text"), await send(client, ann.id, "photo")
    refused = {
        ("editMessageText", 999): "message to edit not found",
        ("editMessageText", photo["message_id"]): "there is no text in the message to edit",
        ("editMessageCaption", text["message_id"]): "there is no caption in the message to edit",
        ("editMessageText", text["message_id"]): "message_too_long",
        ("editMessageCaption", photo["message_id"]): "media_caption_too_long",
    }
    for (method, number), why in refused.items():
        long = {"text": "x" * 4097} if method == "editMessageText" else {"caption": "x" * 1025}
        with pytest.raises(ApiFailure) as failure:
            await client.call(method, chat_id=ann.id, message_id=number, **long)
        assert failure.value.text == why


async def test_a_media_message_cannot_become_text_again(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "text")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageCaption", **where, caption="done")
    assert failure.value.text == "there is no caption in the message to edit"
    await client.call("editMessageText", **where, text="50 %")
    await client.call("editMessageMedia", **where, media=media("photo", caption="done"))
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", **where, text="60 %")

    assert failure.value.text == "there is no text in the message to edit"
    assert (ann.last.kind, ann.last.text) == ("photo", "done")


async def test_not_modified_compares_content_and_keyboard(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "text", reply_markup=KEYBOARD)
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    full = (
        "message is not modified: specified new message content and reply markup are exactly the same as a current "
        "content and reply markup of the message"
    )
    for method, given in (
        ("editMessageText", {"text": " words ", "reply_markup": KEYBOARD}),
        ("editMessageReplyMarkup", {"reply_markup": KEYBOARD}),
    ):
        with pytest.raises(ApiFailure) as failure:
            await client.call(method, **where, **given)
        assert (failure.value.kind, failure.value.text) == ("bad request", full)
    await client.call("editMessageText", **where, text="words", reply_markup=OTHER_KEYBOARD)
    plain = await client.call("editMessageText", **where, text="words")

    assert "reply_markup" not in plain
    assert ann.last.buttons == []


async def test_the_same_file_id_is_not_modified_but_a_new_upload_of_the_same_bytes_is(
    client: Client, ann: SimulatedUser
) -> None:
    sent = await send(client, ann.id, "photo", caption="done")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    known = {"type": "photo", "media": sent["photo"][-1]["file_id"], "caption": "done"}

    with pytest.raises(ApiFailure, match="message is not modified"):
        await client.call("editMessageMedia", **where, media=known)
    with pytest.raises(ApiFailure, match="message is not modified"):
        await client.call("editMessageCaption", **where, caption="done")
    again = await client.call("editMessageMedia", **where, media=media("photo", caption="done"))
    assert again["photo"][-1]["file_unique_id"] != sent["photo"][-1]["file_unique_id"]


@pytest.mark.parametrize(
    "markup",
    [
        {"keyboard": [[{"text": "Yes"}]]},
        {"remove_keyboard": True},
        {"force_reply": True},
    ],
)
async def test_a_message_with_a_reply_keyboard_cannot_be_edited(
    client: Client, ann: SimulatedUser, markup: dict[str, Any]
) -> None:
    sent = await send(client, ann.id, "text", reply_markup=markup)
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}

    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", **where, text="other")
    assert failure.value.text == "message can't be edited"
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageMedia", **where, media=media("photo"))
    assert failure.value.text == "message media can't be edited"


async def test_deleted_and_foreign_messages_cannot_be_edited(client: Client, ann: SimulatedUser) -> None:
    hers = await ann.say("mine")
    sent = await send(client, ann.id, "text")
    assert await client.call("deleteMessage", chat_id=ann.id, message_id=sent["message_id"]) is True

    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="other")
    assert failure.value.text == "message to edit not found"
    with pytest.raises(ApiFailure) as failure:
        await client.call("deleteMessage", chat_id=ann.id, message_id=sent["message_id"])
    assert failure.value.text == "message to delete not found"
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", chat_id=ann.id, message_id=hers.id, text="other")
    assert failure.value.text == "message can't be edited"


async def test_delete_messages_skips_missing_ones(client: Client, ann: SimulatedUser) -> None:
    numbers = [(await send(client, ann.id, "text"))["message_id"] for _ in range(3)]

    assert await client.call("deleteMessages", chat_id=ann.id, message_ids=[*numbers[:2], 999_999]) is True
    assert [message.id for message in ann.messages] == numbers[2:]
