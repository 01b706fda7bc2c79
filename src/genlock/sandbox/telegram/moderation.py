"""Bot API methods of a group's administrator: ban and restrict members, and set what all members may send."""

from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import Chat
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.profile import OTHER_PERMISSIONS, SENT_KINDS, member_of
from genlock.sandbox.telegram.state import TelegramState

#: a shorter or longer ban or restriction has no end
LIMITED_SECONDS = (30, 366 * 86_400)
MEDIA = ("audios", "documents", "photos", "videos", "video_notes", "voice_notes")


async def ban_member(state: TelegramState, arguments: CallArguments) -> bool:
    """Remove a user. A basic group has no list of banned users."""
    chat, number = _chat(state, arguments), _user(arguments)
    _check_target(state, chat, number)
    old = member_of(state, chat, number)
    chat.members.discard(number)
    chat.restricted.pop(number, None)
    if chat.counts_messages:
        chat.banned[number] = _until(state, arguments)
    return _changed(state, chat, number, old)


async def unban_member(state: TelegramState, arguments: CallArguments) -> bool:
    """End a ban. Unless `only_if_banned` is set, a member is removed, but may come back."""
    chat, number = _chat(state, arguments), _user(arguments)
    if not chat.counts_messages:
        raise bad_request("method is available for supergroup and channel chats only")
    if arguments.flag("only_if_banned") and number not in chat.banned:
        return True
    _check_target(state, chat, number)
    old = member_of(state, chat, number)
    chat.banned.pop(number, None)
    chat.members.discard(number)
    return _changed(state, chat, number, old)


async def restrict_member(state: TelegramState, arguments: CallArguments) -> bool:
    """Limit what a member may do; with all permissions the limits end."""
    permissions = _permissions(arguments)
    chat, number = _chat(state, arguments), _user(arguments)
    if chat.type != "supergroup":
        raise bad_request("method is available only for supergroups")
    _check_target(state, chat, number)
    old = member_of(state, chat, number)
    chat.restricted.pop(number, None)
    if not all(permissions.values()):
        chat.restricted[number] = permissions | {"until_date": _until(state, arguments)}
    return _changed(state, chat, number, old)


async def set_permissions(state: TelegramState, arguments: CallArguments) -> bool:
    permissions = _permissions(arguments)
    chat = _chat(state, arguments)
    if chat.private or chat.type == "channel":
        raise bad_request(f"can't change {chat.type} chat permissions")
    if chat.bot_status != "administrator":
        raise bad_request("not enough rights to change chat permissions")
    chat.forbidden = {kind for name, kind in SENT_KINDS.items() if not permissions[f"can_send_{name}"]}
    chat.forbidden |= set() if permissions["can_send_other_messages"] else {"sticker", "animation"}
    chat.denied = {name for name in OTHER_PERMISSIONS if not permissions[name]}
    return True


async def set_title(state: TelegramState, arguments: CallArguments) -> bool:
    """Refuse: the bot appoints no administrators, so there is none whose title it could change."""
    chat, number = _chat(state, arguments), _user(arguments)
    if chat.private or chat.type == "channel":
        raise bad_request("method is available only for groups and supergroups")
    if number == chat.creator:
        raise bad_request("only the owner can edit their custom title")
    itself = number == state.bot_id and chat.bot_status == "administrator"
    why = "not enough rights to change custom title of the user" if itself else "user is not an administrator"
    raise bad_request(why)


def _chat(state: TelegramState, arguments: CallArguments) -> Chat:
    return state.deletable(state.chat(arguments))


def _user(arguments: CallArguments) -> int:
    if arguments.number("user_id") <= 0:
        raise bad_request("invalid user_id specified")
    return arguments.number("user_id")


def _check_target(state: TelegramState, chat: Chat, number: int) -> None:
    """Raise unless the bot may change the status of the user."""
    if chat.private:
        raise bad_request("chat member status can't be changed in private chats")
    if number == state.bot_id:
        raise bad_request("can't restrict self")
    if number not in state.users:
        raise bad_request("PARTICIPANT_ID_INVALID")
    if number == chat.creator:
        raise bad_request("can't remove chat owner")
    if chat.bot_status != "administrator":
        raise bad_request("not enough rights to restrict/unrestrict chat member")


def _until(state: TelegramState, arguments: CallArguments) -> int:
    until = arguments.number("until_date")
    shortest, longest = LIMITED_SECONDS
    return until if shortest <= until - state.now() <= longest else 0


def _permissions(arguments: CallArguments) -> dict[str, bool]:
    """Return all permissions. Unless they are set independently, some include others: polls include texts."""
    given = CallArguments(arguments.object("permissions", "permissions"))
    names = [*(f"can_send_{name}" for name in SENT_KINDS), "can_send_other_messages", *OTHER_PERMISSIONS]
    found = {name: given.flag(name) for name in names}
    media = [f"can_send_{name}" for name in MEDIA]
    if not any(map(given.has, media)):
        found |= dict.fromkeys(media, given.flag("can_send_media_messages"))
    if not arguments.flag("use_independent_chat_permissions"):
        if found["can_send_other_messages"] or found["can_add_web_page_previews"]:
            found |= dict.fromkeys((*media, "can_send_messages"), True)
        found["can_send_messages"] |= found["can_send_polls"] or given.flag("can_send_media_messages")
    for name, default in (("manage_topics", "pin_messages"), ("edit_tag", "pin_messages")):
        found[f"can_{name}"] |= not given.has(f"can_{name}") and found[f"can_{default}"]
    found["can_react_to_messages"] |= not given.has("can_react_to_messages") and found["can_send_messages"]
    return found


def _changed(state: TelegramState, chat: Chat, number: int, old: dict[str, Any]) -> bool:
    """Tell the bot of the new status, if it asked for such updates, and the page."""
    change = {"chat": state.show_chat(chat), "from": state.bot, "date": state.now(), "old_chat_member": old}
    change["new_chat_member"] = member_of(state, chat, number)
    if change["new_chat_member"] != old:
        state.updates.add("chat_member", change, f"chat {chat.id}")
        state.events.add("chat", chat=state.show_chat(chat), members=sorted(chat.members), bot_status=chat.bot_status)
    return True


METHODS: dict[str, Method] = {
    "banChatMember": ban_member,
    "kickChatMember": ban_member,
    "unbanChatMember": unban_member,
    "restrictChatMember": restrict_member,
    "setChatPermissions": set_permissions,
    "setChatAdministratorCustomTitle": set_title,
}
