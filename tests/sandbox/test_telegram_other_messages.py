"""Messages that the product does not send, through two client libraries written for the real server."""

import io
import json

import aiohttp
import pytest
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from genlock.sandbox.telegram.probe import make_thumbnail
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.bot_messages import KEYBOARD
from tests.sandbox.client_libraries import ApiFailure, Bytes, Client
from tests.sandbox.sample_media import picture, sample, sound, video

HERE = {"latitude": 52.5, "longitude": 13.25}


async def test_a_location_can_be_live_until_it_is_stopped(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendLocation", chat_id=ann.id, **HERE, live_period=80, heading=90)
    assert sent["location"] == HERE | {"live_period": 80, "heading": 90}
    place = {"chat_id": ann.id, "message_id": sent["message_id"]}
    moved = await client.call("editMessageLiveLocation", latitude=52.75, longitude=13.25, **place)
    assert (moved["location"]["latitude"], moved["location"]["live_period"]) == (52.75, 80)
    stopped = await client.call("stopMessageLiveLocation", **place)
    assert stopped["location"] == {"latitude": 52.75, "longitude": 13.25}
    with pytest.raises(ApiFailure, match="message can't be edited"):
        await client.call("editMessageLiveLocation", **HERE, **place)


async def test_venues_contacts_and_dice_are_sent(client: Client, ann: SimulatedUser) -> None:
    names = {"title": "Home", "address": "Street 1", "google_place_id": "g", "foursquare_id": "f"}
    venue = await client.call("sendVenue", chat_id=ann.id, **HERE, **names)
    assert venue["venue"] == {"location": HERE, "title": "Home", "address": "Street 1", "foursquare_id": "f"}
    assert venue["location"] == HERE
    contact = await client.call("sendContact", chat_id=ann.id, phone_number="+1", first_name="Bob")
    assert contact["contact"] == {"phone_number": "+1", "first_name": "Bob"}
    dice = await client.call("sendDice", chat_id=ann.id, emoji="🏀")
    assert 1 <= dice["dice"]["value"] <= 5
    assert [message.kind for message in ann.messages] == ["venue", "contact", "dice"]


@pytest.mark.parametrize(
    ("method", "given", "error"),
    [
        ("sendLocation", HERE | {"live_period": 5}, "wrong live location period"),
        ("sendDice", {"emoji": "😀"}, "emoticon_invalid"),
        ("sendPoll", {"question": "?", "options": []}, "poll must have at least one answer option"),
        ("sendPoll", {"question": "", "options": ["a"]}, "text must be non-empty"),
        ("sendPoll", {"question": "?", "options": ["a", "b" * 101]}, "length must not exceed 100"),
    ],
)
async def test_bad_values_are_refused(
    client: Client, ann: SimulatedUser, method: str, given: dict[str, object], error: str
) -> None:
    with pytest.raises(ApiFailure, match=error):
        await client.call(method, chat_id=ann.id, **given)


async def test_a_poll_is_open_until_the_bot_stops_it(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call("sendPoll", chat_id=ann.id, question="Is it?", options=["Yes", "No"], is_anonymous=False)
    assert [option["text"] for option in sent["poll"]["options"]] == ["Yes", "No"]
    assert (sent["poll"]["is_anonymous"], sent["poll"]["type"]) == (False, "regular")
    place = {"chat_id": ann.id, "message_id": sent["message_id"]}
    assert (await client.call("stopPoll", **place))["is_closed"] is True
    with pytest.raises(ApiFailure, match="poll has already been closed"):
        await client.call("stopPoll", **place)


async def test_a_poll_closes_at_its_time(client: Client, telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    await client.call("sendPoll", chat_id=ann.id, question="Is it?", options=["Yes", "No"], close_date=1)
    await telegram.until(lambda: ann.last.content["poll"]["is_closed"])


async def test_a_quiz_explains_its_answer(client: Client, ann: SimulatedUser) -> None:
    quiz = {"type": "quiz", "explanation": "<b>so</b>", "explanation_parse_mode": "HTML"}
    sent = await client.call(
        "sendPoll", chat_id=ann.id, question="Is it?", options=["Yes", "No"], correct_option_ids=[0, 1], **quiz
    )
    assert (sent["poll"]["explanation"], sent["poll"]["correct_option_ids"]) == ("so", [0, 1])
    assert sent["poll"]["explanation_entities"][0]["type"] == "bold"


async def test_video_notes_and_stickers_show_their_file(client: Client, ann: SimulatedUser) -> None:
    note = await client.call("sendVideoNote", chat_id=ann.id, video_note=Bytes(video(), "note.mp4"))
    assert (note["video_note"]["length"], note["video_note"]["thumbnail"]["height"]) == (360, 180)
    sticker = await client.call("sendSticker", chat_id=ann.id, sticker=Bytes(picture(), "s.png"), emoji="😀")
    assert (sticker["sticker"]["emoji"], sticker["sticker"]["is_video"]) == ("😀", False)
    again = await client.call("sendSticker", chat_id=ann.id, sticker=sticker["sticker"]["file_id"])
    assert again["sticker"] == sticker["sticker"]
    assert [message.kind for message in ann.messages] == ["video_note", "sticker", "sticker"]


async def test_a_live_photo_is_a_photo_with_a_video(client: Client, ann: SimulatedUser) -> None:
    sent = await client.call(
        "sendLivePhoto", chat_id=ann.id, live_photo=Bytes(video(), "l.mp4"), photo=Bytes(picture(), "l.png")
    )
    assert sent["live_photo"]["photo"] == sent["photo"]
    assert ann.last.kind == "photo"


async def test_a_video_has_the_cover_and_the_start_that_the_bot_gave(client: Client, ann: SimulatedUser) -> None:
    given = {"video": Bytes(video(), "film.mp4"), "cover": Bytes(picture(), "c.png"), "start_timestamp": 1}
    sent = await client.call("sendVideo", chat_id=ann.id, **given)
    assert ann.last.content["video"]["start_timestamp"] == 1
    assert (sent["video"]["cover"][-1]["width"], sent["video"]["cover"][-1]["height"]) == (640, 480)


async def test_telegram_makes_thumbnails_of_pictures_and_videos_and_takes_one_for_other_files(
    client: Client, ann: SimulatedUser
) -> None:
    small = Bytes(picture(100, 50), "small.png")
    shown = {}
    for kind, content, name in (
        ("document", picture(), "p.png"),
        ("video", video(), "v.mp4"),
        ("audio", sound(), "s.mp3"),
    ):
        sent = await client.call(
            f"send{kind.capitalize()}", chat_id=ann.id, **{kind: Bytes(content, name)}, thumbnail=small
        )
        shown[kind] = (sent[kind]["thumbnail"]["width"], sent[kind]["thumbnail"]["height"])
    assert shown == {"document": (320, 240), "video": (320, 180), "audio": (100, 50)}
    content, name = sample("document")
    plain = await client.call("sendDocument", chat_id=ann.id, document=Bytes(content, name))
    assert "thumbnail" not in plain["document"], "Telegram cannot make one of it"


def test_thumbnails_are_encoded_as_by_telegram() -> None:
    made = make_thumbnail(picture())
    assert made is not None
    with Image.open(io.BytesIO(made[2])) as thumbnail:
        assert isinstance(thumbnail, JpegImageFile)
        assert (thumbnail.size, thumbnail.quantization[0][0]) == ((320, 240), 5), "a JPEG of quality 85"
    with Image.open(io.BytesIO(picture())) as opened:
        file = io.BytesIO()
        opened.save(file, "PNG", icc_profile=b"colours")
    made = make_thumbnail(file.getvalue())
    assert made is not None
    assert b"colours" in made[2], "the profile of its colours stays"


def test_the_thumbnail_of_a_transparent_picture_is_white() -> None:
    file = io.BytesIO()
    Image.new("RGBA", (64, 64)).save(file, "PNG")
    made = make_thumbnail(file.getvalue())
    assert made is not None
    with Image.open(io.BytesIO(made[2])) as thumbnail:
        assert thumbnail.getpixel((32, 32)) == (255, 255, 255)


async def test_a_user_sends_a_picture_as_a_file_with_a_thumbnail(ann: SimulatedUser) -> None:
    message = await ann.send("document", picture(), name="house.png")
    thumbnail = message.content["document"]["thumbnail"]
    assert (thumbnail["width"], thumbnail["height"]) == (320, 240)


async def test_each_kind_needs_its_right(client: Client, telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    friends = telegram.group("Friends", [ann])
    await friends.forbid("text", "sticker")
    for method, given, name in (
        ("sendDice", {}, "dice"),
        ("sendContact", {"phone_number": "+1", "first_name": "Bob"}, "contacts"),
        ("sendLocation", HERE, "locations"),
    ):
        with pytest.raises(ApiFailure, match=f"not enough rights to send {name} to the chat"):
            await client.call(method, chat_id=friends.id, **given)
    await client.call("sendPoll", chat_id=friends.id, question="Is it?", options=["Yes"])


async def test_only_the_keyboard_of_a_sticker_or_dice_can_be_edited(client: Client, ann: SimulatedUser) -> None:
    sent = [
        await client.call("sendDice", chat_id=ann.id),
        await client.call("sendSticker", chat_id=ann.id, sticker=Bytes(picture(), "s.png")),
    ]
    for message in sent:
        place = {"chat_id": ann.id, "message_id": message["message_id"]}
        with pytest.raises(ApiFailure, match="message can't be edited"):
            await client.call("editMessageText", text="x", **place)
        with pytest.raises(ApiFailure, match="message can't be edited"):
            await client.call("editMessageCaption", caption="x", **place)
        edited = await client.call("editMessageReplyMarkup", reply_markup=KEYBOARD, **place)
        assert edited["reply_markup"] == KEYBOARD


async def test_paid_media_has_a_price_and_a_caption_that_can_be_edited(
    telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    form = aiohttp.FormData({"chat_id": str(ann.id), "star_count": "5", "caption": "x"})
    form.add_field("media", json.dumps([{"type": "photo", "media": "attach://photo"}]))
    form.add_field("photo", picture(), filename="p.png")
    base = f"{telegram.url}/bot{telegram.token}"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{base}/sendPaidMedia", data=form) as response:
            sent = (await response.json())["result"]
        place = {"chat_id": ann.id, "message_id": sent["message_id"], "caption": "y"}
        async with session.post(f"{base}/editMessageCaption", json=place) as response:
            edited = (await response.json())["result"]
    assert (sent["paid_media"]["star_count"], sent["paid_media"]["paid_media"][0]["type"]) == (5, "photo")
    assert edited["caption"] == "y"
