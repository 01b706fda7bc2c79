"""Bot API methods that forward, copy and pin messages."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from genlock.sandbox.telegram.api_call import ApiError, CallArguments, bad_request
from genlock.sandbox.telegram.chats import Chat, Message
from genlock.sandbox.telegram.markup import read_markup
from genlock.sandbox.telegram.messages import (
    Method,
    caption_of,
    display_flags,
    is_forbidden,
    message_numbers,
    new_album,
    post_message,
    without_caption,
)
from genlock.sandbox.telegram.replies import origin_of
from genlock.sandbox.telegram.state import TelegramState

NOT_COPIED = ("service", "invoice", "paid_media")


async def forward_message(state: TelegramState, arguments: CallArguments) -> Any:
    source = _source(state, arguments, "forward")
    return state.show(_forwarded(state, state.writable(state.chat(arguments)), source, arguments))


async def copy_message(state: TelegramState, arguments: CallArguments) -> Any:
    source = _source(state, arguments, "copy")
    return {"message_id": _copied(state, state.writable(state.chat(arguments)), source, arguments).id}


def send_many(send_one: Callable[..., Message]) -> Method:
    """Return the method for several messages: it skips those that do not exist or may not be forwarded."""

    async def send(state: TelegramState, arguments: CallArguments) -> Any:
        numbers = message_numbers(arguments)
        arguments.required("from_chat_id")
        chat, source = state.writable(state.chat(arguments)), state.readable(state.chat(arguments, "from_chat_id"))
        found = [source.messages[number] for number in numbers if number in source.messages]
        if not found:
            raise bad_request("there are no messages to forward")
        if any(later.id <= earlier.id for earlier, later in pairwise(found)):
            raise bad_request("message identifiers must be in a strictly increasing order")
        albums: dict[str | None, str | None] = {None: None}
        sent = []
        for message in found:
            if message.album not in albums:
                albums[message.album] = new_album(state)
            try:
                sent.append(send_one(state, chat, message, arguments, album=albums[message.album]))
            except ApiError:
                continue
        if not sent:
            raise bad_request("messages can't be forwarded")
        return [{"message_id": message.id} for message in sent]

    return send


def _source(state: TelegramState, arguments: CallArguments, action: str) -> Message:
    arguments.required("from_chat_id")
    chat = state.readable(state.chat(arguments, "from_chat_id"))
    message = chat.messages.get(arguments.number("message_id"))
    if message is None:
        raise bad_request(f"message to {action} not found")
    return message


def _forwarded(
    state: TelegramState, chat: Chat, source: Message, arguments: CallArguments, *, album: str | None = None
) -> Message:
    if source.protected or source.kind == "service" or is_forbidden(chat, source.kind):
        raise bad_request("the message can't be forwarded")
    return post_message(state, chat, arguments, dict(source.content), forwarded=origin_of(state, source), album=album)


def _copied(
    state: TelegramState, chat: Chat, source: Message, arguments: CallArguments, *, album: str | None = None
) -> Message:
    foreign = source.protected and source.sender != state.bot_id
    if foreign or source.kind in NOT_COPIED or is_forbidden(chat, source.kind):
        raise bad_request("the message can't be copied")
    content = dict(source.content)
    if source.kind != "text" and ("caption" in arguments.values or arguments.flag("remove_caption")):
        content = without_caption(content)
        content |= caption_of(arguments)
        content |= display_flags(arguments, content)
    return post_message(state, chat, arguments, content, markup=read_markup(arguments), album=album)


# pinned messages


async def pin_message(state: TelegramState, arguments: CallArguments) -> bool:
    chat, number = state.deletable(state.chat(arguments)), arguments.number("message_id")
    if number not in chat.messages:
        raise bad_request("message to pin not found")
    _check_pins(chat)
    if chat.messages[number].kind == "service":
        raise bad_request("service messages can't be pinned")
    chat.pinned = [*(other for other in chat.pinned if other != number), number]
    return True


async def unpin_message(state: TelegramState, arguments: CallArguments) -> bool:
    """Unpin a message, or the one that was pinned last."""
    chat = state.deletable(state.chat(arguments))
    number = arguments.number("message_id") or next(reversed(chat.pinned), 0)
    if number not in chat.messages:
        raise bad_request("message to unpin not found")
    _check_pins(chat)
    chat.pinned = [other for other in chat.pinned if other != number]
    return True


async def unpin_all(state: TelegramState, arguments: CallArguments) -> bool:
    chat = state.deletable(state.chat(arguments))
    _check_pins(chat)
    chat.pinned = []
    return True


def _check_pins(chat: Chat) -> None:
    if not chat.private and chat.bot_status != "administrator":
        raise bad_request("not enough rights to manage pinned messages in the chat")


METHODS: dict[str, Method] = {
    "forwardMessage": forward_message,
    "forwardMessages": send_many(_forwarded),
    "copyMessage": copy_message,
    "copyMessages": send_many(_copied),
    "pinChatMessage": pin_message,
    "unpinChatMessage": unpin_message,
    "unpinAllChatMessages": unpin_all,
}
