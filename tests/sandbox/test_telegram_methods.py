"""Bot API methods, tested through two client libraries that were written for the real server."""

import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from genlock.sandbox.telegram.state import CallbackQuery
from tests.sandbox.client_libraries import LIBRARIES, ApiFailure, Bytes, Client, connect
from tests.sandbox.sample_media import PDF, picture, sample
from tests.sandbox.waiting import until

KEYBOARD = {"inline_keyboard": [[{"text": "Menu", "callback_data": "menu"}]]}
OTHER_KEYBOARD = {"inline_keyboard": [[{"text": "Back", "callback_data": "back"}]]}
KINDS = ("photo", "video", "animation", "audio", "voice", "document")
REPLACEABLE = ("text", "photo", "video", "animation", "audio", "document")
TARGETS = ("photo", "video", "animation", "audio", "document")


async def send(client: Client, chat: int, kind: str, **more: Any) -> dict[str, Any]:
    if kind == "text":
        sent = await client.call("sendMessage", chat_id=chat, text="words", **more)
    else:
        content, name = sample(kind)
        given = {kind: Bytes(content, name)}
        sent = await client.call(f"send{kind.capitalize()}", chat_id=chat, **given, **more)
    assert isinstance(sent, dict)
    return sent


def media(kind: str, **more: Any) -> dict[str, Any]:
    content, name = sample(kind)
    return {"type": kind, "media": Bytes(content, name), **more}


# sending


async def test_get_me_returns_the_bot(client: Client) -> None:
    me = await client.call("getMe")

    assert me["id"] == 42
    assert me["is_bot"]
    assert me["username"] == "sandbox_bot"


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_media_is_sent_and_can_be_downloaded(client: Client, ann: SimulatedUser, kind: str) -> None:
    sent = await send(client, ann.id, kind, caption="<b>look</b>", parse_mode="HTML", reply_markup=KEYBOARD)

    content, name = sample(kind)
    assert sent["caption"] == "look"
    assert sent["caption_entities"][0]["type"] == "bold"
    assert sent["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "menu"
    assert (ann.last.kind, ann.last.text, ann.last.id) == (kind, "look", sent["message_id"])
    file = sent[kind][-1] if kind == "photo" else sent[kind]
    fetched = await client.download(file["file_id"])
    assert len(fetched) == file["file_size"]
    assert kind == "photo" or fetched == content
    assert kind in {"photo", "voice"} or file["file_name"] == name


async def test_a_photo_has_sizes_and_the_largest_is_last(client: Client, ann: SimulatedUser) -> None:
    big = Bytes(picture(3000, 1500), "big.png")
    sizes = (await client.call("sendPhoto", chat_id=ann.id, photo=big))["photo"]

    assert [(size["width"], size["height"]) for size in sizes] == [(90, 45), (320, 160), (800, 400), (1280, 640)]
    with Image.open(io.BytesIO(await client.download(sizes[-1]["file_id"]))) as shown:
        assert shown.size == (1280, 640)
        assert shown.format == "JPEG"


async def test_videos_and_audio_report_their_duration(client: Client, ann: SimulatedUser) -> None:
    film = (await send(client, ann.id, "video"))["video"]
    sound = (await send(client, ann.id, "audio", title="Song", performer="Choir"))["audio"]
    voice = (await send(client, ann.id, "voice"))["voice"]

    assert (film["width"], film["height"], film["duration"], film["mime_type"]) == (640, 360, 2, "video/mp4")
    assert (sound["duration"], sound["title"], sound["performer"], sound["mime_type"]) == (
        3,
        "Song",
        "Choir",
        "audio/mpeg",
    )
    assert (voice["duration"], voice["mime_type"]) == (1, "audio/ogg")


async def test_an_animation_is_a_document_too(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "animation")

    assert sent["animation"]["file_id"] == sent["document"]["file_id"]
    assert ann.last.kind == "animation"


async def test_a_file_id_sends_the_same_file_again(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bob = telegram.add_user("Bob")
    first = await send(client, ann.id, "photo")
    again = await client.call("sendPhoto", chat_id=bob.id, photo=first["photo"][-1]["file_id"])

    assert again["photo"] == first["photo"]


async def test_a_text_message_has_entities_a_reply_and_increasing_ids(client: Client, ann: SimulatedUser) -> None:
    text = '<b>bold <i>both</i></b> &lt;<a href="https://example.org/?a=1&amp;b=2">link</a>&gt; 😀<code>x</code>'
    first = await client.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")
    reply = await client.call(
        "sendMessage", chat_id=ann.id, text="yes", reply_parameters={"message_id": first["message_id"]}
    )

    assert first["text"] == "bold both <link> 😀x"
    assert [(one["type"], one["offset"], one["length"]) for one in first["entities"]] == [
        ("bold", 0, 9),
        ("italic", 5, 4),
        ("text_link", 11, 4),
        ("code", 19, 1),
    ]
    assert first["entities"][2]["url"] == "https://example.org/?a=1&b=2"
    assert reply["reply_to_message"]["message_id"] == first["message_id"]
    assert reply["message_id"] == first["message_id"] + 1


async def test_urls_and_commands_outside_explicit_entities_are_detected(client: Client, ann: SimulatedUser) -> None:
    text = "<code>/start</code> /help https://example.org/a #art"
    sent = await client.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")

    assert [(one["type"], one["offset"]) for one in sent["entities"]] == [
        ("code", 0),
        ("bot_command", 7),
        ("url", 13),
        ("hashtag", 35),
    ]


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("<u>a</u><s>b</s><tg-spoiler>c</tg-spoiler>", ["underline", "strikethrough", "spoiler"]),
        ('<span class="tg-spoiler">a</span>', ["spoiler"]),
        ('<pre><code class="language-python">x = 1</code></pre>', ["pre"]),
        ("<blockquote expandable>a</blockquote>", ["expandable_blockquote"]),
        ("<b></b>x", []),
        ("&lt;b&gt; &amp; &#128512; &nbsp;", []),
    ],
)
async def test_html_becomes_entities(client: Client, ann: SimulatedUser, text: str, entities: list[str]) -> None:
    sent = await client.call("sendMessage", chat_id=ann.id, text=text, parse_mode="HTML")

    assert [one["type"] for one in sent.get("entities", [])] == entities
    if entities == ["pre"]:
        assert sent["entities"][0]["language"] == "python"
    if not entities:
        assert sent["text"] in {"x", "<b> & 😀 &nbsp;"}


