"""Results of every kind, as providers make them."""

import io
import zipfile
from collections.abc import Callable

from PIL import Image

from genlock.domain.result import PartKind, Piece
from genlock.sandbox.kie.media import make_audio
from tests.media.samples import image

PNG, MP4, MP3 = ("image/png", "video/mp4", "audio/mpeg")


def text(value: str) -> Piece:
    return Piece(kind=PartKind.TEXT, value=value)


def made(content: bytes | Callable[[], bytes]) -> bytes:
    """Encode a file in the test that needs it: a parameter is made whenever the tests are collected."""
    return content() if callable(content) else content


def song() -> bytes:
    return make_audio(0)


def gif() -> bytes:
    file = io.BytesIO()
    frames = [Image.new("P", (64, 64), number) for number in range(4)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0)
    return file.getvalue()


def webp() -> bytes:
    return image(form="WEBP")


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("model.obj", "v 0 0 0")
    return file.getvalue()


def wav() -> bytes:
    return (
        b"RIFF\x24\x10\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\x10\0\0"
        + b"\0" * 4096
    )
