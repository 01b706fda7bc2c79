"""The bot itself and what it may ask: who it is, its commands, chats, members, files, and answers to presses."""

import re
from typing import Any

from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.wire import Given, bad_request
from genlock.sandbox.telegram.world import World

DOWNLOAD_MAX = 20_971_520
QUERY_SECONDS = 60
ANSWER_MAX = 200
RIGHTS = (
    *("can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "can_manage_video_chats"),
    *("can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users"),
    *("can_post_stories", "can_edit_stories", "can_delete_stories", "can_send_welcome_messages"),
)
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


async def get_me(world: World, _: Given) -> Any:
    return world.bot | {
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


async def log_out(_: World, __: Given) -> bool:
    return True


# commands and words about itself


async def set_commands(world: World, given: Given) -> bool:
    commands = given.objects("commands", "list of bot commands")
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not 1 <= len(str(command.get("command", "")).removeprefix("/")) <= 32:
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(command.get("description", ""))) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    world.profile["commands"][_scope(given)] = commands
    world.events.add("profile", profile=world.profile)
    return True


async def get_commands(world: World, given: Given) -> Any:
    return world.profile["commands"].get(_scope(given), [])


async def delete_commands(world: World, given: Given) -> bool:
    world.profile["commands"].pop(_scope(given), None)
    world.events.add("profile", profile=world.profile)
    return True


def _scope(given: Given) -> str:
    scope = given.object("scope", "bot command scope") or {"type": "default"}
    return f"{scope.get('type')}/{scope.get('chat_id', '')}/{scope.get('user_id', '')}/{given.text('language_code')}"


def words(field: str) -> tuple[Method, Method]:
    """The two calls that set and tell a name or description, per language."""

    async def set_words(world: World, given: Given) -> bool:
        world.profile[f"{field}/{given.text('language_code')}"] = given.text(field)
        world.events.add("profile", profile=world.profile)
        return True

    async def get_words(world: World, given: Given) -> Any:
        default = world.bot["first_name"] if field == "name" else ""
        plain = world.profile.get(f"{field}/", default)
        return {field: world.profile.get(f"{field}/{given.text('language_code')}") or plain}

    return set_words, get_words


async def set_menu_button(world: World, given: Given) -> bool:
    world.profile[f"menu/{given.number('chat_id')}"] = given.object("menu_button", "menu button") or {"type": "default"}
    return True


async def get_menu_button(world: World, given: Given) -> Any:
    return world.profile.get(f"menu/{given.number('chat_id')}", {"type": "default"})


# chats


async def get_chat(world: World, given: Given) -> Any:
    chat = world.chat(given)
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
    said = world.show_chat(chat) | {"accent_color_id": 0, "max_reaction_count": 11}
    said["accepted_gift_types"] = dict.fromkeys(gifts, False)
    return said


async def get_member(world: World, given: Given) -> Any:
    chat = world.chat(given)
    number = given.number("user_id")
    if number == world.bot_id:
        return member(world, number, chat.bot_status)
    if number not in world.users:
        raise bad_request("user not found")
    return member(world, number, "member" if number in chat.members else "left")


async def count_members(world: World, given: Given) -> int:
    return len(world.chat(given).members) + 1


async def leave_chat(world: World, given: Given) -> bool:
    world.reachable(world.chat(given)).bot_status = "left"
    return True


def member(world: World, number: int, status: str) -> dict[str, Any]:
    said: dict[str, Any] = {"user": world.show_user(number), "status": status}
    if status == "kicked":
        said["until_date"] = 0
    if status == "administrator":
        said |= dict.fromkeys(RIGHTS, True)
    return said


# files


async def get_file(world: World, given: Given) -> Any:
    stored = world.files.find(given.text("file_id"))
    if stored is None:
        raise bad_request("wrong file_id or the file is temporarily unavailable")
    if stored.size > DOWNLOAD_MAX:
        raise bad_request("file is too big")
    said = {"file_id": stored.id, "file_unique_id": stored.unique, "file_size": stored.size}
    return said | {"file_path": stored.path}


# presses


async def answer_callback(world: World, given: Given) -> bool:
    press = world.presses.get(given.text("callback_query_id"))
    if press is None or press.answered or world.clock() - press.at > QUERY_SECONDS / world.speed:
        raise bad_request(TOO_OLD)
    if len(given.text("text")) > ANSWER_MAX:
        raise bad_request("MESSAGE_TOO_LONG")
    url = given.text("url")
    name = world.bot["username"]
    if url and not re.match(rf"(https?://)?t\.me/{name}\?start=[\w-]+$", url, re.IGNORECASE):
        raise bad_request("URL_INVALID")  # others are for games, which there are none of here
    press.answered, press.text, press.alert, press.url = True, given.text("text"), given.flag("show_alert"), url
    world.events.add("answer", person=press.person, press=press.id, text=press.text, alert=press.alert, url=url)
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
    "leaveChat": leave_chat,
    "getFile": get_file,
    "answerCallbackQuery": answer_callback,
    **dict(zip(("setMyName", "getMyName"), words("name"), strict=True)),
    **dict(zip(("setMyDescription", "getMyDescription"), words("description"), strict=True)),
    **dict(zip(("setMyShortDescription", "getMyShortDescription"), words("short_description"), strict=True)),
}
