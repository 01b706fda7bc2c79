"""The bot's commands, names and chats, through two client libraries written for the real server."""

from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import ApiFailure, Client


async def test_commands_are_kept_per_language(client: Client) -> None:
    commands = [{"command": "start", "description": "Begin"}]
    assert await client.call("setMyCommands", commands=commands) is True
    assert await client.call(
        "setMyCommands", commands=[{"command": "start", "description": "Начать"}], language_code="ru"
    )

    assert await client.call("getMyCommands") == commands
    assert (await client.call("getMyCommands", language_code="ru"))[0]["description"] == "Начать"
    assert await client.call("deleteMyCommands") is True
    assert await client.call("getMyCommands") == []


async def test_name_descriptions_menu_button_and_chats_can_be_read_and_set(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    assert await client.call("setMyShortDescription", short_description="Pictures")
    assert (await client.call("getMyShortDescription"))["short_description"] == "Pictures"
    assert (await client.call("getMyName"))["name"] == "Sandbox"
    assert (await client.call("getChat", chat_id=ann.id))["first_name"] == "Ann"
    friends = telegram.group("Friends", [ann])
    assert (await client.call("getChatMember", chat_id=friends.id, user_id=ann.id))["status"] == "creator"
    assert await client.call("getChatMemberCount", chat_id=friends.id) == 2
    assert await client.call("sendChatAction", chat_id=ann.id, action="typing") is True
    assert (await client.call("getChatMenuButton"))["type"] == "commands"
    assert (await client.call("getChatMenuButton", chat_id=ann.id))["type"] == "default"


@pytest.mark.parametrize(
    ("method", "given", "error"),
    [
        ("getMyCommands", {"scope": {"type": "chat", "chat_id": 5}}, "chat not found"),
        ("getMyCommands", {"language_code": "eng"}, "invalid language code specified"),
        ("getChatMenuButton", {"chat_id": -5}, "invalid chat_id specified"),
        ("getChatMenuButton", {"chat_id": 5}, "user not found"),
        ("getChatMember", {"chat_id": 5, "user_id": 5}, "chat not found"),
        ("leaveChat", {"chat_id": 1_000_001}, "can't leave private chats"),
        ("sendChatAction", {"chat_id": 5, "action": "dance"}, "wrong parameter action in request"),
    ],
)
async def test_unknown_chats_users_and_languages_are_named(
    telegram: TelegramSimulator, ann: SimulatedUser, method: str, given: dict[str, Any], error: str
) -> None:
    assert ann.id == 1_000_001
    async with aiohttp.ClientSession() as http:
        answer = await (await http.post(f"{telegram.url}/bot{telegram.token}/{method}", json=given)).json()
    assert answer["description"] == f"Bad Request: {error}"


async def test_commands_for_a_chat_are_kept_apart(client: Client, ann: SimulatedUser) -> None:
    commands = [{"command": "mine", "description": "Only here"}]
    scope = {"type": "chat", "chat_id": ann.id}
    assert await client.call("setMyCommands", commands=commands, scope=scope) is True
    assert await client.call("getMyCommands", scope=scope) == commands
    assert await client.call("getMyCommands") == []


async def test_the_menu_button_of_a_user_opens_a_secure_page(client: Client, ann: SimulatedUser) -> None:
    button = {"type": "web_app", "text": "Open", "web_app": {"url": "https://x.example/"}}
    assert await client.call("setChatMenuButton", chat_id=ann.id, menu_button=button) is True
    assert await client.call("getChatMenuButton", chat_id=ann.id) == button
    assert (await client.call("getChatMenuButton"))["type"] == "commands"
    with pytest.raises(ApiFailure, match="only https links are allowed"):
        await client.call("setChatMenuButton", menu_button=button | {"web_app": {"url": "http://x.example/"}})


async def test_a_chat_has_permissions_names_and_its_primary_link(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann], kind="supergroup", username="friends")
    await friends.set_bot("administrator", by=ann)
    await friends.forbid("photo")
    link = await client.call("exportChatInviteLink", chat_id=friends.id)
    chat = await client.call("getChat", chat_id=friends.id)
    assert (chat["permissions"]["can_send_photos"], chat["permissions"]["can_send_messages"]) == (False, True)
    assert (chat["active_usernames"], chat["invite_link"]) == (["friends"], link)


@pytest.mark.parametrize(("given", "shown"), [("TYPING", "typing"), ("record_audio", "record_voice")])
async def test_actions_are_known_in_any_case_and_by_their_older_names(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser, given: str, shown: str
) -> None:
    assert await client.call("sendChatAction", chat_id=ann.id, action=given) is True
    assert [event.data["action"] for event in telegram.state.events.since(0) if event.kind == "action"] == [shown]
