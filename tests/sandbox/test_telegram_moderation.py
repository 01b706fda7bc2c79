"""Bans, restrictions and permissions that a bot sets as the administrator of a group."""

from pathlib import Path

import pytest

from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.simulated_user import NotInChat, SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.client_libraries import ApiFailure, Client, connect


@pytest.fixture
def bob(telegram: TelegramSimulator, ann: SimulatedUser) -> SimulatedUser:
    made = telegram.add_user("Bob")
    assert ann.id < made.id, "the lowest id owns the group"
    return made


@pytest.fixture
async def friends(telegram: TelegramSimulator, ann: SimulatedUser, bob: SimulatedUser) -> Group:
    group = telegram.group("Friends", [ann, bob], kind="supergroup")
    await group.set_bot("administrator", by=ann)
    return group


async def status(client: Client, group: Group, user: SimulatedUser) -> str:
    return str((await client.call("getChatMember", chat_id=group.id, user_id=user.id))["status"])


async def test_a_banned_user_cannot_write_until_the_ban_ends(
    client: Client, friends: Group, bob: SimulatedUser
) -> None:
    place = {"chat_id": friends.id, "user_id": bob.id}
    assert await client.call("banChatMember", **place) is True
    assert await status(client, friends, bob) == "kicked"
    assert bob.id not in friends.chat.members
    with pytest.raises(NotInChat, match="Bob may not write there"):
        await bob.say("hi", chat=friends.id)
    assert await client.call("unbanChatMember", **place, only_if_banned=True) is True
    assert await status(client, friends, bob) == "left"


async def test_unban_removes_a_member_unless_only_banned_users_are_meant(
    client: Client, friends: Group, bob: SimulatedUser
) -> None:
    place = {"chat_id": friends.id, "user_id": bob.id}
    assert await client.call("unbanChatMember", **place, only_if_banned=True) is True
    assert await status(client, friends, bob) == "member"
    assert await client.call("unbanChatMember", **place) is True
    assert await status(client, friends, bob) == "left"


async def test_a_restricted_member_stays_but_may_not_write(client: Client, friends: Group, bob: SimulatedUser) -> None:
    await client.call("getUpdates", offset=-1, allowed_updates=["chat_member"])
    given = {"chat_id": friends.id, "user_id": bob.id}
    assert await client.call("restrictChatMember", **given, permissions={"can_send_messages": False}) is True
    member = await client.call("getChatMember", **given)
    assert (member["status"], member["is_member"], member["can_send_photos"]) == ("restricted", True, False)
    with pytest.raises(NotInChat):
        await bob.say("hi", chat=friends.id)
    [update] = await client.call("getUpdates", offset=-1, allowed_updates=["chat_member"])
    assert update["chat_member"]["new_chat_member"]["status"] == "restricted"


async def test_the_permission_to_send_polls_includes_messages(client: Client, friends: Group) -> None:
    given = {"chat_id": friends.id, "permissions": {"can_send_polls": True}}
    assert await client.call("setChatPermissions", **given) is True
    chat = await client.call("getChat", chat_id=friends.id)
    shown = {name for name, on in chat["permissions"].items() if on and name.startswith("can_send")}
    assert shown == {"can_send_polls", "can_send_messages"}


async def test_permissions_that_are_not_about_kinds_of_messages_are_kept_too(client: Client, friends: Group) -> None:
    given = {"can_send_messages": True, "can_invite_users": True}
    assert await client.call("setChatPermissions", chat_id=friends.id, permissions=given) is True
    permissions = (await client.call("getChat", chat_id=friends.id))["permissions"]
    assert permissions["can_invite_users"] is True
    assert not any(permissions[f"can_{name}"] for name in ("change_info", "pin_messages", "add_web_page_previews"))


async def test_members_of_a_public_group_may_never_change_or_pin_anything(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    group = telegram.group("Public", [ann], kind="supergroup", username="public_group")
    permissions = (await client.call("getChat", chat_id=group.id))["permissions"]
    assert {name for name, on in permissions.items() if not on} == {"can_change_info", "can_pin_messages"}


@pytest.mark.parametrize(
    ("method", "given", "error"),
    [
        ("banChatMember", {"user_id": "ANN"}, "can't remove chat owner"),
        ("banChatMember", {"user_id": 42}, "can't restrict self"),
        ("banChatMember", {"user_id": 5}, "participant_id_invalid"),
        ("setChatAdministratorCustomTitle", {"user_id": "ANN", "custom_title": "x"}, "only the owner can edit"),
        ("setChatAdministratorCustomTitle", {"user_id": "BOB", "custom_title": "x"}, "user is not an administrator"),
    ],
)
async def test_what_an_administrator_may_not_do(
    client: Client,
    friends: Group,
    ann: SimulatedUser,
    bob: SimulatedUser,
    method: str,
    given: dict[str, object],
    error: str,
) -> None:
    users = {"ANN": ann.id, "BOB": bob.id}
    filled = {name: users.get(str(value), value) for name, value in given.items()}
    with pytest.raises(ApiFailure, match=error):
        await client.call(method, chat_id=friends.id, **filled)


async def test_members_and_basic_groups_are_refused(
    client: Client, telegram: TelegramSimulator, friends: Group, ann: SimulatedUser, bob: SimulatedUser
) -> None:
    await friends.set_bot("member")
    basic = telegram.group("Basic", [ann, bob])
    for method, chat, given, error in (
        ("banChatMember", friends, {"user_id": bob.id}, "not enough rights to restrict/unrestrict chat member"),
        ("setChatPermissions", friends, {"permissions": {}}, "not enough rights to change chat permissions"),
        ("restrictChatMember", basic, {"user_id": bob.id, "permissions": {}}, "available only for supergroups"),
        ("unbanChatMember", basic, {"user_id": bob.id}, "available for supergroup and channel chats only"),
    ):
        with pytest.raises(ApiFailure, match=error):
            await client.call(method, chat_id=chat.id, **given)


async def test_bans_and_permissions_survive_a_restart(tmp_path: Path) -> None:
    async with running_telegram(folder=tmp_path) as telegram:
        ann, bob = telegram.add_user("Ann"), telegram.add_user("Bob")
        group = telegram.group("Friends", [ann, bob], kind="supergroup")
        await group.set_bot("administrator", by=ann)
        client = connect("python-telegram-bot", telegram)
        await client.call("banChatMember", chat_id=group.id, user_id=bob.id)
        await client.call("setChatPermissions", chat_id=group.id, permissions={"can_invite_users": True})
        await client.close()
    async with running_telegram(folder=tmp_path) as telegram:
        client = connect("python-telegram-bot", telegram)
        found = await client.call("getChatMember", chat_id=group.id, user_id=bob.id)
        chat = await client.call("getChat", chat_id=group.id)
        await client.close()
    assert found["status"] == "kicked"
    assert {name for name, on in chat["permissions"].items() if on} == {"can_invite_users"}
