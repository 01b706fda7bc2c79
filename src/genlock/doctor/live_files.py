"""Small valid files of every kind that Telegram shows. Film and sound are data: making them needs an encoder."""

import io
from importlib.resources import files
from typing import Any

from PIL import Image
from telegram import (
    InputMedia,
    InputMediaAnimation,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
)

_SIZE = (320, 240)
_COLOURS = ("#2f6f4e", "#6f2f4e", "#2f4e6f")
_MEDIA: dict[str, Any] = {
    "photo": InputMediaPhoto,
    "video": InputMediaVideo,
    "animation": InputMediaAnimation,
    "audio": InputMediaAudio,
    "document": InputMediaDocument,
}
#: the kinds that a message can become by an edit
KINDS = tuple(_MEDIA)


def make_file(kind: str) -> tuple[bytes, str]:
    """Return a file of this kind, and its name."""
    match kind:
        case "photo":
            return _picture("PNG"), "picture.png"
        case "animation":
            return _picture("GIF"), "moving.gif"
        case "document":
            return b"genlock doctor\n", "note.txt"
        case _:
            name = {"video": "film.mp4", "audio": "sound.mp3", "voice": "voice.ogg"}[kind]
            return (files("genlock.doctor") / "samples" / name).read_bytes(), name


def _picture(form: str) -> bytes:
    first, *others = (Image.new("RGB", _SIZE, colour) for colour in _COLOURS)
    file = io.BytesIO()
    if form == "GIF":
        first.save(file, form, save_all=True, append_images=others, duration=200, loop=0)
    else:
        first.save(file, form)
    return file.getvalue()


def upload(kind: str) -> InputMedia:
    """Return the file as an upload for an edit."""
    content, name = make_file(kind)
    media: InputMedia = _MEDIA[kind](media=content, filename=name, caption=f"genlock doctor: {kind}")
    return media


def by_reference(kind: str, reference: str) -> InputMedia:
    """Return a file by its id or by its URL, for an edit."""
    media: InputMedia = _MEDIA[kind](media=reference, caption=f"genlock doctor: {kind}")
    return media
