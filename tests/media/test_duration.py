"""The duration of a file is measured from its content, whatever its sender or its header states."""

import struct
import time
from tempfile import TemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genlock.media.duration import duration, file_duration
from tests.media.samples import SECONDS, encode_audio, encode_video

FILES = {
    "mp4": lambda: encode_video("mp4", "libx264"),
    "mov": lambda: encode_video("mov", "libx264"),
    "webm": lambda: encode_video("webm", "libvpx"),
    "mkv": lambda: encode_video("matroska", "libx264"),
    "mp3": lambda: encode_audio("mp3", "libmp3lame", "s16p"),
    "slow mp3": lambda: encode_audio("mp3", "libmp3lame", "s16p", 24_000),
    "wav": lambda: encode_audio("wav", "pcm_s16le", "s16"),
    "m4a": lambda: encode_audio("ipod", "aac", "fltp"),
    "voice": lambda: encode_audio("ogg", "libopus", "s16"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_duration_is_how_long_the_file_plays(name: str) -> None:
    content = FILES[name]()
    with TemporaryFile() as file:
        file.write(content)
        found = file_duration(file)

    assert found == pytest.approx(SECONDS, abs=0.3)
    assert duration(content) == found


def with_forged_headers(content: bytes, *boxes: bytes) -> bytes:
    """Return the same video with headers that state a duration of one second."""
    changed = bytearray(content)
    for name in boxes:
        place = content.index(name) + 4
        offset = 20 if name == b"tkhd" else 16
        [scale] = struct.unpack_from(">I", content, place + 12) if name != b"tkhd" else [1000]
        struct.pack_into(">I", changed, place + offset, scale)
    return bytes(changed)


def test_forged_headers_do_not_shorten_a_video() -> None:
    forged_video = with_forged_headers(FILES["mp4"](), b"mvhd", b"tkhd", b"mdhd")

    assert forged_video != FILES["mp4"]()
    assert duration(forged_video) == pytest.approx(SECONDS, abs=0.3)


def test_forged_headers_do_not_shorten_other_files() -> None:
    wave = bytearray(FILES["wav"]())
    struct.pack_into("<I", wave, wave.index(b"data") + 4, 96_000)
    assert duration(bytes(wave)) == pytest.approx(SECONDS, abs=0.3)

    webm = bytearray(FILES["webm"]())
    struct.pack_into(">d", webm, webm.index(b"\x44\x89\x88") + 3, 1000.0)
    assert duration(bytes(webm)) == pytest.approx(SECONDS, abs=0.3)

    voice = bytearray(FILES["voice"]())
    struct.pack_into("<q", voice, voice.rindex(b"OggS") + 6, 48_000)
    assert duration(bytes(voice)) == pytest.approx(SECONDS, abs=0.3)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"RIFF\0\0\0\0WAVE", b"OggS", b"\x1a\x45\xdf\xa3", b"\0\0\0\x08ftyp", b"ID3",
        b"\xff" * 100_000, b"\0\0\0\0moov" * 100, b"fLaC" * 100, b"\x1a\x45\xdf\xa3" * 100, b"\0\0\0\x08free" * 100,
        b"OggS" + b"\0" * 1000,
    ],
)  # fmt: skip
def test_a_file_without_a_measurable_duration_has_none(content: bytes) -> None:
    assert duration(content) is None


def test_a_fragmented_video_has_no_duration() -> None:
    assert duration(encode_video("mp4", "libx264", fragments=True)) is None


@given(st.sampled_from(sorted(FILES)), st.integers(0, 5000), st.binary(max_size=40))
def test_a_damaged_file_never_raises(name: str, place: int, junk: bytes) -> None:
    content = bytearray(FILES[name]())
    content[place : place + len(junk)] = junk
    found = duration(bytes(content))

    assert found is None or found > 0


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def video_of(headers: int, tables: int, *, entries: int, stated: int) -> bytes:
    """A track with many headers and sample tables, each with one second per entry."""
    header = box(b"mdhd", struct.pack(">5I", 0, 0, 0, 1, 1))
    table = box(b"stts", struct.pack(">II", 0, stated) + struct.pack(">II", 1, 1) * entries)
    media = box(b"mdia", header * headers + box(b"minf", box(b"stbl", table * tables)))
    return box(b"ftyp", b"isom") + box(b"moov", box(b"mvhd", struct.pack(">5I", 0, 0, 0, 1, 1)) + box(b"trak", media))


def test_a_file_made_to_take_long_is_measured_in_one_pass() -> None:
    content = video_of(10_000, 50, entries=2_000, stated=2_000)
    started = time.process_time()
    assert duration(content) == 2_000
    assert time.process_time() - started < 10, "not once for each pair of a header and a table"


def test_a_sample_table_does_not_reach_beyond_its_box() -> None:
    assert duration(video_of(1, 2, entries=3, stated=3)) == 3
    assert duration(video_of(1, 2, entries=3, stated=4)) is None
