"""The Bot API's refusals, through two client libraries written for the real server."""

from collections.abc import Callable
from typing import Any

import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.bot_messages import send
from tests.sandbox.client_libraries import LIBRARIES, ApiFailure, Bytes, Client, connect
from tests.sandbox.sample_media import PDF, picture


@pytest.mark.parametrize(
    ("method", "given", "text"),
    [
        ("sendMessage", {"chat_id": 5, "text": "hi"}, "chat not found"),
        ("sendMessage", {"text": "x" * 4097}, "message is too long"),
        ("sendMessage", {"text": "   "}, "text must be non-empty"),
        ("sendPhoto", {"photo": "AgACnothing"}, "wrong remote file identifier specified"),
        ("sendPhoto", {"photo": Bytes(b"no picture", "x.png")}, "image_process_failed"),
        ("sendPhoto", {"photo": Bytes(picture(), "x.png"), "caption": "x" * 1025}, "message caption is too long"),
        ("sendPhoto", {"photo": Bytes(picture(2100, 100), "x.png")}, "photo_invalid_dimensions"),
        ("sendPhoto", lambda: {"photo": Bytes(picture(9000, 1001), "x.png")}, "photo_invalid_dimensions"),
        ("sendVideo", {"video": Bytes(PDF, "film.mp4")}, "video_content_type_invalid"),
        (
            "sendMessage",
            {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "x", "callback_data": "x" * 65}]]}},
            "button_data_invalid",
        ),
        (
            "sendMessage",
            {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "x", "url": "ftp://example.org"}]]}},
            "inline keyboard button url 'ftp://example.org' is invalid: unsupported url protocol",
        ),
        ("sendMessage", {"text": "x", "reply_parameters": {"message_id": 77}}, "message to be replied not found"),
        ("sendMessage", {"text": "x", "message_thread_id": 77}, "message thread not found"),
        ("editMessageText", {"text": "x"}, "message to edit not found"),
        ("stopPoll", {"message_id": 77}, "message with poll to stop not found"),
        ("getFile", {"file_id": "nothing"}, "invalid file_id"),
        ("answerCallbackQuery", {"callback_query_id": "1"}, "query is too old and response timeout expired"),
        ("sendChatAction", {"action": "dancing"}, "wrong parameter action in request"),
    ],
)
async def test_errors_have_the_real_texts(
    client: Client, ann: SimulatedUser, method: str, given: dict[str, Any] | Callable[[], dict[str, Any]], text: str
) -> None:
    chat = {} if method in {"getFile", "answerCallbackQuery"} else {"chat_id": ann.id}
    with pytest.raises(ApiFailure) as failure:
        await client.call(method, **(chat | (given() if callable(given) else given)))

    assert failure.value.kind == "bad request"
    assert failure.value.text.startswith(text)
    assert ann.messages == []


BAD_CHARACTERS = "text contains invalid unicode characters"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<b>open", 'can\'t find end tag corresponding to start tag "b"'),
        ("a <x>b</x>", 'unsupported start tag "x" at byte offset 2'),
        ("я <i>b</b>", 'unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("2 < 3", 'unsupported start tag "" at byte offset 2'),
        ("2 <3", "unclosed start tag at byte offset 2"),
        ("<b x=y", "unclosed start tag at byte offset 0"),
        ("<b =y>", 'empty attribute name in the tag "b" at byte offset 0'),
        ("<a href=x/y>z</a>", "unexpected end of name token at byte offset 8"),
        ("<b>x</b", "unclosed end tag at byte offset 4"),
        ('<tg-emoji emoji-id="x">y</tg-emoji>', "invalid custom emoji identifier specified"),
        ("&#xD800;", f"{BAD_CHARACTERS} after decoding html entities, check for unmatched surrogate code units"),
        ("</b>", "unexpected end tag at byte offset 0"),
        ("<span>x</span>", 'tag "span" must have class "tg-spoiler" at byte offset 0'),
    ],
)
async def test_html_errors_name_the_byte_offset(client: Client, ann: SimulatedUser, text: str, complaint: str) -> None:
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")

    assert failure.value.text == f"can't parse entities: {complaint}"


