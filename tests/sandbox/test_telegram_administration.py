"""What a bot may set in a group as its administrator: title, photo, invite links and topics."""

import json

import aiohttp
import pytest

from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.client_libraries import ApiFailure, Bytes, Client
from tests.sandbox.sample_media import picture


@pytest.fixture
async def friends(telegram: TelegramSimulator, ann: SimulatedUser) -> Group:
    group = telegram.group("Friends", [ann], kind="supergroup")
    await group.set_bot("administrator", by=ann)
    return group


async def test_title_description_and_photo_are_set(client: Client, friends: Group) -> None:
    assert await client.call("setChatTitle", chat_id=friends.id, title="Best friends") is True
    assert await client.call("setChatDescription", chat_id=friends.id, description="Us") is True
    with pytest.raises(ApiFailure, match="chat description is not modified"):
        await client.call("setChatDescription", chat_id=friends.id, description="Us")
    assert await client.call("setChatPhoto", chat_id=friends.id, photo=Bytes(picture(), "p.png")) is True
    chat = await client.call("getChat", chat_id=friends.id)
    assert (chat["title"], chat["description"]) == ("Best friends", "Us")
    assert await client.download(chat["photo"]["small_file_id"])
    assert await client.call("deleteChatPhoto", chat_id=friends.id) is True
    with pytest.raises(ApiFailure, match="chat_not_modified"):
        await client.call("deleteChatPhoto", chat_id=friends.id)
    assert "new_chat_title" in friends.messages[0].content


@pytest.mark.parametrize(
    ("method", "given", "error"),
    [
        ("setChatTitle", {"title": "x"}, "not enough rights to change chat title"),
        ("createChatInviteLink", {}, "not enough rights to manage chat invite link"),
        ("createForumTopic", {"name": "x"}, "not enough rights to create a topic"),
    ],
)
async def test_a_member_may_set_nothing(
    client: Client, friends: Group, method: str, given: dict[str, object], error: str
) -> None:
    await friends.topic("first")
    await friends.set_bot("member")
    with pytest.raises(ApiFailure, match=error):
        await client.call(method, chat_id=friends.id, **given)


async def test_an_administrator_cannot_appoint_others(client: Client, friends: Group, ann: SimulatedUser) -> None:
    with pytest.raises(ApiFailure, match="not enough rights"):
        await client.call("promoteChatMember", chat_id=friends.id, user_id=ann.id, can_pin_messages=True)


async def test_an_edited_invite_link_keeps_only_what_is_given(client: Client, friends: Group) -> None:
    link = await client.call("createChatInviteLink", chat_id=friends.id, member_limit=10, name="ten")
    assert (link["member_limit"], link["name"], link["is_revoked"]) == (10, "ten", False)
    place = {"chat_id": friends.id, "invite_link": link["invite_link"]}
    edited = await client.call("editChatInviteLink", **place, creates_join_request=True)
    assert "member_limit" not in edited
    assert "name" not in edited
    assert edited["creates_join_request"] is True
    assert (await client.call("revokeChatInviteLink", **place))["is_revoked"] is True
    with pytest.raises(ApiFailure, match="invite_hash_expired"):
        await client.call("revokeChatInviteLink", chat_id=friends.id, invite_link="https://t.me/+none")


async def test_a_new_primary_link_revokes_the_previous_one(client: Client, friends: Group) -> None:
    first = await client.call("exportChatInviteLink", chat_id=friends.id)
    second = await client.call("exportChatInviteLink", chat_id=friends.id)
    assert {link["invite_link"]: link["is_revoked"] for link in friends.chat.invite_links.values()} == {
        first: True,
        second: False,
    }


async def test_a_join_request_of_a_member_is_refused(client: Client, friends: Group, ann: SimulatedUser) -> None:
    with pytest.raises(ApiFailure, match="user_already_participant"):
        await client.call("approveChatJoinRequest", chat_id=friends.id, user_id=ann.id)


async def test_the_bot_writes_in_a_closed_topic_until_it_is_deleted(client: Client, friends: Group) -> None:
    await friends.topic("first")
    topic = await client.call("createForumTopic", chat_id=friends.id, name="News")
    place = {"chat_id": friends.id, "message_thread_id": topic["message_thread_id"]}
    assert await client.call("closeForumTopic", **place) is True
    with pytest.raises(ApiFailure, match="topic_not_modified"):
        await client.call("closeForumTopic", **place)
    assert (await client.call("sendMessage", text="x", **place))["is_topic_message"] is True
    await friends.set_bot("member")
    with pytest.raises(ApiFailure, match="topic_closed"):
        await client.call("sendMessage", text="x", **place)
    await friends.set_bot("administrator")
    assert await client.call("deleteForumTopic", **place) is True
    assert [message.thread for message in friends.messages if message.thread == topic["message_thread_id"]] == []


async def test_the_general_topic_is_closed_while_it_is_hidden(client: Client, friends: Group) -> None:
    await friends.topic("first")
    assert await client.call("hideGeneralForumTopic", chat_id=friends.id) is True
    assert friends.chat.general.closed
    assert await client.call("reopenGeneralForumTopic", chat_id=friends.id) is True
    assert not friends.chat.general.hidden


async def test_topics_need_a_forum(client: Client, friends: Group) -> None:
    with pytest.raises(ApiFailure, match="the chat is not a forum"):
        await client.call("createForumTopic", chat_id=friends.id, name="News")


async def test_the_bot_has_the_photo_that_it_sets(telegram: TelegramSimulator) -> None:
    form = aiohttp.FormData({"photo": json.dumps({"type": "static", "photo": "attach://file"})})
    form.add_field("file", picture(), filename="me.png")
    base, me = f"{telegram.url}/bot{telegram.token}", {"user_id": telegram.state.bot_id}
    async with aiohttp.ClientSession() as session:
        await session.post(f"{base}/setMyProfilePhoto", data=form)
        async with session.post(f"{base}/getUserProfilePhotos", json=me) as response:
            found = (await response.json())["result"]
        assert (found["total_count"], found["photos"][0][-1]["width"]) == (1, 640)
        await session.post(f"{base}/removeMyProfilePhoto")
        async with session.post(f"{base}/getUserProfilePhotos", json=me) as response:
            assert (await response.json())["result"]["total_count"] == 0


async def test_a_new_bot_has_no_default_rights_and_users_have_no_photos_or_gifts(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    rights = await client.call("getMyDefaultAdministratorRights")
    assert not any(rights.values())
    for user in (ann.id, telegram.state.bot_id):
        assert (await client.call("getUserProfilePhotos", user_id=user))["total_count"] == 0
    assert (await client.call("getUserGifts", user_id=ann.id))["total_count"] == 0


async def test_groups_keep_their_settings_over_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("users")
    async with running_telegram(folder=folder) as telegram:
        group = telegram.group("Friends", [telegram.add_user("Ann")], kind="supergroup")
        group.chat.general.closed = True
        group.chat.description = "Us"
    async with running_telegram(folder=folder) as telegram:
        chat = telegram.state.chats[group.id]
        assert (chat.general.closed, chat.description) == (True, "Us")
