"""Bot API methods for stickers: sending one, and the sets that the bot made."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, Upload, bad_request
from genlock.sandbox.telegram.messages import Method, send_media
from genlock.sandbox.telegram.state import TelegramState
from genlock.sandbox.telegram.stickers import STICKERS, store_sticker

StickerSet = dict[str, Any]
Sticker = dict[str, Any]
STICKERS_MAX = 120
TYPES = ("regular", "mask", "custom_emoji")
#: the set of Telegram that icons of topics are chosen from
ICON_SET = "Topics"
ICONS = ("📰", "💡", "⚡️", "🎙", "🔝", "🗣", "🆒", "❗️")
FIRST_EMOJI_ID = 5_000_000_000_000_000_001


async def get_set(state: TelegramState, arguments: CallArguments) -> Any:
    return _set(state, arguments)


async def create_set(state: TelegramState, arguments: CallArguments) -> bool:
    name, kind = arguments.text("name"), arguments.text("sticker_type") or "regular"
    stickers = arguments.objects("stickers", "stickers")
    _check_owner(state, arguments)
    if not name.endswith(f"_by_{state.bot['username']}"):
        raise bad_request("invalid sticker set name is specified")
    if name in state.sticker_sets:
        raise bad_request("sticker set name is already occupied")
    if kind not in TYPES:
        raise bad_request("unsupported sticker type specified")
    if not stickers:
        raise bad_request("STICKERS_EMPTY")
    made: StickerSet = {"name": name, "title": arguments.text("title"), "sticker_type": kind, "stickers": []}
    for sticker in stickers:
        made["stickers"].append(await _made(state, made, sticker, arguments))
    state.sticker_sets[name] = made
    return True


async def delete_set(state: TelegramState, arguments: CallArguments) -> bool:
    del state.sticker_sets[_set(state, arguments)["name"]]
    return True


async def set_title(state: TelegramState, arguments: CallArguments) -> bool:
    _set(state, arguments)["title"] = arguments.text("title")
    return True


async def set_thumbnail(state: TelegramState, arguments: CallArguments) -> bool:
    """Set the thumbnail, or the first sticker's if there is none."""
    found = _set(state, arguments)
    found.pop("thumbnail", None)
    given = arguments.media("thumbnail") if arguments.has("thumbnail") else ""
    if given:
        stored = await state.media.take("sticker", given, {})
        found |= {"thumbnail": stored.media_object["thumbnail"]} if "thumbnail" in stored.media_object else {}
    return True


async def upload_file(state: TelegramState, arguments: CallArguments) -> Any:
    _check_owner(state, arguments)
    upload = arguments.media("sticker")
    if not isinstance(upload, Upload):
        raise bad_request("sticker file must be uploaded as an InputFile")
    stored = await state.media.take("sticker", upload, {})
    return {"file_id": stored.id, "file_unique_id": stored.unique, "file_size": stored.size}


# stickers of a set


async def add_sticker(state: TelegramState, arguments: CallArguments) -> bool:
    _check_owner(state, arguments)
    found = _set(state, arguments)
    if len(found["stickers"]) >= STICKERS_MAX:
        raise bad_request("STICKERS_TOO_MUCH")
    found["stickers"].append(await _made(state, found, arguments.object("sticker", "sticker"), arguments))
    return True


async def replace_sticker(state: TelegramState, arguments: CallArguments) -> bool:
    found, old = _sticker(state, arguments, "old_sticker")
    new = await _made(state, found, arguments.object("sticker", "sticker"), arguments)
    found["stickers"][found["stickers"].index(old)] = new
    return True


async def move_sticker(state: TelegramState, arguments: CallArguments) -> bool:
    found, sticker = _sticker(state, arguments)
    found["stickers"].remove(sticker)
    found["stickers"].insert(max(arguments.number("position"), 0), sticker)
    return True


async def delete_sticker(state: TelegramState, arguments: CallArguments) -> bool:
    """Delete a sticker; the last one takes its set with it."""
    found, sticker = _sticker(state, arguments)
    found["stickers"].remove(sticker)
    if not found["stickers"]:
        del state.sticker_sets[found["name"]]
    return True


async def set_emoji(state: TelegramState, arguments: CallArguments) -> bool:
    _, sticker = _sticker(state, arguments)
    sticker["emoji"] = _first_emoji(arguments)
    return True


async def set_keywords(state: TelegramState, arguments: CallArguments) -> bool:
    """Accept them: nothing shows the keywords of a sticker."""
    _sticker(state, arguments)
    return True


