"""Sending: text, every kind of media, albums, forwards and copies."""

from collections.abc import Awaitable, Callable
from typing import Any

from genlock.sandbox.telegram.markup import Markup, read_markup
from genlock.sandbox.telegram.media import FETCH_FAILED, WRONG_TYPE, Media, content_of
from genlock.sandbox.telegram.text import read_caption, read_entities, read_text
from genlock.sandbox.telegram.wire import Given, Refused, bad_request
from genlock.sandbox.telegram.world import Chat, Message, World

Method = Callable[[World, Given], Awaitable[Any]]
ALBUM_MAX = 10
MEDIA_KINDS = {"photo", "video", "audio", "document", "animation"}
#: what Telegram behind the Bot API refuses is told with its number and in its own words
SERVER_ERRORS = {
    FETCH_FAILED: "WEBPAGE_CURL_FAILED",
    WRONG_TYPE: "WEBPAGE_MEDIA_EMPTY",
    "IMAGE_PROCESS_FAILED": "IMAGE_PROCESS_FAILED",
    "PHOTO_INVALID_DIMENSIONS": "PHOTO_INVALID_DIMENSIONS",
    "VIDEO_CONTENT_TYPE_INVALID": "VIDEO_CONTENT_TYPE_INVALID",
}
ACTIONS = {
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
}
#: how the rights to send each kind are called
RIGHTS = {
    "text": "text messages",
    "photo": "photos",
    "video": "videos",
    "animation": "animations",
    "audio": "audios",
    "voice": "voice notes",
    "document": "documents",
}


async def send_message(world: World, given: Given) -> Any:
    content, markup = read_text(given), read_markup(given)
    return _posted(world, open_chat(world, given, "text"), given, content, markup)


def send_media(kind: str) -> Method:
    async def send(world: World, given: Given) -> Any:
        caption, markup = caption_of(given), read_markup(given)
        chat = open_chat(world, given, kind)
        where(chat, given)
        stored = await world.media.take(kind, given.media(kind), given.values)
        world.writable(chat)
        return _posted(world, chat, given, content_of(stored) | caption | shown_as(given), markup)

    return send


async def send_album(world: World, given: Given) -> Any:
    """All or nothing: one bad item fails the call."""
    items = given.objects("media", "media")
    kinds = _album_kinds(items)
    chat = open_chat(world, given, kinds[0])
    answered = where(chat, given)
    contents = []
    for number, item in enumerate(items, 1):
        try:
            contents.append(await input_media(world.media, item, given))
        except Refused as refused:
            reason = SERVER_ERRORS.get(refused.description.removeprefix("Bad Request: "))
            if reason is None:
                raise
            raise bad_request(f'failed to send message #{number} with the error message "{reason}"') from None
    world.writable(chat)
    quiet = given.flag("disable_notification")
    album = str(world.rng.randrange(10**16, 10**17)) if len(contents) > 1 else None
    posted = [
        world.post(chat, world.bot_id, content, silent=quiet or place > 0, album=album, **answered)
        for place, content in enumerate(contents)
    ]
    return [world.show(message) for message in posted]


def _album_kinds(items: list[Any]) -> list[str]:
    """The kind of each item, if they go together."""
    if not items:
        raise bad_request("there are no messages to send")
    if len(items) > ALBUM_MAX:
        raise bad_request("too many messages to send as an album")
    kinds = [media_kind(item) for item in items]
    if "animation" in kinds:
        raise bad_request("can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup")
    alone = [kind for kind in kinds if kind in {"audio", "document"}]
    if alone and len(set(kinds)) > 1:
        raise bad_request(f"{alone[0]} can't be mixed with other media types")
    return kinds


def media_kind(item: Any) -> str:
    kind = str(item.get("type")) if isinstance(item, dict) else ""
    if kind in MEDIA_KINDS:
        return kind
    why = "is not allowed" if kind == "voice_note" else "is unsupported"
    raise bad_request(f'can\'t parse InputMedia: type "{kind}" {why}')


async def input_media(media: Media, item: Any, given: Given) -> dict[str, Any]:
    """The content of one InputMedia."""
    kind = media_kind(item)
    try:
        source = given.attached(str(item.get("media", "")))
    except Refused:
        source = ""
    if source == "":
        raise bad_request("can't parse InputMedia: media not found")
    stored = await media.take(kind, source, item)
    nested = Given(item)
    return content_of(stored) | caption_of(nested) | shown_as(nested)


