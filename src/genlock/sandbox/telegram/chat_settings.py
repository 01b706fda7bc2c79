"""Bot API methods that change a group's title, description and photo, and the bot's own photo and default rights."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, Upload, bad_request
from genlock.sandbox.telegram.chats import Chat
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.profile import MORE_RIGHTS, RIGHTS
from genlock.sandbox.telegram.state import TelegramState

TITLE_MAX = 128
DESCRIPTION_MAX = 255
#: lists that are empty: simulated users have no gifts, boosts or music in their profile
EMPTY: dict[str, dict[str, Any]] = {
    "getAvailableGifts": {"gifts": []},
    "getUserGifts": {"total_count": 0, "gifts": []},
    "getChatGifts": {"total_count": 0, "gifts": []},
    "getUserChatBoosts": {"boosts": []},
    "getUserProfileAudios": {"total_count": 0, "audios": []},
}


async def set_title(state: TelegramState, arguments: CallArguments) -> bool:
    chat, title = _changeable(state, arguments, "title"), arguments.text("title").strip()[:TITLE_MAX]
    if not title:
        raise bad_request("title must be non-empty")
    if title != chat.title:
        chat.title = title
        _announce(state, chat, {"new_chat_title": title})
    return True


async def set_description(state: TelegramState, arguments: CallArguments) -> bool:
    chat, description = _changeable(state, arguments, "description"), arguments.text("description")
    if len(description) > DESCRIPTION_MAX:
        raise bad_request("CHAT_ABOUT_TOO_LONG")
    if description == chat.description:
        raise bad_request("chat description is not modified")
    chat.description = description
    return True


async def set_photo(state: TelegramState, arguments: CallArguments) -> bool:
    photo = _uploaded_photo(arguments)
    chat = _changeable(state, arguments, "photo")
    sizes = (await state.media.take("photo", photo, {})).media_object
    ends, names = {"small": sizes[0], "big": sizes[-1]}, ("file_id", "file_unique_id")
    chat.photo = {f"{end}_{name}": file[name] for end, file in ends.items() for name in names}
    _announce(state, chat, {"new_chat_photo": sizes})
    return True


async def delete_photo(state: TelegramState, arguments: CallArguments) -> bool:
    chat = _changeable(state, arguments, "photo")
    if not chat.photo:
        raise bad_request("CHAT_NOT_MODIFIED")
    chat.photo = {}
    _announce(state, chat, {"delete_chat_photo": True})
    return True


def _uploaded_photo(arguments: CallArguments) -> Upload:
    photo = arguments.media("photo")
    if not isinstance(photo, Upload):
        raise bad_request("photo must be uploaded as an InputFile" if photo else "there is no photo in the request")
    return photo


def _changeable(state: TelegramState, arguments: CallArguments, what: str) -> Chat:
    chat = state.writable(state.chat(arguments))
    if chat.private:
        raise bad_request(f"can't change private chat {what}")
    if chat.bot_status != "administrator":
        raise bad_request(f"not enough rights to {'set' if what == 'description' else 'change'} chat {what}")
    return chat


def _announce(state: TelegramState, chat: Chat, content: dict[str, Any]) -> None:
    state.post(chat, state.bot_id, content, silent=True)
    state.events.add("chat", chat=state.show_chat(chat), members=sorted(chat.members), bot_status=chat.bot_status)


async def promote_member(state: TelegramState, arguments: CallArguments) -> bool:
    """Refuse: a bot that is made an administrator does not get the right to add others."""
    state.writable(state.chat(arguments))
    raise bad_request("not enough rights")


# the bot


async def set_default_rights(state: TelegramState, arguments: CallArguments) -> bool:
    state.profile[_rights_key(arguments)] = arguments.object("rights", "ChatAdministratorRights")
    return True


async def get_default_rights(state: TelegramState, arguments: CallArguments) -> Any:
    """Return the rights. A channel's administrators cannot be anonymous."""
    rights = state.profile.get(_rights_key(arguments), {})
    more = MORE_RIGHTS["channel" if arguments.flag("for_channels") else "supergroup"]
    names = {*RIGHTS, *more} - {"can_be_edited"}
    shown = {name: bool(rights.get(name)) for name in names}
    return shown | ({"is_anonymous": False} if arguments.flag("for_channels") else {})


def _rights_key(arguments: CallArguments) -> str:
    return f"rights/{'channels' if arguments.flag('for_channels') else 'groups'}"


async def set_my_photo(state: TelegramState, arguments: CallArguments) -> bool:
    photo = arguments.object("photo", "photo")
    if photo.get("type") != "static":
        raise bad_request("invalid profile photo type specified")
    upload = arguments.attached(str(photo.get("photo", "")))
    if not isinstance(upload, Upload):
        raise bad_request("photo must be uploaded as a file")
    stored = await state.media.take("photo", upload, {})
    state.profile["photos"] = [stored.media_object]
    return True


async def remove_my_photo(state: TelegramState, _: CallArguments) -> bool:
    state.profile["photos"] = []
    return True


async def get_user_photos(state: TelegramState, arguments: CallArguments) -> Any:
    """Return the photos of a profile. Simulated users have none."""
    number = arguments.number("user_id")
    if number != state.bot_id and number not in state.users:
        raise bad_request("user not found")
    photos = state.profile.get("photos", []) if number == state.bot_id else []
    start = max(arguments.number("offset"), 0)
    return {"total_count": len(photos), "photos": photos[start : start + arguments.number("limit", 100)]}


def empty(answer: dict[str, Any]) -> Method:
    async def get(_: TelegramState, __: CallArguments) -> Any:
        return answer

    return get


METHODS: dict[str, Method] = {
    "setChatTitle": set_title,
    "setChatDescription": set_description,
    "setChatPhoto": set_photo,
    "deleteChatPhoto": delete_photo,
    "promoteChatMember": promote_member,
    "setMyDefaultAdministratorRights": set_default_rights,
    "getMyDefaultAdministratorRights": get_default_rights,
    "setMyProfilePhoto": set_my_photo,
    "removeMyProfilePhoto": remove_my_photo,
    "getUserProfilePhotos": get_user_photos,
    **{name: empty(answer) for name, answer in EMPTY.items()},
}
