"""Bot API methods about the bot itself, chats, members and files, and answerCallbackQuery."""

import re
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import Chat
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.state import TelegramState

DOWNLOAD_MAX = 20_971_520
QUERY_SECONDS = 60
COMMAND = re.compile("[a-z0-9_]+")
COMMANDS_MAX = 100
WIDE_SCOPES = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
CHAT_SCOPES = ("chat", "chat_administrators", "chat_member")
MENU_BUTTONS = {"default", "commands", "web_app"}
ANSWER_MAX = 200
RIGHTS = (
    *("can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "can_manage_video_chats"),
    *("can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users"),
    *("can_post_stories", "can_edit_stories", "can_delete_stories", "can_send_welcome_messages"),
)
#: further rights by the type of the chat
MORE_RIGHTS = {
    "group": ("can_pin_messages", "can_manage_tags"),
    "supergroup": ("can_pin_messages", "can_manage_tags", "can_manage_topics"),
    "channel": ("can_post_messages", "can_edit_messages", "can_manage_direct_messages"),
}
#: rights that must be given explicitly to an administrator; no bot can edit its own rights
WITHHELD = ("is_anonymous", "can_promote_members", "can_be_edited")
#: permissions of members to send, and the kind of message that each is about
SENT_KINDS = {
    "messages": "text",
    "audios": "audio",
    "documents": "document",
    "photos": "photo",
    "videos": "video",
    "video_notes": "video_note",
    "voice_notes": "voice",
    "polls": "poll",
}
OTHER_PERMISSIONS = (
    *("can_add_web_page_previews", "can_change_info", "can_invite_users", "can_pin_messages", "can_manage_topics"),
    *("can_react_to_messages", "can_edit_tag"),
)
QUERY_EXPIRED = "query is too old and response timeout expired or query ID is invalid"


async def get_me(state: TelegramState, _: CallArguments) -> Any:
    return state.bot | {
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": True,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


async def log_out(_: TelegramState, __: CallArguments) -> bool:
    return True


# commands, name and descriptions


async def set_commands(state: TelegramState, arguments: CallArguments) -> bool:
    commands, scope = arguments.objects("commands", "commands"), _scope(state, arguments)
    read = [_command(command) for command in commands]
    if len(commands) > COMMANDS_MAX:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    if not all(COMMAND.fullmatch(command["command"]) for command in read):
        raise bad_request("BOT_COMMAND_INVALID")
    state.profile["commands"][scope] = read
    state.events.add("profile", profile=state.profile)
    return True


def _command(given: dict[str, Any]) -> dict[str, str]:
    """Return a command without its slash and the spaces around it."""
    for name in ("command", "description"):
        if not isinstance(given.get(name), str):
            raise bad_request(f"can't parse BotCommand: Can't find field \"{name}\"")
    command = given["command"].strip().removeprefix("/")
    description = given["description"].strip()
    for what, text, limit in (("command", command, 32), ("command description", description, 256)):
        if not text:
            raise bad_request(f"{what} must be non-empty")
        if len(text) > limit:
            raise bad_request(f"{what} length must not exceed {limit}")
    return {"command": command, "description": description}


def _check_language(arguments: CallArguments) -> None:
    if not re.fullmatch(r"|[a-z]{2}", arguments.text("language_code")):
        raise bad_request("invalid language code specified")


async def get_commands(state: TelegramState, arguments: CallArguments) -> Any:
    return state.profile["commands"].get(_scope(state, arguments), [])


async def delete_commands(state: TelegramState, arguments: CallArguments) -> bool:
    state.profile["commands"].pop(_scope(state, arguments), None)
    state.events.add("profile", profile=state.profile)
    return True


def _scope(state: TelegramState, arguments: CallArguments) -> str:
    """Return a key for the users and the language that commands are for. Raises if the chat is unknown."""
    given = CallArguments(arguments.object("scope", "BotCommandScope") or {"type": "default"})
    kind, user, place = given.text("type"), given.number("user_id"), ""
    if kind not in {*WIDE_SCOPES, *CHAT_SCOPES}:
        why = "Unsupported type specified" if kind else 'Can\'t find field "type"'
        raise bad_request(f"can't parse BotCommandScope: {why}")
    if kind in CHAT_SCOPES:
        if not given.has("chat_id"):
            raise bad_request("can't parse BotCommandScope: Empty chat_id specified")
        if kind == "chat_member" and user <= 0:
            raise bad_request("can't parse BotCommandScope: Invalid user_id specified")
        place = str(state.members_readable(state.chat(given)).id)
    _check_language(arguments)
    return f"{kind}/{place}/{user if kind == 'chat_member' else ''}/{arguments.text('language_code')}"


#: the longest texts that Telegram takes, in characters
TEXT_MAX = {"name": 64, "description": 512, "short_description": 120}


def text_methods(field: str) -> tuple[Method, Method]:
    """Return the setter and getter of a name or description, per language."""

    async def set_text(state: TelegramState, arguments: CallArguments) -> bool:
        _check_language(arguments)
        if len(arguments.text(field)) > TEXT_MAX[field]:
            raise bad_request(f"BOT_{field.upper()}_TOO_LONG")
        state.profile[f"{field}/{arguments.text('language_code')}"] = arguments.text(field)
        state.events.add("profile", profile=state.profile)
        return True

    async def get_text(state: TelegramState, arguments: CallArguments) -> Any:
        default = state.bot["first_name"] if field == "name" else ""
        plain = state.profile.get(f"{field}/", default)
        return {field: state.profile.get(f"{field}/{arguments.text('language_code')}") or plain}

    return set_text, get_text


async def set_menu_button(state: TelegramState, arguments: CallArguments) -> bool:
    button = arguments.object("menu_button", "menu button") if arguments.has("menu_button") else {"type": "default"}
    if not isinstance(button.get("type"), str):
        raise bad_request("can't parse menu button: Can't find field \"type\"")
    if button["type"] not in MENU_BUTTONS:
        raise bad_request("can't parse menu button: MenuButton has unsupported type")
    if button["type"] == "web_app":
        _check_web_app(button)
    state.profile[f"menu/{_menu_owner(state, arguments)}"] = button
    return True


def _check_web_app(button: dict[str, Any]) -> None:
    for name, kind in (("text", str), ("web_app", dict)):
        if not isinstance(button.get(name), kind):
            raise bad_request(f"can't parse menu button: Can't find field \"{name}\"")
    url = str(button["web_app"].get("url", ""))
    if not button["text"]:
        raise bad_request("menu button text must be non-empty")
    if not url.startswith("https://"):
        raise bad_request(f"menu button Web App URL '{url}' is invalid: Only HTTPS links are allowed")


def _menu_owner(state: TelegramState, arguments: CallArguments) -> int:
    """Return the user whose button it is, or 0 for the bot's default one."""
    if "chat_id" not in arguments.values:
        return 0
    number = arguments.number("chat_id")
    if number <= 0:
        raise bad_request("invalid chat_id specified")
    if number not in state.users:
        raise bad_request("user not found")
    return number


async def get_menu_button(state: TelegramState, arguments: CallArguments) -> Any:
    """Return the button of a chat, or the bot's default one: its commands."""
    number = _menu_owner(state, arguments)
    button = state.profile.get(f"menu/{number}", {"type": "default"})
    return {"type": "commands"} if not number and button["type"] == "default" else button


# chats


async def get_chat(state: TelegramState, arguments: CallArguments) -> Any:
    chat = state.readable(state.chat(arguments))
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
    fields = state.show_chat(chat) | {"accent_color_id": 0, "max_reaction_count": 11}
    fields["accepted_gift_types"] = dict.fromkeys(gifts, False)
    fields |= {"active_usernames": [fields["username"]]} if "username" in fields else {}
    fields |= {"permissions": _permissions(chat)} if chat.type in {"group", "supergroup"} else {}
    links = [link for link, made in chat.invite_links.items() if made["is_primary"] and not made["is_revoked"]]
    fields |= {"invite_link": links[0]} if links else {}
    fields |= {"description": chat.description} if chat.description else {}
    fields |= {"photo": chat.photo} if chat.photo else {}
    if chat.pinned:
        fields["pinned_message"] = state.show(chat.messages[chat.pinned[-1]], reply=False)
    return fields


def _permissions(chat: Chat) -> dict[str, bool]:
    """Return what members may do: everything but sending the forbidden kinds and what is denied."""
    fields = {f"can_send_{name}": kind not in chat.forbidden for name, kind in SENT_KINDS.items()}
    fields["can_send_other_messages"] = not {"sticker", "animation"} & chat.forbidden
    never = chat.denied | ({"can_change_info", "can_pin_messages"} if chat.username else set())
    return fields | {name: name not in never for name in OTHER_PERMISSIONS}


async def get_member(state: TelegramState, arguments: CallArguments) -> Any:
    chat, number = state.chat(arguments), arguments.number("user_id")
    if number <= 0:
        raise bad_request("invalid user_id specified")
    if number == state.bot_id:
        return member(state, number, state.readable(chat).bot_status, chat.type)
    state.members_readable(chat)
    if number not in state.users:
        raise bad_request("user not found")
    return member_of(state, chat, number)


def member_of(state: TelegramState, chat: Chat, number: int) -> dict[str, Any]:
    """Return a user as the Bot API's ChatMember. Bans and restrictions end by themselves."""
    joined, now = number in chat.members, state.now()
    until = chat.banned.get(number)
    if until is not None and (until == 0 or until > now):
        return member(state, number, "kicked") | {"until_date": until}
    limits = chat.restricted.get(number)
    if limits is not None and (limits["until_date"] == 0 or limits["until_date"] > now):
        return member(state, number, "restricted") | limits | {"is_member": joined}
    status = "creator" if number == chat.creator else "member" if joined else "left"
    return member(state, number, status, chat.type)


async def get_administrators(state: TelegramState, arguments: CallArguments) -> Any:
    chat = state.members_readable(state.chat(arguments))
    if chat.private:
        raise bad_request("there are no administrators in the private chat")
    found = [] if chat.creator is None else [member(state, chat.creator, "creator")]
    bot = [state.bot_id] if chat.bot_status == "administrator" else []
    return found + [member(state, number, "administrator", chat.type) for number in bot]


async def count_members(state: TelegramState, arguments: CallArguments) -> int:
    return len(state.members_readable(state.chat(arguments)).members) + 1


async def leave_chat(state: TelegramState, arguments: CallArguments) -> bool:
    chat = state.readable(state.chat(arguments))
    if chat.private:
        raise bad_request("can't leave private chats")
    chat.bot_status = "left"
    return True


def member(state: TelegramState, number: int, status: str, kind: str = "private") -> dict[str, Any]:
    """Return the Bot API's ChatMember in a chat of this kind."""
    fields: dict[str, Any] = {"user": state.show_user(number), "status": status}
    if status == "kicked":
        fields["until_date"] = 0
    if status == "creator":
        fields["is_anonymous"] = False
    if status == "administrator":
        fields |= dict.fromkeys((*RIGHTS, *MORE_RIGHTS.get(kind, ())), True) | dict.fromkeys(WITHHELD, False)
    return fields


# files


async def get_file(state: TelegramState, arguments: CallArguments) -> Any:
    if not arguments.has("file_id"):
        raise bad_request("file_id not specified")
    stored = state.files.find(arguments.text("file_id"))
    if stored is None:
        raise bad_request("invalid file_id")
    if stored.size > DOWNLOAD_MAX:
        raise bad_request("file is too big")
    fields = {"file_id": stored.id, "file_unique_id": stored.unique, "file_size": stored.size}
    return fields | {"file_path": stored.path}


# callback queries


async def answer_callback(state: TelegramState, arguments: CallArguments) -> bool:
    press = state.callback_queries.get(arguments.text("callback_query_id"))
    if press is None or press.answered or state.clock() - press.at > QUERY_SECONDS / state.speed:
        raise bad_request(QUERY_EXPIRED)
    if len(arguments.text("text")) > ANSWER_MAX:
        raise bad_request("MESSAGE_TOO_LONG")
    url = arguments.text("url")
    name = state.bot["username"]
    if url and not re.match(rf"(https?://)?t\.me/{name}\?start=[\w-]+$", url, re.IGNORECASE):
        raise bad_request("URL_INVALID")  # other URLs are only for games, which are not simulated
    press.answered, press.text, press.alert, press.url = True, arguments.text("text"), arguments.flag("show_alert"), url
    state.events.add("answer", person=press.user_id, press=press.id, text=press.text, alert=press.alert, url=url)
    return True


METHODS: dict[str, Method] = {
    "getMe": get_me,
    "logOut": log_out,
    "close": log_out,
    "setMyCommands": set_commands,
    "getMyCommands": get_commands,
    "deleteMyCommands": delete_commands,
    "setChatMenuButton": set_menu_button,
    "getChatMenuButton": get_menu_button,
    "getChat": get_chat,
    "getChatMember": get_member,
    "getChatMemberCount": count_members,
    "getChatMembersCount": count_members,
    "getChatAdministrators": get_administrators,
    "leaveChat": leave_chat,
    "getFile": get_file,
    "answerCallbackQuery": answer_callback,
    **dict(zip(("setMyName", "getMyName"), text_methods("name"), strict=True)),
    **dict(zip(("setMyDescription", "getMyDescription"), text_methods("description"), strict=True)),
    **dict(zip(("setMyShortDescription", "getMyShortDescription"), text_methods("short_description"), strict=True)),
}
