"""Bot API methods for invite links and requests to join. The simulated users do not join by a link."""

import secrets
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import Chat
from genlock.sandbox.telegram.messages import Method
from genlock.sandbox.telegram.state import TelegramState

LINK = "https://t.me/+"
NAME_MAX = 32
MEMBERS_MAX = 99_999
SUBSCRIPTION_SECONDS = 2_592_000
NUMBERS = ("expire_date", "member_limit")


async def export_link(state: TelegramState, arguments: CallArguments) -> str:
    """Replace the chat's primary link; the previous one is revoked."""
    chat = _managed(state, arguments)
    for old in chat.invite_links.values():
        old["is_revoked"] |= old["is_primary"]
    return str(_created(state, chat, {"creates_join_request": False, "is_primary": True})["invite_link"])


async def create_link(state: TelegramState, arguments: CallArguments) -> Any:
    return _created(state, _managed(state, arguments), _fields(arguments))


async def create_subscription_link(state: TelegramState, arguments: CallArguments) -> Any:
    if arguments.number("subscription_period") != SUBSCRIPTION_SECONDS:
        raise bad_request("SUBSCRIPTION_PERIOD_INVALID")
    price = {name: arguments.number(name) for name in ("subscription_period", "subscription_price")}
    return _created(state, _managed(state, arguments), _fields(arguments) | price)


async def edit_link(state: TelegramState, arguments: CallArguments) -> Any:
    """Replace the settings of a link: those that are not given are removed."""
    link = _link(_managed(state, arguments), arguments)
    for name in ("name", *NUMBERS):
        link.pop(name, None)
    link |= _fields(arguments)
    return link


async def edit_subscription_link(state: TelegramState, arguments: CallArguments) -> Any:
    link = _link(_managed(state, arguments), arguments)
    link |= _fields(arguments)
    return link


async def revoke_link(state: TelegramState, arguments: CallArguments) -> Any:
    link = _link(_managed(state, arguments), arguments)
    link["is_revoked"] = True
    return link


async def answer_join_request(state: TelegramState, arguments: CallArguments) -> bool:
    chat = _managed(state, arguments)
    joined = arguments.number("user_id") in chat.members
    raise bad_request("USER_ALREADY_PARTICIPANT" if joined else "HIDE_REQUESTER_MISSING")


def _managed(state: TelegramState, arguments: CallArguments) -> Chat:
    chat = state.writable(state.chat(arguments))
    if chat.bot_status != "administrator":
        raise bad_request("not enough rights to manage chat invite link")
    return chat


def _fields(arguments: CallArguments) -> dict[str, Any]:
    name, requested = arguments.text("name"), arguments.flag("creates_join_request")
    numbers = {field: arguments.number(field) for field in NUMBERS if arguments.number(field)}
    if len(name) > NAME_MAX or numbers.get("member_limit", 0) > MEMBERS_MAX:
        raise bad_request("INVITE_LINK_INVALID")
    if requested and "member_limit" in numbers:
        raise bad_request("member limit can't be specified for links requiring administrator approval")
    return {"creates_join_request": requested} | numbers | ({"name": name} if name else {})


def _created(state: TelegramState, chat: Chat, fields: dict[str, Any]) -> dict[str, Any]:
    address = LINK + secrets.token_urlsafe(12)
    link = {"invite_link": address, "creator": state.bot, "is_primary": False, "is_revoked": False} | fields
    chat.invite_links[address] = link
    return link


def _link(chat: Chat, arguments: CallArguments) -> dict[str, Any]:
    link = chat.invite_links.get(arguments.text("invite_link"))
    if link is None:
        raise bad_request("INVITE_HASH_EXPIRED")
    return link


METHODS: dict[str, Method] = {
    "exportChatInviteLink": export_link,
    "createChatInviteLink": create_link,
    "editChatInviteLink": edit_link,
    "revokeChatInviteLink": revoke_link,
    "createChatSubscriptionInviteLink": create_subscription_link,
    "editChatSubscriptionInviteLink": edit_subscription_link,
    "approveChatJoinRequest": answer_join_request,
    "declineChatJoinRequest": answer_join_request,
}
