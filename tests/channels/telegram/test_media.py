"""What a file is, and what becomes of pictures and films on their way."""

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ExifTags, Image

from genlock.channels.telegram.messages import Button, OutgoingMessage
from genlock.channels.telegram.text import cut, length, plain, split
from genlock.media.formats import (
    DoesNotFit,
    Kind,
    NoMedia,
    make_photo,
    photo_fits,
    recognise,
)
from genlock.media.mp4_info import Film, measure
from genlock.sandbox.kie.media import make_audio
from tests.channels.telegram.house import film, picture

FTYP = b"\0\0\0\x18ftyp"


@pytest.mark.parametrize(
    ("head", "kind", "suffix"),
    [
        (picture(), Kind.PHOTO, ".png"),
        (picture(form="JPEG"), Kind.PHOTO, ".jpg"),
        (picture(form="WEBP"), Kind.PHOTO, ".webp"),
        (picture(form="BMP"), Kind.PHOTO, ".bmp"),
        (picture(form="TIFF"), Kind.PHOTO, ".tiff"),
        (picture(form="GIF"), Kind.ANIMATION, ".gif"),
        (film(), Kind.VIDEO, ".mp4"),
        (FTYP + b"qt  ", Kind.VIDEO, ".mov"),
        (FTYP + b"M4A ", Kind.AUDIO, ".m4a"),
        (FTYP + b"avif", Kind.PHOTO, ".avif"),
        (FTYP + b"heic", Kind.DOCUMENT, ".heic"),
        (make_audio(0), Kind.AUDIO, ".mp3"),
        (b"\xff\xfb\x90\x64" + b"\0" * 100, Kind.AUDIO, ".mp3"),
        (b"ID3\x04" + b"\0" * 100, Kind.AUDIO, ".mp3"),
        (b"OggS\0\x02", Kind.AUDIO, ".ogg"),
        (b"fLaC\0", Kind.AUDIO, ".flac"),
        (b"RIFF\0\0\0\0WAVEfmt ", Kind.AUDIO, ".wav"),
        (b"RIFF\0\0\0\0AVI LIST", Kind.DOCUMENT, ".avi"),
        (b"\x1a\x45\xdf\xa3", Kind.DOCUMENT, ".webm"),
        (b"%PDF-1.4", Kind.DOCUMENT, ".pdf"),
        (b"PK\x03\x04", Kind.DOCUMENT, ".zip"),
        (b"glTF\x02", Kind.DOCUMENT, ".glb"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", Kind.DOCUMENT, ".bin"),
        (b"{not json at all", Kind.DOCUMENT, ".bin"),
        (b"[Verse 1]\nOh", Kind.DOCUMENT, ".bin"),
    ],
)
def test_the_first_bytes_say_what_it_is_whatever_the_server_says(head: bytes, kind: Kind, suffix: str) -> None:
    for said in ("application/octet-stream", "image/x-unheard-of", ""):
        found = recognise(head, said)
        assert (found.kind, found.suffix) == (kind, suffix)


@pytest.mark.parametrize(
    ("said", "kind", "suffix"),
    [
        ("text/plain; charset=utf-8", Kind.DOCUMENT, ".txt"),
        ("AUDIO/MPEG", Kind.AUDIO, ".mp3"),
        ("video/mp4", Kind.VIDEO, ".mp4"),
        ("application/x-subrip", Kind.DOCUMENT, ".srt"),
        ("font/woff", Kind.DOCUMENT, ".bin"),
    ],
)
def test_where_the_bytes_say_nothing_the_server_is_believed(said: str, kind: Kind, suffix: str) -> None:
    found = recognise(b"\x01\x02 nothing known", said)
    assert (found.kind, found.suffix) == (kind, suffix)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"", "image/png"),
        (b"\xef\xbb\xbf\n<!DOCTYPE HTML>", "image/png"),
        (b"<HTML>", ""),
        (b"anything", "text/html; charset=utf-8"),
        (b"<?xml version='1.0'?><Error/>", ""),
        (b'{"code":404,"msg":"no"}', ""),
        (b'[{"a": 1}]', ""),
        (b'  {"data": "' + b"x" * 60_000, ""),
        (b"null", "application/json"),
        (b"{}", "application/problem+json"),
        (b"[" * 60_000, ""),
        (b'{"a":' * 12_000, ""),
    ],
)
def test_pages_answers_and_nothing_are_no_media(head: bytes, said: str) -> None:
    with pytest.raises(NoMedia):
        recognise(head, said)


@given(st.binary(min_size=1, max_size=600), st.text(max_size=30))
def test_any_bytes_are_something_or_no_media(head: bytes, said: str) -> None:
    try:
        found = recognise(head, said)
    except NoMedia:
        return
    assert found.suffix.startswith(".")
    photo_fits(head)
    measure(io.BytesIO(head))


# pictures


def made(content: bytes) -> Image.Image | None:
    photo = make_photo(io.BytesIO(content), len(content), recognise(content))
    return Image.open(photo) if photo else None


def test_a_picture_that_fits_stays_as_it_is() -> None:
    assert made(picture()) is None
    assert made(picture((5000, 5000), form="JPEG")) is None


