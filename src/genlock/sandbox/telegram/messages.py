"""Bot API methods that send: text, media, albums, chat actions, drafts and reactions."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from genlock.sandbox.telegram.api_call import ApiError, CallArguments, Upload, bad_request
from genlock.sandbox.telegram.chats import Chat, Message
from genlock.sandbox.telegram.markup import check_public, is_inline, read_markup
from genlock.sandbox.telegram.media import FETCH_FAILED, WRONG_TYPE, Media, content_of
from genlock.sandbox.telegram.replies import reply_fields
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.text import Use, formatted, read_caption, read_entities, read_text

Method = Callable[[TelegramState, CallArguments], Awaitable[Any]]
ALBUM_MAX = 10
IDS_MAX = 100
NUMBER_MAX = 2**31 - 1
#: a number as the server reads it: without leading zeros
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,9}")
MEDIA_KINDS = {"photo", "live_photo", "video", "audio", "document", "animation"}
#: errors inside an album are reported with the item's number and these codes
SERVER_ERRORS = {
    FETCH_FAILED: "WEBPAGE_CURL_FAILED",
    WRONG_TYPE: "WEBPAGE_MEDIA_EMPTY",
    "IMAGE_PROCESS_FAILED": "IMAGE_PROCESS_FAILED",
    "PHOTO_INVALID_DIMENSIONS": "PHOTO_INVALID_DIMENSIONS",
    "VIDEO_CONTENT_TYPE_INVALID": "VIDEO_CONTENT_TYPE_INVALID",
}
#: older names of actions
OLD_ACTIONS = {
    "record_audio": "record_voice",
    "upload_audio": "upload_voice",
    "pick_up_location": "find_location",
}
ACTIONS = {
    name: name
    for name in (
        *("typing", "cancel", "choose_sticker", "find_location", "upload_photo", "upload_document"),
        *("record_video", "upload_video", "record_voice", "upload_voice", "record_video_note", "upload_video_note"),
    )
} | OLD_ACTIONS
#: names of the rights to send each kind, used in errors
RIGHTS = {
    "text": "text messages",
    "photo": "photos",
    "video": "videos",
    "animation": "animations",
    "audio": "music",
    "voice": "voice notes",
    "document": "documents",
    "video_note": "video notes",
    "sticker": "stickers",
    "live_photo": "photos",
    "poll": "polls",
    "dice": "dice",
    "location": "locations",
    "venue": "venues",
    "contact": "contacts",
    "invoice": "invoice messages",
}
#: kinds that need the right to send another kind
NEEDED_RIGHTS = {
    **dict.fromkeys(("location", "venue", "contact", "invoice"), "text"),
    "live_photo": "photo",
    "dice": "sticker",
}
PICTURES = ("photo", "video", "animation")
CAPTION_FIELDS = ("caption", "caption_entities", "show_caption_above_media")
SENT_FILES = ("photo", "video", "animation", "audio", "voice", "document", "video_note", "live_photo")


async def send_message(state: TelegramState, arguments: CallArguments) -> Any:
    content, markup = read_text(arguments), read_markup(arguments)
    chat = chat_for_sending(state, arguments, "text")
    return state.show(post_message(state, chat, arguments, content, markup=markup))


def send_media(kind: str) -> Method:
    async def send(state: TelegramState, arguments: CallArguments) -> Any:
        caption, markup = caption_of(arguments), read_markup(arguments)
        chat = chat_for_sending(state, arguments, kind)
        reply_and_thread(state, chat, arguments)
        shown = await media_content(state.media, kind, arguments.media(kind), arguments)
        state.writable(chat)
        content = shown | caption | display_flags(arguments, shown | caption)
        return state.show(post_message(state, chat, arguments, content, markup=markup))

    return send


async def send_album(state: TelegramState, arguments: CallArguments) -> Any:
    """Send an album. One bad item fails the whole call."""
    arguments.required("media")
    items = arguments.json("media", "media")
    if not isinstance(items, list):
        raise bad_request("expected an Array of InputMedia")
    kinds = _album_kinds(items)
    chat = chat_for_sending(state, arguments, kinds[0])
    answered = reply_and_thread(state, chat, arguments)
    contents = []
    for number, item in enumerate(items, 1):
        try:
            contents.append(await input_media(state.media, item, arguments))
        except ApiError as refused:
            reason = SERVER_ERRORS.get(refused.description.removeprefix("Bad Request: "))
            if reason is None:
                raise
            raise bad_request(f'failed to send message #{number} with the error message "{reason}"') from None
    state.writable(chat)
    quiet, protected = arguments.flag("disable_notification"), arguments.flag("protect_content")
    album = new_album(state) if len(contents) > 1 else None
    posted = [
        state.post(chat, state.bot_id, content, silent=quiet or place > 0, album=album, protected=protected, **answered)
        for place, content in enumerate(contents)
    ]
    return [state.show(message) for message in posted]


def new_album(state: TelegramState) -> str:
    return str(state.rng.randrange(10**16, 10**17))


def _album_kinds(items: list[Any]) -> list[str]:
    """Kinds of the items. Raises if they cannot be in one album."""
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
    if not isinstance(item, dict):
        raise bad_request("can't parse InputMedia: expected an Object")
    _check_caption(CallArguments(item))
    if "type" not in item:
        raise bad_request("can't parse InputMedia: Can't find field \"type\"")
    kind = str(item["type"])
    if kind in MEDIA_KINDS:
        return kind
    why = "is not allowed" if kind == "voice_note" else "is unsupported"
    raise bad_request(f'can\'t parse InputMedia: type "{kind}" {why}')


def _check_caption(item: CallArguments) -> None:
    """Raise ApiError if a caption cannot be read: the server says so of the media. Its length is checked later."""
    try:
        formatted(item.text("caption"), item.text("parse_mode"), read_entities(item, "caption_entities"))
    except ApiError as refused:
        words = refused.description.removeprefix("Bad Request: ")
        raise bad_request(f"can't parse InputMedia: {words[0].upper()}{words[1:]}") from None


async def input_media(media: Media, item: Any, arguments: CallArguments, use: Use = "send") -> dict[str, Any]:
    """Return the content of one InputMedia."""
    kind, nested = media_kind(item), CallArguments(item, arguments.uploads)
    content = await media_content(media, kind, media_source(item, arguments), nested) | caption_of(nested, use)
    return content | display_flags(nested, content)


def media_source(item: dict[str, Any], arguments: CallArguments) -> Upload | str:
    """Return the file of one InputMedia: an upload, or a URL or file id."""
    try:
        source = arguments.attached(str(item.get("media", "")))
    except ApiError:
        source = ""
    if source == "":
        raise bad_request("can't parse InputMedia: media not found")
    return source


async def media_content(media: Media, kind: str, source: Upload | str, arguments: CallArguments) -> dict[str, Any]:
    """Return the fields of a message that shows the file, and what else the arguments give to show with it."""
    stored = await media.take(kind, source, arguments.values, thumbnail_of(arguments))
    if kind == "live_photo":
        photo = (await media.take("photo", arguments.media("photo"), {})).media_object
        return {"photo": photo, "live_photo": stored.media_object | {"photo": photo}}
    content = content_of(stored)
    if "video" in content and arguments.has("cover"):
        cover = await media.take("photo", arguments.media("cover"), {})
        content = {"video": content["video"] | {"cover": cover.media_object}}
    if "video" in content and arguments.number("start_timestamp"):
        content = {"video": content["video"] | {"start_timestamp": arguments.number("start_timestamp")}}
    return content


def thumbnail_of(arguments: CallArguments) -> Upload | None:
    """Return the uploaded thumbnail. Telegram ignores one that is not uploaded."""
    if not arguments.has("thumbnail"):
        return None
    thumbnail = arguments.media("thumbnail")
    return thumbnail if isinstance(thumbnail, Upload) else None


def caption_of(arguments: CallArguments, use: Use = "send") -> dict[str, Any]:
    entities = read_entities(arguments, "caption_entities")
    return read_caption(arguments.text("caption"), arguments.text("parse_mode"), entities, use)


def without_caption(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in CAPTION_FIELDS}


def display_flags(arguments: CallArguments, content: dict[str, Any]) -> dict[str, bool]:
    """Return how pictures are shown: behind a spoiler, or below their caption. Other kinds ignore it."""
    spoiler = arguments.flag("has_spoiler") and any(kind in content for kind in PICTURES)
    below = arguments.flag("show_caption_above_media") and any(kind in content for kind in (*PICTURES, "paid_media"))
    flags = {"has_media_spoiler": spoiler, "show_caption_above_media": below and "caption" in content}
    return {name: True for name, on in flags.items() if on}


async def send_chat_action(state: TelegramState, arguments: CallArguments) -> bool:
    action = arguments.text("action").lower()
    if action not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    chat = state.writable(state.chat(arguments))
    state.events.add("action", chat=chat.id, action=ACTIONS[action])
    return True


async def send_draft(state: TelegramState, arguments: CallArguments) -> bool:
    """Show a draft, which the next message replaces."""
    chat = state.writable(state.chat(arguments))
    if not chat.private:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    state.events.add("draft", chat=chat.id, draft=arguments.number("draft_id"), text=arguments.text("text"))
    return True


async def set_reaction(state: TelegramState, arguments: CallArguments) -> bool:
    chat = state.reachable(state.chat(arguments))
    message = chat.messages.get(arguments.number("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reaction = arguments.objects("reaction", "reaction types")
    message.reactions.pop(state.bot_id, None)
    if reaction:
        message.reactions[state.bot_id] = str(reaction[0].get("emoji", ""))
    state.events.add("reaction", person=state.bot_id, chat=chat.id, message_id=message.id, reaction=reaction)
    return True


def chat_for_sending(state: TelegramState, arguments: CallArguments, kind: str) -> Chat:
    chat = state.writable(state.chat(arguments))
    check_right(chat, kind)
    return chat


def is_forbidden(chat: Chat, kind: str) -> bool:
    """Whether the group keeps its members from sending this kind. Administrators may send everything."""
    return chat.bot_status != "administrator" and NEEDED_RIGHTS.get(kind, kind) in chat.forbidden


def check_right(chat: Chat, kind: str) -> None:
    if is_forbidden(chat, kind):
        raise bad_request(f"not enough rights to send {RIGHTS[kind]} to the chat")


def reply_and_thread(state: TelegramState, chat: Chat, arguments: CallArguments) -> dict[str, Any]:
    """Return the fields of a message that say what it answers, and in which topic."""
    thread = _thread(chat, arguments)
    return {"thread": thread} | reply_fields(state, chat, arguments)


def _thread(chat: Chat, arguments: CallArguments) -> int | None:
    """Return the topic. Groups without topics ignore it, except a private chat."""
    number = arguments.number("message_thread_id")
    if not number or not (chat.forum or chat.private):
        return None
    topic = chat.topics.get(number)
    if topic is None:
        raise bad_request("message thread not found")
    if topic.closed and chat.bot_status != "administrator":
        raise bad_request("TOPIC_CLOSED")
    return number


def message_numbers(arguments: CallArguments) -> list[int]:
    """Return the argument `message_ids`."""
    numbers = arguments.json("message_ids", "message_ids")
    if not numbers:
        raise bad_request("message identifiers are not specified")
    if not isinstance(numbers, list):
        raise bad_request("expected an Array of message identifiers")
    if len(numbers) > IDS_MAX:
        raise bad_request("too many message identifiers specified")
    return [_message_number(number) for number in numbers]


def _message_number(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        raise bad_request("message identifier must be a Number")
    if not WHOLE_NUMBER.fullmatch(str(number)) or abs(int(number)) > NUMBER_MAX:
        raise bad_request("can't parse message identifier as a Number")
    if int(number) <= 0:
        raise bad_request("invalid message identifier specified")
    return int(number)


def post_message(
    state: TelegramState, chat: Chat, arguments: CallArguments, content: dict[str, Any], **more: Any
) -> Message:
    if chat.type == "channel" and not is_inline(more.get("markup")):
        raise bad_request("inline keyboard expected")
    if not chat.private:
        check_public(more.get("markup"))
    return state.post(
        chat,
        state.bot_id,
        content,
        silent=arguments.flag("disable_notification"),
        protected=arguments.flag("protect_content"),
        **reply_and_thread(state, chat, arguments),
        **more,
    )


METHODS: dict[str, Method] = {
    "sendMessage": send_message,
    "sendMediaGroup": send_album,
    "sendChatAction": send_chat_action,
    "sendMessageDraft": send_draft,
    "setMessageReaction": set_reaction,
    **{"send" + kind.title().replace("_", ""): send_media(kind) for kind in SENT_FILES},
}
