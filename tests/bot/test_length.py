"""How long a file plays is counted in its bytes, whatever its sender or its header says."""

import io
import struct
from fractions import Fraction
from functools import cache
from tempfile import TemporaryFile
from typing import Any

import av
import pytest
from hypothesis import given
from hypothesis import strategies as some
from PIL import Image

from genlock.media.duration import measure, measure_file

SECONDS = 12


@cache
def film(container: str, codec: str, *, fragments: bool = False) -> bytes:
    file = io.BytesIO()
    options = {"movflags": "frag_keyframe+empty_moov"} if fragments else {}
    with av.open(file, "w", format=container, options=options) as out:
        stream: Any = out.add_stream(codec, rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for number in range(SECONDS * 5):
            frame = av.VideoFrame.from_image(Image.new("RGB", (32, 32), (number, 0, 0)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, 5)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


@cache
def sound(container: str, codec: str, sampling: str, rate: int = 48_000) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        stream: Any = out.add_stream(codec, rate=rate, layout="mono")
        size = 960
        for start in range(0, SECONDS * rate, size):
            frame = av.AudioFrame(format=sampling, layout="mono", samples=size)
            frame.planes[0].update(bytes(frame.planes[0].buffer_size))
            frame.sample_rate, frame.pts = rate, start
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


FILES = {
    "mp4": lambda: film("mp4", "libx264"),
    "mov": lambda: film("mov", "libx264"),
    "webm": lambda: film("webm", "libvpx"),
    "mkv": lambda: film("matroska", "libx264"),
    "mp3": lambda: sound("mp3", "libmp3lame", "s16p"),
    "slow mp3": lambda: sound("mp3", "libmp3lame", "s16p", 24_000),
    "wav": lambda: sound("wav", "pcm_s16le", "s16"),
    "m4a": lambda: sound("ipod", "aac", "fltp"),
    "voice": lambda: sound("ogg", "libopus", "s16"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_as_long_as_it_plays(name: str) -> None:
    content = FILES[name]()
    with TemporaryFile() as file:
        file.write(content)
        found = measure_file(file)

    assert found == pytest.approx(SECONDS, abs=0.3)
    assert measure(content) == found


def forged(content: bytes, *boxes: bytes) -> bytes:
    """The same film, whose headers say that it is a second long."""
    changed = bytearray(content)
    for name in boxes:
        place = content.index(name) + 4
        offset = 20 if name == b"tkhd" else 16
        [scale] = struct.unpack_from(">I", content, place + 12) if name != b"tkhd" else [1000]
        struct.pack_into(">I", changed, place + offset, scale)
    return bytes(changed)


def test_headers_that_lie_do_not_make_a_film_shorter() -> None:
    lying = forged(FILES["mp4"](), b"mvhd", b"tkhd", b"mdhd")

    assert lying != FILES["mp4"]()
    assert measure(lying) == pytest.approx(SECONDS, abs=0.3)


def test_headers_that_lie_do_not_make_other_files_shorter() -> None:
    wave = bytearray(FILES["wav"]())
    struct.pack_into("<I", wave, wave.index(b"data") + 4, 96_000)
    assert measure(bytes(wave)) == pytest.approx(SECONDS, abs=0.3)

    webm = bytearray(FILES["webm"]())
    struct.pack_into(">d", webm, webm.index(b"\x44\x89\x88") + 3, 1000.0)
    assert measure(bytes(webm)) == pytest.approx(SECONDS, abs=0.3)

    voice = bytearray(FILES["voice"]())
    struct.pack_into("<q", voice, voice.rindex(b"OggS") + 6, 48_000)
    assert measure(bytes(voice)) == pytest.approx(SECONDS, abs=0.3)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"RIFF\0\0\0\0WAVE", b"OggS", b"\x1a\x45\xdf\xa3", b"\0\0\0\x08ftyp", b"ID3",
        b"\xff" * 100_000, b"\0\0\0\0moov" * 100, b"fLaC" * 100, b"\x1a\x45\xdf\xa3" * 100, b"\0\0\0\x08free" * 100,
        b"OggS" + b"\0" * 1000,
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_not_guessed(content: bytes) -> None:
    assert measure(content) is None


def test_a_film_in_fragments_is_not_measured() -> None:
    assert measure(film("mp4", "libx264", fragments=True)) is None


@given(some.sampled_from(sorted(FILES)), some.integers(0, 5000), some.binary(max_size=40))
def test_damaged_files_are_measured_or_not_but_never_fail(name: str, place: int, junk: bytes) -> None:
    content = bytearray(FILES[name]())
    content[place : place + len(junk)] = junk
    found = measure(bytes(content))

    assert found is None or found > 0
