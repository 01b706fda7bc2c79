"""Channels, public names of chats, and what the bot may read in chats that it has left."""

import aiohttp
import pytest

from genlock.sandbox.telegram.groups import Group
from genlock.sandbox.telegram.simulated_user import NotInChat, SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.client_libraries import ApiFailure, Client


@pytest.fixture
def news(telegram: TelegramSimulator, ann: SimulatedUser) -> Group:
    return telegram.group("News", [ann, telegram.add_user("Bob")], kind="channel", username="SandboxNews")


async def test_a_post_in_a_channel_is_written_by_the_channel(client: Client, ann: SimulatedUser, news: Group) -> None:
    sent = await client.call("sendMessage", chat_id="@sandboxnews", text="new")
    assert sent["chat"] == {"id": news.id, "type": "channel", "title": "News", "username": "SandboxNews"}
    assert sent["sender_chat"]["id"] == news.id
    assert "from" not in sent
    place = {"chat_id": news.id, "message_id": sent["message_id"]}
    assert (await client.call("editMessageText", **place, text="newer"))["text"] == "newer"
    copy = await client.call("forwardMessage", chat_id=ann.id, from_chat_id=news.id, message_id=sent["message_id"])
    assert copy["forward_origin"]["type"] == "channel"
    assert copy["forward_origin"]["message_id"] == sent["message_id"]


async def test_the_bot_gets_posts_and_edits_of_the_owner(client: Client, ann: SimulatedUser, news: Group) -> None:
    post = await ann.say("mine", chat=news.id)
    await ann.edit(post, "changed", chat=news.id)
    first, second = await client.call("getUpdates", allowed_updates=["channel_post", "edited_channel_post"])
    assert first["channel_post"]["text"] == "mine"
    assert second["edited_channel_post"]["text"] == "changed"


async def test_the_page_learns_who_wrote_a_post(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser, news: Group
) -> None:
    sent = await client.call("sendMessage", chat_id=news.id, text="new")
    await ann.say("mine", chat=news.id, reply_to=sent["message_id"])
    async with aiohttp.ClientSession(telegram.url) as http:
        answer = await (await http.get(f"/sim/chats/{news.id}", params={"person": ann.id})).json()
    by_bot, by_ann = (view["message"] for view in answer["messages"])
    assert (by_bot["from"]["id"], by_bot["from"]["first_name"]) == (telegram.state.bot_id, "News")
    assert by_ann["from"]["id"] == ann.id
    assert by_ann["reply_to_message"]["from"]["id"] == telegram.state.bot_id


async def test_only_the_owner_and_an_administrator_write_in_a_channel(
    client: Client, telegram: TelegramSimulator, news: Group
) -> None:
    with pytest.raises(NotInChat, match="only its owner"):
        await telegram.add_user("Eve").say("hi", chat=news.id)
    await news.set_bot("member")
    with pytest.raises(ApiFailure, match="need administrator rights in the channel chat"):
        await client.call("sendMessage", chat_id=news.id, text="x")


async def test_channels_have_no_reply_keyboards_and_no_open_polls(client: Client, news: Group) -> None:
    with pytest.raises(ApiFailure, match="inline keyboard expected"):
        await client.call("sendMessage", chat_id=news.id, text="x", reply_markup={"keyboard": [[{"text": "a"}]]})
    with pytest.raises(ApiFailure, match="non-anonymous polls can't be sent to channel chats"):
        await client.call("sendPoll", chat_id=news.id, question="?", options=["a", "b"], is_anonymous=False)


async def test_administrators_have_the_rights_of_their_kind_of_chat(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser, news: Group
) -> None:
    friends = telegram.group("Friends", [ann], kind="supergroup")
    await friends.set_bot("administrator", by=ann)
    _, in_channel = await client.call("getChatAdministrators", chat_id=news.id)
    _, in_group = await client.call("getChatAdministrators", chat_id=friends.id)
    assert in_channel["can_post_messages"] is True
    assert "can_pin_messages" not in in_channel
    assert in_group["can_pin_messages"] is True
    assert "can_post_messages" not in in_group
    assert in_group["can_be_edited"] is False


async def test_supergroups_and_channels_have_ids_of_their_own(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    kinds = ("channel", "supergroup", "channel", "group")
    assert len({telegram.group(kind, [ann], kind=kind).id for kind in kinds}) == len(kinds)
    with pytest.raises(ValueError, match="unknown kind of chat: club"):
        telegram.group("x", [ann], kind="club")


async def test_a_chat_that_the_bot_left_can_only_be_read_if_it_is_public(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    public = telegram.group("Public", [ann], kind="supergroup", username="public")
    private = telegram.group("Private", [ann], kind="supergroup")
    for group in (public, private):
        assert await client.call("leaveChat", chat_id=group.id) is True
    assert (await client.call("getChat", chat_id="@public"))["title"] == "Public"
    for method in ("getChat", "getChatMemberCount", "getChatAdministrators"):
        with pytest.raises(ApiFailure, match="bot is not a member of the supergroup chat"):
            await client.call(method, chat_id=private.id)
    await public.set_bot("kicked")
    with pytest.raises(ApiFailure, match="bot was kicked from the supergroup chat"):
        await client.call("getChat", chat_id=public.id)
    with pytest.raises(ApiFailure, match="chat not found"):
        await client.call("getChat", chat_id="@unknown")


async def test_members_of_a_migrated_group_are_read_in_the_supergroup(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    new = await friends.migrate()
    with pytest.raises(ApiFailure) as failure:
        await client.call("getChatMember", chat_id=friends.id, user_id=ann.id)
    assert (failure.value.kind, failure.value.number) == ("migrated", new.id)


async def test_channels_and_last_names_are_made_over_http(telegram: TelegramSimulator, client: Client) -> None:
    async with aiohttp.ClientSession(telegram.url) as http:
        user = await (await http.post("/sim/people", json={"name": "Ann", "last_name": "Lee"})).json()
        made = {"title": "News", "members": [user["id"]], "kind": "channel", "username": "news"}
        channel = await (await http.post("/sim/groups", json=made)).json()
        assert (channel["type"], channel["bot_status"]) == ("channel", "administrator")
        refused = await http.post("/sim/groups", json=made | {"kind": "club"})
        assert refused.status == 400
    found = await client.call("getChatMember", chat_id="@news", user_id=user["id"])
    assert (found["status"], found["user"]["last_name"]) == ("creator", "Lee")
    assert (await client.call("getChat", chat_id=user["id"]))["last_name"] == "Lee"