async def test_blocked_deactivated_and_unstarted_users_cannot_be_written_to(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    sent = await send(client, ann.id, "text")
    await ann.block()
    with pytest.raises(ApiFailure) as failure:
        await send(client, ann.id, "text")
    assert (failure.value.kind, failure.value.text) == ("forbidden", "bot was blocked by the user")
    edited = await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="edits pass")
    assert edited["text"] == "edits pass"
    telegram.state.edits_pass_block = False
    with pytest.raises(ApiFailure, match="bot was blocked by the user"):
        await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="edits do not")

    gone = telegram.add_user("Gone")
    await gone.deactivate()
    with pytest.raises(ApiFailure, match="user is deactivated"):
        await send(client, gone.id, "text")
    other_user = telegram.add_user("Other", started=False)
    with pytest.raises(ApiFailure, match="bot can't initiate conversation with a user"):
        await send(client, other_user.id, "text")


@pytest.mark.parametrize(
    ("button", "words"),
    [
        ({"request_contact": True}, "phone number can be requested in private chats only"),
        ({"request_location": True}, "location can be requested in private chats only"),
        ({"web_app": {"url": "https://x.example"}}, "web app buttons can be used in private chats only"),
    ],
)
async def test_only_private_chats_have_buttons_that_ask_for_the_users_data(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser, button: dict[str, Any], words: str
) -> None:
    group = telegram.group("Friends", [ann])
    markup = {"keyboard": [[{"text": "Share"} | button]]}
    with pytest.raises(ApiFailure, match=words):
        await client.call("sendMessage", chat_id=group.id, text="x", reply_markup=markup)
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup=markup)


async def test_only_private_chats_have_inline_buttons_that_open_mini_apps_and_drafts(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    group = telegram.group("Friends", [ann])
    markup = {"inline_keyboard": [[{"text": "Open", "web_app": {"url": "https://x.example"}}]]}
    with pytest.raises(ApiFailure, match="button_type_invalid"):
        await client.call("sendMessage", chat_id=group.id, text="x", reply_markup=markup)
    sent = await client.call("sendMessage", chat_id=group.id, text="x")
    with pytest.raises(ApiFailure, match="button_type_invalid"):
        await client.call(
            "editMessageReplyMarkup", chat_id=group.id, message_id=sent["message_id"], reply_markup=markup
        )
    with pytest.raises(ApiFailure, match="textdraft_peer_invalid"):
        await client.call("sendMessageDraft", chat_id=group.id, draft_id=1, text="x")
    await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup=markup)


async def test_groups_forbid_kinds_expel_the_bot_and_migrate(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    sent = await send(client, friends.id, "text")
    await friends.forbid("photo")
    with pytest.raises(ApiFailure, match="not enough rights to send photos to the chat"):
        await send(client, friends.id, "photo")
    moved = await friends.migrate()
    with pytest.raises(ApiFailure) as failure:
        await send(client, friends.id, "text")
    assert (failure.value.kind, failure.value.number) == ("migrated", moved.id)
    await client.call("editMessageText", chat_id=friends.id, message_id=sent["message_id"], text="frozen history")
    assert (await send(client, moved.id, "text"))["message_id"] == 2
    await moved.set_bot("kicked", by=ann)
    with pytest.raises(ApiFailure) as failure:
        await send(client, moved.id, "text")
    assert (failure.value.kind, failure.value.text) == ("forbidden", "bot was kicked from the supergroup chat")
    with pytest.raises(ApiFailure, match="bot was kicked"):
        await client.call("editMessageText", chat_id=moved.id, message_id=2, text="no")


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_wrong_token_is_unauthorized(library: str, telegram: TelegramSimulator) -> None:
    other_user = connect(library, telegram, "43:other")
    try:
        with pytest.raises(ApiFailure) as failure:
            await other_user.call("getMe")
    finally:
        await other_user.close()
    assert failure.value.kind == "unauthorized"