@pytest.mark.parametrize("form", ["WEBP", "BMP", "TIFF"])
def test_a_picture_telegram_does_not_know_becomes_a_jpeg_of_the_same_size(form: str) -> None:
    photo = made(picture((300, 200), form=form))
    assert photo is not None
    assert (photo.format, photo.size) == ("JPEG", (300, 200))


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_a_picture_too_large_becomes_smaller_in_the_same_shape(form: str) -> None:
    photo = made(picture((8000, 4000), form=form))
    assert photo is not None
    assert max(photo.size) <= 4096
    assert photo.size[0] == pytest.approx(2 * photo.size[1], abs=2)


def test_what_is_transparent_becomes_white() -> None:
    file = io.BytesIO()
    Image.new("RGBA", (64, 64), (255, 0, 0, 0)).save(file, "WEBP")
    photo = made(file.getvalue())
    assert photo is not None
    assert photo.convert("L").getpixel((32, 32)) == 255


def test_a_picture_that_unpacks_into_too_much_memory_is_left_alone() -> None:
    with pytest.raises(DoesNotFit):
        made(picture((9000, 9000)))


def test_a_picture_is_the_right_way_up_and_whole_after_it_was_made_smaller() -> None:
    halves = Image.new("RGB", (1000, 9001), "red")
    halves.paste("blue", (0, 4500, 1000, 9001))
    exif = halves.getexif()
    exif[ExifTags.Base.Orientation] = 6  # the left is the top
    file = io.BytesIO()
    halves.save(file, "PNG", exif=exif)
    photo = made(file.getvalue())
    assert photo is not None
    assert photo.size == (3001, 334)
    pixels = [photo.crop((x, 160, x + 1, 161)).tobytes() for x in (0, 1400, 1600, 3000)]
    assert [pixel[0] > pixel[2] for pixel in pixels] == [False, False, True, True]


def flat_png(path: Path, side: int) -> None:
    """A half transparent square of one colour, packed row by row."""
    pack = zlib.compressobj(9)
    row = b"\0" + bytes((10, 20, 30, 128)) * side
    data = b"".join(pack.compress(row) for _ in range(side)) + pack.flush()
    chunks = {b"IHDR": struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0), b"IDAT": data, b"IEND": b""}
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
            for name, body in chunks.items()
        )
    )


MEASURE = """
import re, sys
from pathlib import Path
from genlock.media import formats as media
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
before = peak()
with open(sys.argv[1], "rb") as file:
    made = media.make_photo(file, 1, media.PNG)
assert made is not None
print(peak() - before)
"""


def test_the_largest_picture_that_is_opened_takes_little_more_than_itself(tmp_path: Path) -> None:
    flat_png(tmp_path / "large.png", 7000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "large.png")], capture_output=True, text=True, check=True
    )
    assert 190 < int(done.stdout) < 320, "megabytes"


def test_a_picture_too_narrow_or_broken_does_not_fit() -> None:
    for content in (picture((2100, 100)), picture()[:100], b"BMbroken"):
        with pytest.raises(DoesNotFit):
            made(content)


# films


def test_a_film_tells_its_measures() -> None:
    file = io.BytesIO(film())
    assert measure(file) == Film(width=512, height=512, seconds=2)
    assert file.tell() == 0


def test_a_film_with_its_index_at_the_end_tells_its_measures() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as made_film:
        stream = made_film.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for _ in range(30):
            frame = av.VideoFrame.from_image(Image.new("RGB", (320, 180)))  # type: ignore[no-untyped-call]
            made_film.mux(stream.encode(frame))
        made_film.mux(stream.encode(None))
    assert measure(io.BytesIO(file.getvalue())) == Film(width=320, height=180, seconds=3)


@given(st.binary(max_size=200))
def test_a_broken_index_tells_nothing_and_does_no_harm(content: bytes) -> None:
    box = struct.pack(">I4s", len(content) + 8, b"moov") + content
    measure(io.BytesIO(FTYP + b"isom" + b"\0" * 12 + box))
    measure(io.BytesIO(box))


# texts


@given(st.text(alphabet=st.sampled_from("ab 🦊\n"), max_size=300), st.integers(min_value=2, max_value=40))
def test_a_split_text_fits_and_loses_only_spaces(text: str, limit: int) -> None:
    pieces = split(text, limit)
    assert all(0 < length(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert split("".join(pieces[:1]), limit) == pieces[:1], "what fits stays whole"


def test_a_text_is_split_at_paragraphs_then_lines_then_spaces() -> None:
    assert split("aaaa bbbb\n\ncccc dddd", 12) == ["aaaa bbbb", "cccc dddd"]
    assert split("aaaa bbbb cccc", 10) == ["aaaa bbbb", "cccc"]
    assert split("a" * 10, 4) == ["aaaa", "aaaa", "aa"]


def test_a_fox_counts_as_two() -> None:
    assert length("🦊a") == 3
    assert cut("🦊🦊🦊", 5) == "🦊🦊"


def test_plain_words_have_no_tags_and_no_buttons() -> None:
    said = OutgoingMessage(text='<b>A</i> &lt;1&gt; <a href="x">b</a>', buttons=((Button(text="x", data="y"),),))
    assert plain(said, 100) == OutgoingMessage(text="A &lt;1&gt; b")
