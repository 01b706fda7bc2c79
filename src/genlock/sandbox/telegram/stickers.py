"""Stickers that the simulated users can send: painted faces, as WebP files of 512 pixels like Telegram's."""

import io
import math
from dataclasses import dataclass
from functools import cache

from PIL import Image, ImageDraw

from genlock.sandbox.telegram.files import Files, Stored

SIDE = 512
SET_NAME = "sandbox"
_EDGE = 16
_DARK = "#3b2a1a"


@dataclass(frozen=True, kw_only=True)
class Sticker:
    """One sticker of the set, identified by its emoji."""

    emoji: str
    colour: str
    eyes: str
    mouth: str


STICKERS = {
    sticker.emoji: sticker
    for sticker in (
        Sticker(emoji="😀", colour="#ffd54a", eyes="open", mouth="laugh"),
        Sticker(emoji="😉", colour="#ffd54a", eyes="wink", mouth="smile"),
        Sticker(emoji="😍", colour="#ffcb3d", eyes="hearts", mouth="laugh"),
        Sticker(emoji="😮", colour="#8fd0ff", eyes="open", mouth="round"),
        Sticker(emoji="😢", colour="#8fb8ff", eyes="tears", mouth="sad"),
        Sticker(emoji="😡", colour="#ff7a5c", eyes="angry", mouth="sad"),
        Sticker(emoji="🤖", colour="#b9c6d6", eyes="open", mouth="flat"),
        Sticker(emoji="🌞", colour="#ffb02e", eyes="wink", mouth="laugh"),
    )
}


async def store_sticker(files: Files, emoji: str) -> Stored:
    """Store the file of a sticker, with the same unique id each time. Raises KeyError for an unknown one."""
    stored = await files.add("sticker", sticker_file(emoji), extension=".webp", type_="image/webp")
    stored.unique = "AgAD" + emoji.encode().hex()
    fields = {"file_id": stored.id, "file_unique_id": stored.unique, "file_size": stored.size}
    fields |= {"type": "regular", "width": SIDE, "height": SIDE, "is_animated": False, "is_video": False}
    stored.media_object = fields | {"emoji": emoji, "set_name": SET_NAME}
    return stored


@cache
def sticker_file(emoji: str) -> bytes:
    """Return the WebP file of a sticker. Raises KeyError for an emoji that the set does not have."""
    sticker = STICKERS[emoji]
    picture = Image.new("RGBA", (SIDE, SIDE))
    pen = ImageDraw.Draw(picture)
    if emoji == "🌞":
        _rays(pen, sticker.colour)
    inset = 92 if emoji == "🌞" else 40
    box = (inset, inset, SIDE - inset, SIDE - inset)
    radius = 110 if emoji == "🤖" else SIDE / 2 - inset
    pen.rounded_rectangle(box, radius, fill="white")
    inner = (inset + _EDGE, inset + _EDGE, SIDE - inset - _EDGE, SIDE - inset - _EDGE)
    pen.rounded_rectangle(inner, radius - _EDGE, fill=sticker.colour)
    for side in (-1, 1):
        _eye(pen, SIDE / 2 + side * 84, 216, side, sticker.eyes)
    _mouth(pen, sticker.mouth)
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=90)
    return file.getvalue()


def _rays(pen: ImageDraw.ImageDraw, colour: str) -> None:
    middle = SIDE / 2
    for place in range(12):
        turn = math.tau * place / 12
        tip = (middle + 246 * math.cos(turn), middle + 246 * math.sin(turn))
        feet = [(middle + 170 * math.cos(turn + by), middle + 170 * math.sin(turn + by)) for by in (-0.17, 0.17)]
        pen.polygon([tip, *feet], fill=colour, outline="white", width=5)


def _eye(pen: ImageDraw.ImageDraw, x: float, y: float, side: int, look: str) -> None:
    if look == "hearts":
        pen.ellipse((x - 46, y - 40, x, y + 6), fill="#e5344b")
        pen.ellipse((x, y - 40, x + 46, y + 6), fill="#e5344b")
        pen.polygon([(x - 43, y - 6), (x + 43, y - 6), (x, y + 46)], fill="#e5344b")
        return
    if look == "wink" and side == 1:
        pen.arc((x - 36, y - 24, x + 36, y + 36), 200, 340, fill=_DARK, width=16)
        return
    pen.ellipse((x - 24, y - 32, x + 24, y + 32), fill=_DARK)
    pen.ellipse((x - 12, y - 22, x + 4, y - 4), fill="white")
    if look == "angry":
        pen.line((x - side * 54, y - 34, x + side * 40, y - 74), fill=_DARK, width=16)
    if look == "tears":
        pen.ellipse((x - 16, y + 44, x + 16, y + 96), fill="#3d8bff")


def _mouth(pen: ImageDraw.ImageDraw, look: str) -> None:
    middle = SIDE / 2
    match look:
        case "laugh":
            pen.chord((middle - 100, 226, middle + 100, 398), 0, 180, fill="#7a1f2b")
            pen.chord((middle - 52, 340, middle + 52, 430), 190, 350, fill="#ff8d9a")
        case "smile":
            pen.arc((middle - 96, 216, middle + 96, 376), 20, 160, fill=_DARK, width=18)
        case "round":
            pen.ellipse((middle - 42, 300, middle + 42, 392), fill="#7a1f2b")
        case "sad":
            pen.arc((middle - 84, 318, middle + 84, 450), 205, 335, fill=_DARK, width=18)
        case _:
            pen.rounded_rectangle((middle - 90, 318, middle + 90, 350), radius=14, fill=_DARK)
