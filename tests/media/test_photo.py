"""Images are made to fit Telegram's limits for photos."""

import io
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import ExifTags, Image

from genlock.media.photo import NotUsableAsPhoto, fit_photo, photo_fits
from genlock.media.sniff import recognise
from tests.media.samples import image

#: what the image and all copies of it may take, together
MEGABYTES_MAX = 320


def fitted(content: bytes) -> Image.Image | None:
    photo = fit_photo(io.BytesIO(content), len(content), recognise(content))
    return Image.open(photo) if photo else None


def test_an_image_within_the_limits_is_not_converted() -> None:
    assert fitted(image()) is None
    assert fitted(image((5000, 5000), form="JPEG")) is None


@pytest.mark.parametrize("form", ["WEBP", "BMP", "TIFF"])
def test_an_unsupported_format_becomes_a_jpeg_of_the_same_size(form: str) -> None:
    photo = fitted(image((300, 200), form=form))
    assert photo is not None
    assert (photo.format, photo.size) == ("JPEG", (300, 200))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_an_image_over_the_limit_is_scaled_down_in_proportion(form: str) -> None:
    photo = fitted(image((8000, 4000), form=form))
    assert photo is not None
    assert max(photo.size) <= 4096
    assert photo.size[0] == pytest.approx(2 * photo.size[1], abs=2)


def test_a_transparent_image_is_not_usable_and_an_unused_alpha_channel_is_no_harm() -> None:
    palette = Image.new("P", (64, 64), 3)
    palette.putpalette(bytes(range(12)))
    palette.info["transparency"] = 3
    for form in ("WEBP", "PNG"):
        opaque = Image.new("RGBA", (64, 64), (255, 0, 0, 255))
        assert fitted(saved(opaque, form)) is None or form == "WEBP"
        assert photo_fits(saved(opaque.convert("RGB"), form)) is (form == "PNG")
        opaque.putpixel((63, 63), (255, 0, 0, 200))
        assert not photo_fits(saved(opaque, form))
        with pytest.raises(NotUsableAsPhoto, match="transparent"):
            fitted(saved(opaque, form))
    with pytest.raises(NotUsableAsPhoto, match="transparent"):
        fitted(saved(palette, "PNG"))


def saved(picture: Image.Image, form: str) -> bytes:
    file = io.BytesIO()
    options = {"lossless": True} if form == "WEBP" else {}
    picture.save(file, form, **options)
    return file.getvalue()


@pytest.mark.slow
def test_an_image_that_needs_too_much_memory_is_not_decoded() -> None:
    with pytest.raises(NotUsableAsPhoto):
        fitted(image((9000, 9000)))


def test_a_scaled_image_keeps_its_orientation_and_its_whole_content() -> None:
    halves = Image.new("RGB", (1000, 9001), "red")
    halves.paste("blue", (0, 4500, 1000, 9001))
    exif = halves.getexif()
    exif[ExifTags.Base.Orientation] = 6  # the left is the top
    file = io.BytesIO()
    halves.save(file, "PNG", exif=exif)
    photo = fitted(file.getvalue())
    assert photo is not None
    assert photo.size == (3001, 334)
    pixels = [photo.crop((x, 160, x + 1, 161)).tobytes() for x in (0, 1400, 1600, 3000)]
    assert [pixel[0] > pixel[2] for pixel in pixels] == [False, False, True, True]


def flat_png(width: int, height: int, depth: int, colour: int, channels: int) -> bytes:
    """A PNG of one colour, half transparent if it has a palette or an alpha channel."""
    compressor = zlib.compressobj(1)
    row = b"\0" + b"\x11" * ((width * depth * channels + 7) // 8)
    data = b"".join(compressor.compress(row) for _ in range(height)) + compressor.flush()
    palette = {b"PLTE": bytes(768), b"tRNS": b"\x80" * 256} if colour == PALETTE else {}
    header = {b"IHDR": struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in {**header, **palette, b"IDAT": data, b"IEND": b""}.items()
    )


def flat_image(form: str, mode: str, side: int, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (side, side)).save(file, form, **options)
    return file.getvalue()


PALETTE, RGBA = 3, 6
#: images of few bytes that need much memory, each near the limit or above it
LARGE_IMAGES: dict[str, Callable[[], bytes]] = {
    "palette": lambda: flat_png(13_000, 13_000, 8, PALETTE, 1),
    "transparent": lambda: flat_png(7_000, 7_000, 8, RGBA, 4),
    "WebP": lambda: flat_image("WEBP", "RGBA", 4_000, lossless=True),
}
PEAK_MEMORY = """
import re, sys
from pathlib import Path
from genlock.media import photo, sniff
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
before = peak()
with open(sys.argv[1], "rb") as file:
    format_ = sniff.recognise(file.read(100))
    file.seek(0)
    try:
        photo.fit_photo(file, 10**9, format_)
    except photo.NotUsableAsPhoto:
        pass
print(peak() - before)
"""


@pytest.mark.process
@pytest.mark.slow
def test_no_image_needs_more_memory_than_the_limit(tmp_path: Path) -> None:
    peaks = {}
    for name, make in LARGE_IMAGES.items():
        (tmp_path / "large").write_bytes(make())
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PEAK_MEMORY, str(tmp_path / "large")],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks[name] = int(done.stdout)
    assert {name: peak for name, peak in peaks.items() if peak > MEGABYTES_MAX} == {}
    assert peaks["transparent"] > 190, "it was decoded"


@pytest.mark.slow
def test_a_jpeg_with_one_pass_may_be_larger_than_one_with_several() -> None:
    size = (7680, 4320)
    assert fitted(image(size, form="JPEG")) is not None
    with pytest.raises(NotUsableAsPhoto):
        fitted(image(size, form="JPEG", progressive=True))


def test_an_image_that_is_too_narrow_or_damaged_is_not_usable() -> None:
    for content in (image((2100, 100)), image()[:100], b"BMbroken"):
        with pytest.raises(NotUsableAsPhoto):
            fitted(content)
