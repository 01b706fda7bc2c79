"""The bot's commands, names and chats, through two client libraries written for the real server."""

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import Client


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
