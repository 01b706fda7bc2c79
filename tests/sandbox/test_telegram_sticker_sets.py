"""Sets of stickers that the bot makes."""

import gzip
import json
from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.sample_media import picture

NAME = "faces_by_sandbox_bot"
ANIMATED = gzip.compress(b'{"v": "5.5.2", "tgs": 1}')


class Caller:
    """Calls the Bot API with files that JSON arguments refer to by `attach://`."""

    def __init__(self, telegram: TelegramSimulator) -> None:
        self._base = f"{telegram.url}/bot{telegram.token}"

    async def call(self, method: str, files: dict[str, bytes] | None = None, **arguments: Any) -> Any:
        form = aiohttp.FormData(
            {
                name: json.dumps(value) if isinstance(value, list | dict) else str(value)
                for name, value in arguments.items()
            }
        )
        for name, content in (files or {}).items():
            form.add_field(name, content, filename=f"{name}.bin")
        async with aiohttp.ClientSession() as session, session.post(f"{self._base}/{method}", data=form) as response:
            body = await response.json()
        return body["result"] if body["ok"] else body["description"]


@pytest.fixture
def caller(telegram: TelegramSimulator) -> Caller:
    return Caller(telegram)


def item(file: str, *emoji: str, **more: Any) -> dict[str, Any]:
    return {"sticker": f"attach://{file}", "emoji_list": list(emoji), "format": "static"} | more


async def made_set(caller: Caller, ann: SimulatedUser, **more: Any) -> dict[str, Any]:
    stickers = [item("still", "😀"), item("moving", "😉")]
    files = {"still": picture(512, 512), "moving": ANIMATED}
    given = {"user_id": ann.id, "name": NAME, "title": "Faces", "stickers": stickers} | more
    assert await caller.call("createNewStickerSet", files, **given) is True
    found = await caller.call("getStickerSet", name=NAME)
    assert isinstance(found, dict)
    return found


async def test_a_set_has_the_stickers_it_was_made_of(caller: Caller, ann: SimulatedUser) -> None:
    found = await made_set(caller, ann)
    assert [(sticker["emoji"], sticker["is_animated"], sticker["set_name"]) for sticker in found["stickers"]] == [
        ("😀", False, NAME),
        ("😉", True, NAME),
    ]
    assert (
        await caller.call(
            "createNewStickerSet",
            {"still": picture()},
            user_id=ann.id,
            name=NAME,
            title="x",
            stickers=[item("still", "😀")],
        )
        == "Bad Request: sticker set name is already occupied"
    )


async def test_stickers_are_added_moved_replaced_and_deleted(caller: Caller, ann: SimulatedUser) -> None:
    first, second = (sticker["file_id"] for sticker in (await made_set(caller, ann))["stickers"])
    place = {"user_id": ann.id, "name": NAME}
    assert await caller.call("addStickerToSet", {"new": picture()}, sticker=item("new", "😍"), **place) is True
    assert await caller.call("setStickerPositionInSet", sticker=first, position=2) is True
    assert (
        await caller.call(
            "replaceStickerInSet", {"new": picture()}, old_sticker=second, sticker=item("new", "😢"), **place
        )
        is True
    )
    assert await caller.call("setStickerEmojiList", sticker=first, emoji_list=["🤖", "😮"]) is True
    found = await caller.call("getStickerSet", name=NAME)
    assert [sticker["emoji"] for sticker in found["stickers"]] == ["😢", "😍", "🤖"]
    assert await caller.call("deleteStickerFromSet", sticker=second) == "Bad Request: STICKER_INVALID"
    for sticker in found["stickers"]:
        assert await caller.call("deleteStickerFromSet", sticker=sticker["file_id"]) is True
    assert await caller.call("getStickerSet", name=NAME) == "Bad Request: STICKERSET_INVALID"


async def test_a_set_has_a_title_and_a_thumbnail(caller: Caller, ann: SimulatedUser) -> None:
    await made_set(caller, ann)
    assert await caller.call("setStickerSetTitle", name=NAME, title="New faces") is True
    given = {"name": NAME, "user_id": ann.id, "format": "static"}
    assert await caller.call("setStickerSetThumbnail", {"thumbnail": picture(100, 100)}, **given) is True
    found = await caller.call("getStickerSet", name=NAME)
    assert (found["title"], found["thumbnail"]["width"]) == ("New faces", 100)
    assert await caller.call("deleteStickerSet", name=NAME) is True


async def test_masks_have_a_position_and_custom_emoji_an_id(caller: Caller, ann: SimulatedUser) -> None:
    eyes = {"point": "eyes", "x_shift": 0.0, "y_shift": 0.0, "scale": 1.0}
    found = await made_set(caller, ann, sticker_type="mask", stickers=[item("still", "😀", mask_position=eyes)])
    assert found["stickers"][0]["mask_position"] == eyes
    assert await caller.call("deleteStickerSet", name=NAME) is True
    found = await made_set(caller, ann, sticker_type="custom_emoji", stickers=[item("still", "😀")])
    number = found["stickers"][0]["custom_emoji_id"]
    assert await caller.call("getCustomEmojiStickers", custom_emoji_ids=[number]) == found["stickers"]
    position = await caller.call("setStickerMaskPosition", sticker=found["stickers"][0]["file_id"], mask_position=eyes)
    assert position == "Bad Request: STICKER_MASK_COORDS_NOT_SUPPORTED"


async def test_icons_of_topics_are_custom_emoji(caller: Caller) -> None:
    icons = await caller.call("getForumTopicIconStickers")
    assert {icon["type"] for icon in icons} == {"custom_emoji"}
    assert [icon["emoji"] for icon in icons][:2] == ["📰", "💡"], "as in Telegram's own list"
    assert await caller.call("getCustomEmojiStickers", custom_emoji_ids=[icons[1]["custom_emoji_id"]]) == [icons[1]]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"name": "faces"}, "invalid sticker set name is specified"),
        ({"stickers": []}, "STICKERS_EMPTY"),
        ({"stickers": [{"sticker": "attach://still"}]}, "invalid sticker emojis"),
        ({"sticker_type": "huge"}, "unsupported sticker type specified"),
        ({"user_id": 1}, "user not found"),
    ],
)
async def test_a_bad_set_is_refused(caller: Caller, ann: SimulatedUser, given: dict[str, Any], error: str) -> None:
    whole = {"user_id": ann.id, "name": NAME, "title": "Faces", "stickers": [item("still", "😀")]} | given
    assert await caller.call("createNewStickerSet", {"still": picture()}, **whole) == f"Bad Request: {error}"