async def set_mask_position(state: TelegramState, arguments: CallArguments) -> bool:
    found, sticker = _sticker(state, arguments)
    if found["sticker_type"] != "mask":
        raise bad_request("STICKER_MASK_COORDS_NOT_SUPPORTED")
    sticker["mask_position"] = arguments.object("mask_position", "mask position")
    return True


# custom emoji


async def get_icons(state: TelegramState, _: CallArguments) -> Any:
    """Return the first icons of Telegram's own list; here they look like the faces that users can send."""
    if ICON_SET not in state.sticker_sets:
        stored = [await store_sticker(state.files, emoji) for emoji in STICKERS]
        more = {"type": "custom_emoji", "set_name": ICON_SET}
        icons = [
            sticker.media_object | more | {"emoji": emoji, "custom_emoji_id": str(FIRST_EMOJI_ID + place)}
            for place, (sticker, emoji) in enumerate(zip(stored, ICONS, strict=True))
        ]
        state.sticker_sets[ICON_SET] = {
            "name": ICON_SET,
            "title": ICON_SET,
            "sticker_type": "custom_emoji",
            "stickers": icons,
        }
    return state.sticker_sets[ICON_SET]["stickers"]


async def get_custom_emoji(state: TelegramState, arguments: CallArguments) -> Any:
    wanted = arguments.json("custom_emoji_ids", "custom emoji identifiers")
    if not isinstance(wanted, list):
        raise bad_request("expected an Array of custom emoji identifiers")
    known = [sticker for found in state.sticker_sets.values() for sticker in found["stickers"]]
    return [sticker for number in wanted for sticker in known if sticker.get("custom_emoji_id") == number]


async def _made(state: TelegramState, found: StickerSet, given: dict[str, Any], arguments: CallArguments) -> Sticker:
    """Return a sticker for a set, made of an InputSticker."""
    item = CallArguments(given, arguments.uploads)
    source = item.media("sticker")
    if not source:
        raise bad_request("can't parse InputSticker: sticker not found")
    stored = await state.media.take("sticker", source, {})
    sticker: Sticker = stored.media_object | {"set_name": found["name"], "type": found["sticker_type"]}
    sticker["emoji"] = _first_emoji(item)
    if found["sticker_type"] == "mask" and item.has("mask_position"):
        sticker["mask_position"] = item.object("mask_position", "mask position")
    if found["sticker_type"] == "custom_emoji":
        sticker["custom_emoji_id"] = str(state.rng.randrange(10**18, 9 * 10**18))
    return sticker


def _first_emoji(arguments: CallArguments) -> str:
    emoji = arguments.json("emoji_list", "emoji list")
    if not isinstance(emoji, list) or not emoji:
        raise bad_request("invalid sticker emojis")
    return str(emoji[0])


def _check_owner(state: TelegramState, arguments: CallArguments) -> None:
    if arguments.number("user_id") not in state.users:
        raise bad_request("user not found")


def _set(state: TelegramState, arguments: CallArguments) -> StickerSet:
    found = state.sticker_sets.get(arguments.text("name"))
    if found is None:
        raise bad_request("STICKERSET_INVALID")
    return found


def _sticker(state: TelegramState, arguments: CallArguments, field: str = "sticker") -> tuple[StickerSet, Sticker]:
    """Return a sticker of a set of the bot, and the set."""
    number = arguments.text(field)
    if not number:
        raise bad_request("sticker is not specified")
    for found in state.sticker_sets.values():
        for sticker in found["stickers"]:
            if sticker["file_id"] == number:
                return found, sticker
    raise bad_request("STICKER_INVALID")


METHODS: dict[str, Method] = {
    "sendSticker": send_media("sticker"),
    "getStickerSet": get_set,
    "createNewStickerSet": create_set,
    "deleteStickerSet": delete_set,
    "setStickerSetTitle": set_title,
    "setStickerSetThumbnail": set_thumbnail,
    "setCustomEmojiStickerSetThumbnail": set_thumbnail,
    "uploadStickerFile": upload_file,
    "addStickerToSet": add_sticker,
    "replaceStickerInSet": replace_sticker,
    "setStickerPositionInSet": move_sticker,
    "deleteStickerFromSet": delete_sticker,
    "setStickerEmojiList": set_emoji,
    "setStickerKeywords": set_keywords,
    "setStickerMaskPosition": set_mask_position,
    "getForumTopicIconStickers": get_icons,
    "getCustomEmojiStickers": get_custom_emoji,
}
