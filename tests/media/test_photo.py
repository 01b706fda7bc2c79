"""Images are made to fit Telegram's limits for photos."""

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PIL import ExifTags, Image

from genlock.media.photo import NotUsableAsPhoto, fit_photo
from genlock.media.sniff import recognise
from tests.media.samples import image


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


def test_transparent_pixels_become_white() -> None:
    file = io.BytesIO()
    Image.new("RGBA", (64, 64), (255, 0, 0, 0)).save(file, "WEBP")
    photo = fitted(file.getvalue())
    assert photo is not None
    assert photo.convert("L").getpixel((32, 32)) == 255


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


def flat_png(path: Path, side: int) -> None:
    """Write a half transparent square of one colour."""
    compressor = zlib.compressobj(9)
    row = b"\0" + bytes((10, 20, 30, 128)) * side
    data = b"".join(compressor.compress(row) for _ in range(side)) + compressor.flush()
    chunks = {b"IHDR": struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0), b"IDAT": data, b"IEND": b""}
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
            for name, body in chunks.items()
        )
    )


PEAK_MEMORY = """
import re, sys
from pathlib import Path
from genlock.media import photo, sniff
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
before = peak()
with open(sys.argv[1], "rb") as file:
    jpeg = photo.fit_photo(file, 1, sniff.PNG)
assert jpeg is not None
print(peak() - before)
"""


@pytest.mark.process
def test_the_largest_decoded_image_needs_little_more_memory_than_itself(tmp_path: Path) -> None:
    flat_png(tmp_path / "large.png", 7000)
    done = subprocess.run(
        [sys.executable, "-c", PEAK_MEMORY, str(tmp_path / "large.png")], capture_output=True, text=True, check=True
    )
    assert 190 < int(done.stdout) < 320, "megabytes"


def test_an_image_that_is_too_narrow_or_damaged_is_not_usable() -> None:
    for content in (image((2100, 100)), image()[:100], b"BMbroken"):
        with pytest.raises(NotUsableAsPhoto):
            fitted(content)