async def test_album_messages_share_a_media_group_id(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call(
        "sendMediaGroup", chat_id=ann.id, media=[media("photo", caption="first"), media("video"), media("photo")]
    )

    assert [sorted({"photo", "video"} & one.keys()) for one in sent] == [["photo"], ["video"], ["photo"]]
    assert len({one["media_group_id"] for one in sent}) == 1
    assert [message.id for message in ann.messages] == [one["message_id"] for one in sent]
    assert len(ann.notifications) == 1


async def test_an_album_of_incompatible_items_is_refused_completely(client: Client, ann: SimulatedUser) -> None:
    with pytest.raises(ApiFailure, match="document can't be mixed with other media types"):
        await client.call("sendMediaGroup", chat_id=ann.id, media=[media("photo"), media("document")])
    broken = {"type": "photo", "media": Bytes(b"no picture", "x.png")}
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendMediaGroup", chat_id=ann.id, media=[media("photo"), broken])

    assert failure.value.text == 'failed to send message #2 with the error message "image_process_failed"'
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendMediaGroup", chat_id=ann.id, media=[media("photo"), {"type": "photo", "media": "AgAC"}])
    assert failure.value.text.startswith("wrong remote file identifier specified")
    assert ann.messages == []


async def test_an_album_item_cannot_change_its_kind(client: Client, ann: SimulatedUser) -> None:
    pictures = await client.call("sendMediaGroup", chat_id=ann.id, media=[media("photo"), media("photo")])
    papers = await client.call("sendMediaGroup", chat_id=ann.id, media=[media("document"), media("document")])
    first, paper = pictures[0]["message_id"], papers[0]["message_id"]

    edited = await client.call("editMessageMedia", chat_id=ann.id, message_id=first, media=media("video"))
    with pytest.raises(ApiFailure, match="can't change media type in the album"):
        await client.call("editMessageMedia", chat_id=ann.id, message_id=paper, media=media("photo"))
    with pytest.raises(ApiFailure, match="message is not modified"):
        await client.call("editMessageReplyMarkup", chat_id=ann.id, message_id=first, reply_markup=KEYBOARD)

    assert "video" in edited
    assert edited["media_group_id"] == pictures[0]["media_group_id"]


async def test_messages_are_forwarded_and_copied(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    bob = telegram.add_user("Bob")
    sent = await send(client, ann.id, "photo", caption="mine")
    where = {"chat_id": bob.id, "from_chat_id": ann.id, "message_id": sent["message_id"]}
    forwarded = await client.call("forwardMessage", **where)
    copied = await client.call("copyMessage", **where, caption="yours")

    assert forwarded["forward_origin"]["type"] == "user"
    assert [message.text for message in bob.messages] == ["mine", "yours"]
    assert bob.last.id == copied["message_id"]
    with pytest.raises(ApiFailure, match="message media can't be edited"):
        await client.call("editMessageMedia", chat_id=bob.id, message_id=forwarded["message_id"], media=media("photo"))


# editing


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", REPLACEABLE)
async def test_an_edit_changes_the_kind_of_a_message(
    client: Client, ann: SimulatedUser, source: str, target: str
) -> None:
    sent = await send(client, ann.id, source, reply_markup=KEYBOARD)
    edited = await client.call(
        "editMessageMedia",
        chat_id=ann.id,
        message_id=sent["message_id"],
        media=media(target, caption="done"),
        reply_markup=OTHER_KEYBOARD,
    )

    assert target in edited
    assert edited["message_id"] == sent["message_id"]
    assert edited["edit_date"]
    assert len(ann.messages) == 1
    assert (ann.last.kind, ann.last.text, ann.last.buttons[0]["text"]) == (target, "done", "Back")
    assert len(ann.notifications) == 1


async def test_a_voice_message_cannot_be_edited_into_other_media(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "voice")

    with pytest.raises(ApiFailure, match="message media can't be edited"):
        await client.call("editMessageMedia", chat_id=ann.id, message_id=sent["message_id"], media=media("photo"))
    await client.call("editMessageCaption", chat_id=ann.id, message_id=sent["message_id"], caption="said")
    assert ann.last.text == "said"


async def test_a_media_message_cannot_become_text_again(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "text")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageCaption", **where, caption="done")
    assert failure.value.text == "there is no caption in the message to edit"
    await client.call("editMessageText", **where, text="50 %")
    await client.call("editMessageMedia", **where, media=media("photo", caption="done"))
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", **where, text="60 %")

    assert failure.value.text == "there is no text in the message to edit"
    assert (ann.last.kind, ann.last.text) == ("photo", "done")


async def test_not_modified_compares_content_and_keyboard(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "text", reply_markup=KEYBOARD)
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    full = (
        "message is not modified: specified new message content and reply markup are exactly the same as a current "
        "content and reply markup of the message"
    )
    for method, given in (
        ("editMessageText", {"text": " words ", "reply_markup": KEYBOARD}),
        ("editMessageReplyMarkup", {"reply_markup": KEYBOARD}),
    ):
        with pytest.raises(ApiFailure) as failure:
            await client.call(method, **where, **given)
        assert (failure.value.kind, failure.value.text) == ("bad request", full)
    await client.call("editMessageText", **where, text="words", reply_markup=OTHER_KEYBOARD)
    plain = await client.call("editMessageText", **where, text="words")

    assert "reply_markup" not in plain
    assert ann.last.buttons == []


async def test_the_same_file_id_is_not_modified_but_a_new_upload_of_the_same_bytes_is(
    client: Client, ann: SimulatedUser
) -> None:
    sent = await send(client, ann.id, "photo", caption="done")
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}
    known = {"type": "photo", "media": sent["photo"][-1]["file_id"], "caption": "done"}

    with pytest.raises(ApiFailure, match="message is not modified"):
        await client.call("editMessageMedia", **where, media=known)
    with pytest.raises(ApiFailure, match="message is not modified"):
        await client.call("editMessageCaption", **where, caption="done")
    again = await client.call("editMessageMedia", **where, media=media("photo", caption="done"))
    assert again["photo"][-1]["file_unique_id"] != sent["photo"][-1]["file_unique_id"]


@pytest.mark.parametrize(
    "markup",
    [
        {"keyboard": [[{"text": "Yes"}]]},
        {"remove_keyboard": True},
        {"force_reply": True},
    ],
)
async def test_a_message_with_a_reply_keyboard_cannot_be_edited(
    client: Client, ann: SimulatedUser, markup: dict[str, Any]
) -> None:
    sent = await send(client, ann.id, "text", reply_markup=markup)
    where = {"chat_id": ann.id, "message_id": sent["message_id"]}

    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", **where, text="other")
    assert failure.value.text == "message can't be edited"
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageMedia", **where, media=media("photo"))
    assert failure.value.text == "message media can't be edited"


async def test_deleted_and_foreign_messages_cannot_be_edited(client: Client, ann: SimulatedUser) -> None:
    hers = await ann.say("mine")
    sent = await send(client, ann.id, "text")
    assert await client.call("deleteMessage", chat_id=ann.id, message_id=sent["message_id"]) is True

    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="other")
    assert failure.value.text == "message to edit not found"
    with pytest.raises(ApiFailure) as failure:
        await client.call("deleteMessage", chat_id=ann.id, message_id=sent["message_id"])
    assert failure.value.text == "message to delete not found"
    with pytest.raises(ApiFailure) as failure:
        await client.call("editMessageText", chat_id=ann.id, message_id=hers.id, text="other")
    assert failure.value.text == "message can't be edited"


