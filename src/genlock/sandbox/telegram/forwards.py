"""Bot API methods that forward, copy and pin messages."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from genlock.sandbox.telegram.api_call import ApiError, CallArguments, bad_request
from genlock.sandbox.telegram.markup import read_markup
from genlock.sandbox.telegram.messages import Method, caption_of, message_numbers, post_message
from genlock.sandbox.telegram.state import Chat, Message, TelegramState


async def forward_message(state: TelegramState, arguments: CallArguments) -> Any:
    chat = state.writable(state.chat(arguments))
    return state.show(_forwarded(state, chat, _source(state, arguments, "forward"), arguments))


async def copy_message(state: TelegramState, arguments: CallArguments) -> Any:
    chat = state.writable(state.chat(arguments))
    return {"message_id": _copied(state, chat, _source(state, arguments, "copy"), arguments).id}


def send_many(send_one: Callable[[TelegramState, Chat, Message, CallArguments], Message]) -> Method:
    """Return the method for several messages: it skips those that do not exist or may not be forwarded."""

    async def send(state: TelegramState, arguments: CallArguments) -> Any:
        numbers = message_numbers(arguments)
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            raise bad_request("message identifiers must be in a strictly increasing order")
        chat, source = state.writable(state.chat(arguments)), state.chat(arguments, "from_chat_id")
        found = [source.messages[number] for number in numbers if number in source.messages]
        if not found:
            raise bad_request("message to forward not found")
        sent = []
        for message in found:
            try:
                sent.append(send_one(state, chat, message, arguments))
            except ApiError:
                continue
        if not sent:
            raise bad_request("messages can't be forwarded")
        return [{"message_id": message.id} for message in sent]

    return send


def _source(state: TelegramState, arguments: CallArguments, action: str) -> Message:
    arguments.required("from_chat_id")
    message = state.chat(arguments, "from_chat_id").messages.get(arguments.number("message_id"))
    if message is None or message.kind == "service":
        raise bad_request(f"message to {action} not found")
    return message


def _forwarded(state: TelegramState, chat: Chat, source: Message, arguments: CallArguments) -> Message:
    if source.protected:
        raise bad_request("message has protected content and can't be forwarded")
    return post_message(state, chat, arguments, dict(source.content), forwarded=origin_of(state, source))


def origin_of(state: TelegramState, source: Message) -> dict[str, Any]:
    """Return the field `forward_origin` of a forwarded copy: who wrote the message first."""
    return source.forwarded or {"type": "user", "date": source.date, "sender_user": state.show_user(source.sender)}


def _copied(state: TelegramState, chat: Chat, source: Message, arguments: CallArguments) -> Message:
    if source.protected and source.sender != state.bot_id:
        raise bad_request("message can't be copied")
    content = dict(source.content)
    if source.kind != "text" and (arguments.has("caption") or arguments.flag("remove_caption")):
        content = {name: value for name, value in content.items() if not name.startswith("caption")}
        content |= caption_of(arguments)
    return post_message(state, chat, arguments, content, markup=read_markup(arguments))


# pinned messages


async def pin_message(state: TelegramState, arguments: CallArguments) -> bool:
    chat = _pinnable(state, arguments)
    number = arguments.number("message_id")
    if number not in chat.messages:
        raise bad_request("message to pin not found")
    chat.pinned = [*(other for other in chat.pinned if other != number), number]
    return True


async def unpin_message(state: TelegramState, arguments: CallArguments) -> bool:
    """Unpin a message, or the one that was pinned last."""
    chat = _pinnable(state, arguments)
    number = arguments.number("message_id") or next(reversed(chat.pinned), 0)
    if number not in chat.messages:
        raise bad_request("message to unpin not found")
    chat.pinned = [other for other in chat.pinned if other != number]
    return True


async def unpin_all(state: TelegramState, arguments: CallArguments) -> bool:
    _pinnable(state, arguments).pinned = []
    return True


def _pinnable(state: TelegramState, arguments: CallArguments) -> Chat:
    chat = state.reachable(state.chat(arguments))
    if not chat.private and chat.bot_status != "administrator":
        raise bad_request("not enough rights to manage pinned messages in the chat")
    return chat


METHODS: dict[str, Method] = {
    "forwardMessage": forward_message,
    "forwardMessages": send_many(_forwarded),
    "copyMessage": copy_message,
    "copyMessages": send_many(_copied),
    "pinChatMessage": pin_message,
    "unpinChatMessage": unpin_message,
    "unpinAllChatMessages": unpin_all,
}