def caption_of(given: Given) -> dict[str, Any]:
    entities = read_entities(given, "caption_entities")
    return read_caption(given.text("caption"), given.text("parse_mode"), entities)


def shown_as(given: Given) -> dict[str, Any]:
    flags = {"has_spoiler": "has_media_spoiler", "show_caption_above_media": "show_caption_above_media"}
    return {told: True for asked, told in flags.items() if given.flag(asked)}


async def forward_message(world: World, given: Given) -> Any:
    chat = world.writable(world.chat(given))
    source = _source(world, given, "message to forward not found")
    origin = {"type": "user", "date": source.date, "sender_user": world.show_user(source.sender)}
    posted = world.post(
        chat, world.bot_id, dict(source.content), silent=given.flag("disable_notification"), forwarded=origin
    )
    return world.show(posted)


async def copy_message(world: World, given: Given) -> Any:
    chat = world.writable(world.chat(given))
    source = _source(world, given, "message to copy not found")
    content = dict(source.content)
    if given.has("caption") and source.kind != "text":
        content = {name: value for name, value in content.items() if not name.startswith("caption")}
        content |= caption_of(given)
    shown = _posted(world, chat, given, content, read_markup(given))
    return {"message_id": shown["message_id"]}


def _source(world: World, given: Given, missing: str) -> Message:
    message = world.chat(given, "from_chat_id").messages.get(given.number("message_id"))
    if message is None or message.kind == "service":
        raise bad_request(missing)
    return message


async def send_chat_action(world: World, given: Given) -> bool:
    chat = world.writable(world.chat(given))
    if given.text("action") not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    world.events.add("action", chat=chat.id, action=given.text("action"))
    return True


async def send_draft(world: World, given: Given) -> bool:
    """Text that is being written: shown, and gone with the next message."""
    chat = world.writable(world.chat(given))
    if not chat.private:
        raise bad_request("drafts can be sent to private chats only")
    world.events.add("draft", chat=chat.id, draft=given.number("draft_id"), text=given.text("text"))
    return True


async def set_reaction(world: World, given: Given) -> bool:
    chat = world.reachable(world.chat(given))
    message = chat.messages.get(given.number("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reaction = given.objects("reaction", "reaction types")
    message.reactions.pop(world.bot_id, None)
    if reaction:
        message.reactions[world.bot_id] = str(reaction[0].get("emoji", ""))
    world.events.add("reaction", person=world.bot_id, chat=chat.id, message_id=message.id, reaction=reaction)
    return True


def open_chat(world: World, given: Given, kind: str) -> Chat:
    chat = world.writable(world.chat(given))
    if kind in chat.forbidden:
        raise bad_request(f"not enough rights to send {RIGHTS[kind]} to the chat")
    return chat


def where(chat: Chat, given: Given) -> dict[str, Any]:
    """The message that is answered and the topic."""
    return {"reply_to": _replied(chat, given), "thread": _thread(chat, given)}


def _replied(chat: Chat, given: Given) -> int | None:
    reply = given.object("reply_parameters", "reply parameters")
    number = Given(reply).number("message_id") or given.number("reply_to_message_id")
    if not number or number in chat.messages:
        return number or None
    if reply.get("allow_sending_without_reply") or given.flag("allow_sending_without_reply"):
        return None
    raise bad_request("message to be replied not found")


def _thread(chat: Chat, given: Given) -> int | None:
    number = given.number("message_thread_id")
    if not number:
        return None
    topic = chat.topics.get(number)
    if topic is None:
        raise bad_request("message thread not found")
    if topic.closed:
        raise bad_request("TOPIC_CLOSED")
    return number


def _posted(world: World, chat: Chat, given: Given, content: dict[str, Any], markup: Markup | None) -> dict[str, Any]:
    message = world.post(
        chat,
        world.bot_id,
        content,
        silent=given.flag("disable_notification"),
        markup=markup,
        **where(chat, given),
    )
    return world.show(message)


METHODS: dict[str, Method] = {
    "sendMessage": send_message,
    "sendMediaGroup": send_album,
    "forwardMessage": forward_message,
    "copyMessage": copy_message,
    "sendChatAction": send_chat_action,
    "sendMessageDraft": send_draft,
    "setMessageReaction": set_reaction,
    **{f"send{kind.capitalize()}": send_media(kind) for kind in RIGHTS if kind != "text"},
}
