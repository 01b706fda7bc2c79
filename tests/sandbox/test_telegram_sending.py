"""The Bot API's methods that send messages, through two client libraries written for the real server."""

import io

import pytest
from PIL import Image

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.bot_messages import KEYBOARD, KINDS, media, send
from tests.sandbox.client_libraries import ApiFailure, Bytes, Client
from tests.sandbox.sample_media import picture, sample


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
    assert kind in {"photo", "animation"} or fetched == content
    assert kind in {"photo", "animation", "voice"} or file["file_name"] == name


async def test_a_button_for_logging_in_comes_back_as_a_link(client: Client, ann: SimulatedUser) -> None:
    button = {"text": "Log in", "login_url": {"url": "https://x.example/hello"}}
    sent = await client.call("sendMessage", chat_id=ann.id, text="x", reply_markup={"inline_keyboard": [[button]]})
    [[shown]] = sent["reply_markup"]["inline_keyboard"]
    assert (shown["url"], shown.get("login_url")) == ("https://x.example/hello", None)


async def test_a_photo_has_sizes_and_the_largest_is_last(client: Client, ann: SimulatedUser) -> None:
    big = Bytes(picture(3000, 1500), "big.png")
    sizes = (await client.call("sendPhoto", chat_id=ann.id, photo=big))["photo"]

    assert [(size["width"], size["height"]) for size in sizes] == [(90, 45), (320, 160), (800, 400), (1280, 640)]
    with Image.open(io.BytesIO(await client.download(sizes[-1]["file_id"]))) as shown:
        assert (shown.size, "progressive" in shown.info) == ((1280, 640), True)
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
    assert [(entity["type"], entity["offset"], entity["length"]) for entity in first["entities"]] == [
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

    assert [(entity["type"], entity["offset"]) for entity in sent["entities"]] == [
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

    assert [entity["type"] for entity in sent.get("entities", [])] == entities
    if entities == ["pre"]:
        assert sent["entities"][0]["language"] == "python"
    if not entities:
        assert sent["text"] in {"x", "<b> & 😀 &nbsp;"}


async def test_album_messages_share_a_media_group_id(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call(
        "sendMediaGroup", chat_id=ann.id, media=[media("photo", caption="first"), media("video"), media("photo")]
    )

    assert [sorted({"photo", "video"} & message.keys()) for message in sent] == [["photo"], ["video"], ["photo"]]
    assert len({message["media_group_id"] for message in sent}) == 1
    assert [message.id for message in ann.messages] == [message["message_id"] for message in sent]
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
    with pytest.raises(ApiFailure, match="message content type can't be used in an album"):
        await client.call("editMessageMedia", chat_id=ann.id, message_id=first, media=media("animation"))
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
