"""Bot API methods that edit and delete messages, with Telegram's rules about what may become what."""

import asyncio
from collections.abc import Collection
from typing import Any

from genlock.sandbox.telegram.api_call import ApiError, CallArguments, bad_request
from genlock.sandbox.telegram.chats import KINDS, MEDIA, Message
from genlock.sandbox.telegram.markup import Markup, check_public, is_inline, read_inline
from genlock.sandbox.telegram.media import WRONG_TYPE
from genlock.sandbox.telegram.messages import (
    Method,
    caption_of,
    check_right,
    display_flags,
    input_media,
    media_kind,
    media_source,
    message_numbers,
    without_caption,
)
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.text import check_edited, read_text

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)
DELETE_SECONDS = 48 * 3600
REPLACEABLE = {"text", "animation", "audio", "document", "photo", "video"}
CAPTIONED = (*MEDIA, "paid_media")
#: kinds of which more than the keyboard can be edited
EDITABLE = ("text", *CAPTIONED, "poll")
ALBUM_KINDS = {"audio", "document", "photo", "live_photo", "video"}


async def edit_text(state: TelegramState, arguments: CallArguments) -> Any:
    content, markup = read_text(arguments, "edit"), read_inline(arguments)
    message = editable_message(state, arguments)
    if message.kind != "text":
        raise bad_request("there is no text in the message to edit")
    await _delay_inside(state, arguments, message)
    if message.kind in MEDIA:
        # The message became media after this edit was validated: Telegram then sets the text as its caption.
        names = {"text": "caption", "entities": "caption_entities"}
        content = without_caption(message.content) | {
            names[name]: value for name, value in content.items() if name in names
        }
    return apply_change(state, message, content, markup)


async def edit_caption(state: TelegramState, arguments: CallArguments) -> Any:
    caption, markup = caption_of(arguments, "edit"), read_inline(arguments)
    message = editable_message(state, arguments)
    if message.kind not in CAPTIONED:
        raise bad_request("there is no caption in the message to edit")
    await _delay_inside(state, arguments, message)
    content = without_caption(message.content) | caption
    return apply_change(state, message, content | display_flags(arguments, content), markup)


async def edit_markup(state: TelegramState, arguments: CallArguments) -> Any:
    markup = read_inline(arguments)
    message = editable_message(state, arguments, kinds=KINDS)
    if message.album is not None:
        raise bad_request(NOT_MODIFIED)
    await _delay_inside(state, arguments, message)
    return apply_change(state, message, message.content, markup)


async def edit_media(state: TelegramState, arguments: CallArguments) -> Any:
    """Replace the media. During the upload a newer edit of the same message, or its deletion, cancels this one."""
    markup = read_inline(arguments)
    arguments.required("media")
    item = arguments.json("media", "input media")
    kind = media_kind(item)
    media_source(item, arguments)
    message = editable_message(state, arguments, "message media can't be edited")
    _replaceable(message, kind)
    check_right(state.chats[message.chat], kind)
    mine, place, seconds = object(), (message.chat, message.id), state.upload_seconds
    state.uploading[place] = mine
    state.events.wake()
    try:
        content = await _new_media(state, item, arguments)
        if seconds:
            await state.events.wait_until(lambda: state.uploading.get(place) is not mine, seconds)
        await _delay_inside(state, arguments, message)
    finally:
        newest = state.uploading.get(place) is mine
        if newest:
            del state.uploading[place]
    if message.id not in state.chats[message.chat].messages:
        raise bad_request("message was deleted")
    if not newest:
        raise bad_request("canceled by new edit message request")
    return apply_change(state, message, content, markup)


async def _new_media(state: TelegramState, item: Any, arguments: CallArguments) -> dict[str, Any]:
    """Return the content of the edit. Where a send names the web page, an edit only says that the media is empty."""
    try:
        return await input_media(state.media, item, arguments, "media edit")
    except ApiError as refused:
        if refused.description.endswith(WRONG_TYPE):
            raise bad_request("MEDIA_EMPTY") from None
        raise


def _replaceable(message: Message, kind: str) -> None:
    if message.kind not in REPLACEABLE:
        raise bad_request("message media can't be edited")
    if message.album is not None:
        if kind not in ALBUM_KINDS:
            raise bad_request("message content type can't be used in an album")
        same = {"photo", "video", "live_photo"} if message.kind in {"photo", "video"} else {message.kind}
        if kind not in same:
            raise bad_request("can't change media type in the album")


def editable_message(
    state: TelegramState,
    arguments: CallArguments,
    uneditable: str = "message can't be edited",
    *,
    kinds: Collection[str] = EDITABLE,
    name: str = "message to edit",
) -> Message:
    """Return the message to edit. Raises if it is not the bot's own or not of these kinds."""
    if not arguments.has("chat_id") and not arguments.number("message_id"):
        inline = arguments.has("inline_message_id")
        raise bad_request("MESSAGE_ID_INVALID" if inline else "message identifier is not specified")
    chat = state.reachable(state.chat(arguments))
    message = chat.messages.get(arguments.number("message_id"))
    if message is None:
        raise bad_request(f"{name} not found")
    foreign = message.sender != state.bot_id or message.forwarded is not None
    if foreign or message.kind not in kinds or not is_inline(message.markup):
        raise bad_request(uneditable)
    return message


async def _delay_inside(state: TelegramState, arguments: CallArguments, message: Message) -> None:
    """Wait between validation and effect (fault DELAY_INSIDE); the message may be deleted meanwhile."""
    if arguments.inside_seconds:
        await asyncio.sleep(arguments.inside_seconds)
        if message.id not in state.chats[message.chat].messages:
            raise bad_request("MESSAGE_ID_INVALID")


def apply_change(
    state: TelegramState, message: Message, content: dict[str, Any], markup: Markup | None
) -> dict[str, Any]:
    check_edited(content)
    if not state.chats[message.chat].private:
        check_public(markup)
    if content == message.content and markup == message.markup:
        raise bad_request(NOT_MODIFIED)
    state.change(message, content, markup)
    return state.show(message)


async def delete_message(state: TelegramState, arguments: CallArguments) -> bool:
    if not arguments.has("chat_id"):
        raise bad_request("chat identifier is not specified")
    if not arguments.number("message_id"):
        raise bad_request("message identifier is not specified")
    chat = state.deletable(state.chat(arguments))
    message = chat.messages.get(arguments.number("message_id"))
    if message is None:
        raise bad_request("message to delete not found")
    if state.now() - message.date > DELETE_SECONDS:
        raise bad_request("message can't be deleted for everyone")
    if not chat.private and message.sender != state.bot_id and chat.bot_status != "administrator":
        raise bad_request("message can't be deleted")
    state.remove(message)
    return True


async def delete_messages(state: TelegramState, arguments: CallArguments) -> bool:
    """Delete those that exist and skip the others."""
    for number in message_numbers(arguments):
        try:
            await delete_message(
                state, CallArguments({"chat_id": arguments.values.get("chat_id"), "message_id": number})
            )
        except ApiError as refused:
            if "message " not in refused.description:
                raise
    return True


METHODS: dict[str, Method] = {
    "editMessageText": edit_text,
    "editMessageCaption": edit_caption,
    "editMessageMedia": edit_media,
    "editMessageReplyMarkup": edit_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
}