async def test_delete_messages_skips_missing_ones(client: Client, ann: SimulatedUser) -> None:
    numbers = [(await send(client, ann.id, "text"))["message_id"] for _ in range(3)]

    assert await client.call("deleteMessages", chat_id=ann.id, message_ids=[*numbers[:2], 999_999]) is True
    assert [message.id for message in ann.messages] == numbers[2:]


# errors


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<b>open", 'can\'t find end tag corresponding to start tag "b"'),
        ("a <x>b</x>", 'unsupported start tag "x" at byte offset 2'),
        ("я <i>b</b>", 'unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("2 < 3", "unclosed start tag at byte offset 2"),
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


# updates


async def test_user_actions_arrive_as_updates(client: Client, ann: SimulatedUser) -> None:
    sent = await send(client, ann.id, "text", reply_markup=KEYBOARD)
    await ann.start("ref-7")
    await ann.send_photo(picture(), caption="like this")
    await ann.send_album([picture(), picture()])
    await ann.press(sent["message_id"], "Menu")
    await ann.block()
    updates = await client.call("getUpdates")

    start, photo, *album, press, block = updates
    assert start["message"]["text"] == "/start ref-7"
    assert start["message"]["entities"] == [{"type": "bot_command", "offset": 0, "length": 6}]
    assert start["message"]["from"]["language_code"] == "ru"
    assert (await client.download(photo["message"]["photo"][-1]["file_id"]))[:2] == b"\xff\xd8"
    assert len({one["message"]["media_group_id"] for one in album}) == 1
    assert press["callback_query"]["data"] == "menu"
    assert press["callback_query"]["message"]["message_id"] == sent["message_id"]
    assert block["my_chat_member"]["new_chat_member"]["status"] == "kicked"
    numbers = [one["update_id"] for one in updates]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert await client.call("getUpdates", offset=numbers[-1] + 1) == []


async def test_a_callback_query_is_answered_once_and_in_time(client: Client, ann: SimulatedUser) -> None:
    await send(client, ann.id, "text", reply_markup=KEYBOARD)
    press = await ann.press(ann.last, "menu")
    assert isinstance(press, CallbackQuery)
    (update,) = await client.call("getUpdates")
    number = update["callback_query"]["id"]
    with pytest.raises(ApiFailure, match="url_invalid"):
        await client.call("answerCallbackQuery", callback_query_id=number, url="https://example.org/")
    own = "https://t.me/sandbox_bot?start=topup"
    await client.call("answerCallbackQuery", callback_query_id=number, text="Saved", show_alert=True, url=own)

    assert (press.text, press.alert, press.url) == ("Saved", True, own)
    with pytest.raises(ApiFailure, match="query is too old"):
        await client.call("answerCallbackQuery", callback_query_id=number)
    press.answered, press.at = False, press.at - 61
    with pytest.raises(ApiFailure, match="query is too old"):
        await client.call("answerCallbackQuery", callback_query_id=number)


async def test_both_libraries_parse_every_kind_of_update(
    client: Client, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    friends = telegram.group("Friends", [ann])
    bob = telegram.add_user("Bob")
    await friends.add(bob)
    await ann.say("/gen cat", chat=friends.id)
    await ann.say("nothing for bots", chat=friends.id)
    await friends.set_bot("administrator", by=ann)
    moved = await friends.migrate()
    topic = await moved.topic("Art")
    await ann.say("in the topic", chat=moved.id, thread=topic)
    await ann.edit(await ann.say("tpyo"), "typo")
    for kind in KINDS:
        content, name = sample(kind)
        await ann.send(kind, content, name=name)
    updates = [update.as_json() for update in telegram.state.updates.pending.values()]

    read = [client.read_update(update) for update in updates]
    assert [one["update_id"] for one in read] == [update["update_id"] for update in updates]
    failure = [one["message"]["text"] for one in read if "text" in one.get("message", {})]
    assert failure == ["/gen cat", "in the topic", "tpyo"]
    assert any("edited_message" in one for one in read)


async def test_a_second_poller_ends_the_first(client: Client, telegram: TelegramSimulator) -> None:
    first = asyncio.create_task(client.call("getUpdates", timeout=20))
    await until(lambda: telegram.state.updates._poll)
    assert await client.call("getUpdates") == []

    with pytest.raises(ApiFailure) as failure:
        await first
    assert failure.value.kind == "conflict"
    assert failure.value.text.startswith("terminated by other getupdates request")


async def test_a_webhook_is_set_reported_and_removed(client: Client) -> None:
    assert await client.call("setWebhook", url="http://127.0.0.1:9/hook", secret_token="abc", max_connections=7) is True
    info = await client.call("getWebhookInfo")
    assert (info["url"], info["max_connections"], info["pending_update_count"]) == ("http://127.0.0.1:9/hook", 7, 0)
    with pytest.raises(ApiFailure) as failure:
        await client.call("getUpdates")
    assert failure.value.text.startswith("can't use getupdates method while webhook is active")
    assert await client.call("deleteWebhook") is True
    assert await client.call("getUpdates") == []


# money


async def pay(client: Client, ann: SimulatedUser, invoice: dict[str, Any], **answer: Any) -> Any:
    paying = asyncio.create_task(ann.pay(invoice["message_id"]))
    (asked,) = await client.call("getUpdates", timeout=5)
    query = asked["pre_checkout_query"]
    assert (query["currency"], query["total_amount"], query["invoice_payload"]) == ("XTR", 50, "order-1")
    await client.call("answerPreCheckoutQuery", pre_checkout_query_id=query["id"], **answer)
    paid = await paying
    await client.call("getUpdates", offset=asked["update_id"] + 1)
    return paid


def invoice_given() -> dict[str, Any]:
    return {
        "title": "50 credits",
        "description": "For pictures",
        "payload": "order-1",
        "currency": "XTR",
        "prices": [{"label": "50 credits", "amount": 50}],
    }


async def test_stars_are_paid_listed_and_refunded(client: Client, ann: SimulatedUser) -> None:
    invoice = await client.call("sendInvoice", chat_id=ann.id, **invoice_given())
    assert invoice["invoice"]["total_amount"] == 50
    payment = await pay(client, ann, invoice, ok=True)
    assert payment.ok
    assert ann.user.stars == 9950
    (paid,) = await client.call("getUpdates")
    done = paid["message"]["successful_payment"]
    assert (done["telegram_payment_charge_id"], done["invoice_payload"]) == (payment.charge_id, "order-1")
    assert (await client.call("getMyStarBalance"))["amount"] == 50
    assert (await ann.pay(invoice["message_id"])).reason == "the invoice is paid"

    refund = {"user_id": ann.id, "telegram_payment_charge_id": payment.charge_id}
    assert await client.call("refundStarPayment", **refund) is True
    with pytest.raises(ApiFailure, match="charge_already_refunded"):
        await client.call("refundStarPayment", **refund)
    assert ann.user.stars == 10_000
    rows = (await client.call("getStarTransactions"))["transactions"]
    assert [(row["id"], row["amount"], "source" in row) for row in rows] == [
        (payment.charge_id, 50, True),
        (payment.charge_id, 50, False),
    ]
    assert rows[0]["source"]["invoice_payload"] == "order-1"
    assert (await client.call("getStarTransactions", offset=1, limit=1))["transactions"] == rows[1:]


async def test_a_payment_fails_if_the_bot_refuses_or_answers_too_late(client: Client, ann: SimulatedUser) -> None:
    invoice = await client.call("sendInvoice", chat_id=ann.id, **invoice_given())
    refused = await pay(client, ann, invoice, ok=False, error_message="Sold out")
    assert (refused.ok, refused.reason) == (False, "Sold out")
    late = await ann.pay(invoice["message_id"])
    assert (late.ok, late.reason) == (False, "the bot did not answer in time")
    (asked,) = await client.call("getUpdates")
    with pytest.raises(ApiFailure, match="query is too old"):
        await client.call("answerPreCheckoutQuery", pre_checkout_query_id=asked["pre_checkout_query"]["id"], ok=True)
    assert ann.user.stars == 10_000


async def test_an_invoice_link_can_be_paid(client: Client, ann: SimulatedUser) -> None:
    link = await client.call("createInvoiceLink", **invoice_given())
    paying = asyncio.create_task(ann.pay(link))
    (asked,) = await client.call("getUpdates", timeout=5)
    await client.call("answerPreCheckoutQuery", pre_checkout_query_id=asked["pre_checkout_query"]["id"], ok=True)

    assert (await paying).ok


# the bot's profile


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
