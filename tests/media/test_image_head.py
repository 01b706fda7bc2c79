"""The sides of an image are read from its first bytes, in a time that no content can make long."""

import io
import struct
import time
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from genlock.media.download import HEAD_BYTES
from genlock.media.image_head import ImageHead, read_image_head
from genlock.media.photo import photo_fits, sides_too_long
from tests.media.samples import image

FORMS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "AVIF")
#: the event loop does nothing else meanwhile
SECONDS_MAX = 0.01


def saved(mode: str, size: tuple[int, int], form: str, **options: object) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size).save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize("form", FORMS)
def test_the_sides_are_those_that_a_decoder_finds(form: str) -> None:
    for size in ((1, 1), (300, 200), (37, 501)):
        found = read_image_head(image(size, form=form))
        assert found == ImageHead(*size, is_opaque=form in ("PNG", "JPEG"))


def test_every_form_of_webp_and_bmp_and_a_progressive_jpeg_have_their_sides() -> None:
    for content in (
        image((300, 200), form="WEBP", lossless=True),
        saved("RGBA", (300, 200), "WEBP", exif=b"Exif\0\0"),
        image((300, 200), form="JPEG", progressive=True),
        saved("CMYK", (300, 200), "JPEG"),
        b"BM" + bytes(12) + struct.pack("<IHHHH", 12, 300, 200, 1, 24),
        b"BM" + bytes(12) + struct.pack("<Iii", 40, 300, -200) + bytes(28),
    ):
        found = read_image_head(content)
        assert found is not None
        assert found[:2] == (300, 200)


def test_only_a_png_without_any_transparency_is_opaque() -> None:
    assert photo_fits(saved("RGB", (64, 64), "PNG"))
    assert photo_fits(saved("P", (64, 64), "PNG"))
    assert not photo_fits(saved("P", (64, 64), "PNG", transparency=0))
    assert not photo_fits(saved("RGB", (64, 64), "PNG", transparency=(0, 0, 0)))
    for mode in ("RGBA", "LA"):
        assert not photo_fits(saved(mode, (64, 64), "PNG"))


def test_long_sides_are_recognised() -> None:
    for form in FORMS:
        assert sides_too_long(image((2100, 100), form=form)), form
        assert not sides_too_long(image((2000, 100), form=form)), form


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def bombs() -> Iterator[tuple[str, bytes]]:
    """Images whose first bytes take a decoder long."""
    png, packed = image((64, 64)), zlib.compress(bytes(1_000_000), 9)
    for name, start in ((b"zTXt", b"k\0\0"), (b"iTXt", b"k\0\1\0\0\0"), (b"iCCP", b"k\0\0")):
        text = chunk(name, start + packed)
        yield name.decode(), png[:33] + text * (HEAD_BYTES // len(text) - 1) + png[33:]
    yield "empty chunks", png[:33] + chunk(b"tEXt", b"") * (HEAD_BYTES // 12) + png[33:]
    yield "segments", b"\xff\xd8" + b"\xff\xe0\0\2" * (HEAD_BYTES // 4)
    yield "repeated marks", b"\xff\xd8" + b"\xff" * HEAD_BYTES
    yield "fields", b"II*\0\x08\0\0\0\xff\xff" + struct.pack("<HHII", 256, 4, 1, 9) * (HEAD_BYTES // 12)
    yield "sides", b"\0\0\0\x20ftypavif" + b"ispe" * (HEAD_BYTES // 4)


def test_no_image_takes_the_event_loop_longer_than_a_few_milliseconds() -> None:
    for name, content in bombs():
        head = content[:HEAD_BYTES]
        seconds = []
        for _ in range(3):
            started = time.thread_time()
            photo_fits(head)
            sides_too_long(head)
            seconds.append(time.thread_time() - started)
        assert min(seconds) < SECONDS_MAX, name


@given(st.sampled_from(FORMS), st.integers(0, 200), st.binary(max_size=40), st.integers(0, 400))
def test_a_damaged_image_never_raises(form: str, place: int, junk: bytes, length: int) -> None:
    content = bytearray(image((30, 20), form=form))
    content[place : place + len(junk)] = junk
    for head in (bytes(content), bytes(content[:length])):
        found = read_image_head(head)
        assert found is None or min(found.width, found.height) > 0
