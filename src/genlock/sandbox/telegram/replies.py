"""Replies of the bot: the message it answers, in the same chat or another one, and the part of it that is quoted."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import KINDS, Chat, Message
from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.text import formatted, read_entities


def reply_fields(state: TelegramState, chat: Chat, arguments: CallArguments) -> dict[str, Any]:
    """Return the fields of a new message that answers another one; none if it answers no message."""
    parameters = arguments.json("reply_parameters", "reply parameters")
    if arguments.has("reply_parameters") and not isinstance(parameters, dict):
        raise bad_request("object expected as reply parameters")
    given = CallArguments(parameters or {})
    number = given.number("message_id") or arguments.number("reply_to_message_id")
    if number <= 0:
        return {}
    place = state.readable(state.chat(given)) if given.has("chat_id") else chat
    answered = place.messages.get(number)
    if answered is None:
        if given.flag("allow_sending_without_reply") or arguments.flag("allow_sending_without_reply"):
            return {}
        raise bad_request("message to be replied not found")
    quote = _quote(given, answered)
    if place is chat:
        return {"reply_to": number, "quote": quote}
    return {"external_reply": _external(state, place, answered), "quote": quote}


def _quote(given: CallArguments, answered: Message) -> dict[str, Any] | None:
    """Return the quoted part, which must be in the message as it is given."""
    if not given.has("quote"):
        return None
    entities = read_entities(given, "quote_entities")
    text, entities = formatted(given.text("quote"), given.text("quote_parse_mode"), entities)
    place = answered.text.find(text)
    if not text or place < 0:
        raise bad_request("QUOTE_TEXT_INVALID")
    quote = {"text": text, "position": utf16(answered.text[:place]), "is_manual": True}
    return quote | ({"entities": entities} if entities else {})


def _external(state: TelegramState, chat: Chat, answered: Message) -> dict[str, Any]:
    """Return the field `external_reply`: what is shown of a message of another chat. Its text is not."""
    shown = {kind: answered.content[kind] for kind in KINDS if kind in answered.content and kind != "text"}
    place = {"chat": state.show_chat(chat), "message_id": answered.id} if chat.counts_messages else {}
    return {"origin": origin_of(state, answered)} | place | shown


def origin_of(state: TelegramState, source: Message) -> dict[str, Any]:
    """Return who wrote a message first, for its forwarded copies and for replies to it in other chats."""
    if source.forwarded:
        return source.forwarded
    chat = state.chats[source.chat]
    if chat.type == "channel":
        return {"type": "channel", "date": source.date, "chat": state.show_chat(chat), "message_id": source.id}
    return {"type": "user", "date": source.date, "sender_user": state.show_user(source.sender)}
