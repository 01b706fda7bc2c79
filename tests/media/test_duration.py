"""The duration of a file is measured from its content, whatever its sender or its header states."""

import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from random import Random
from tempfile import TemporaryFile

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genlock.media.budget import TooComplex
from genlock.media.duration import duration, file_duration
from genlock.media.ogg import opus_seconds
from tests.media.boxes import box
from tests.media.forged_containers import recorder_of_speech
from tests.media.forged_streams import format_chunk, wave
from tests.media.forgeries import forgeries, played_seconds, with_table
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
    "flac": lambda: encode_audio("flac", "flac", "s16"),
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


@given(st.sampled_from(sorted(FILES)), st.integers(0, 5000), st.binary(max_size=40))
def test_a_damaged_file_never_raises(name: str, place: int, junk: bytes) -> None:
    content = bytearray(FILES[name]())
    content[place : place + len(junk)] = junk
    found = duration(bytes(content))

    assert found is None or found > 0


def test_no_forged_file_is_measured_shorter_than_it_plays() -> None:
    shorter = []
    for name, content in forgeries():
        found = duration(content)
        try:
            played = played_seconds(content)
        except av.FFmpegError:
            continue  # it does not play at all
        if found is not None and found < played - 0.3:
            shorter.append((name, found, played))
    assert shorter == []


def test_a_file_of_another_program_behind_the_header_of_a_wav_file_is_not_measured() -> None:
    assert duration(recorder_of_speech()) is None
    assert duration(recorder_of_speech().replace(b"\x84", b"\x83", 1)) is not None


@pytest.mark.parametrize(
    ("place", "mark"),
    [
        (4, b"RED1"),
        (20, b"!Scream!"),
        (44, b"SCRM"),
        (65, b"FSSD"),
        (213, b"Sega Stream"),
        (257, b"0CPY"),
        (1080, b"M.K."),
    ],
)
def test_an_mp3_file_with_the_mark_of_another_format_is_not_measured(place: int, mark: bytes) -> None:
    content = bytearray((b"\xff\xfb\xe8\xc4" + b"\x55" * 1436) * 20)
    assert duration(bytes(content)) is not None
    content[place : place + len(mark)] = mark
    assert duration(bytes(content)) is None


def test_the_number_of_samples_counts_only_if_players_believe_it() -> None:
    number = (b"fact", struct.pack("<I", 8000 * 60))
    content = wave(format_chunk(1, 1, 8000, 8), number, (b"data", bytes(8000)))
    assert duration(content) == 1
    assert duration(content.replace(struct.pack("<4sI", b"data", 8000), struct.pack("<4sI", b"data", 0))) == 60


def test_rare_bytes_of_dts_are_noise_and_frequent_ones_are_not() -> None:
    begin = b"\1\0" * 150_000
    for every, is_measured in ((1_000_000, True), (30_000, False)):
        marked = b"\xff\x1f\x00\xe8\xf1\x07".ljust(every, b"\1")
        content = wave(format_chunk(1, 2, 48_000, 16), (b"data", begin + marked * (6_000_000 // every)))
        assert (duration(content) is not None) == is_measured


@pytest.mark.parametrize("sample", [b"\xff\xff", b"\xec\xff\xff"], ids=["16 bits", "24 bits"])
def test_silence_a_little_below_zero_is_measured(sample: bytes) -> None:
    content = wave(format_chunk(1, 1, 48_000, 8 * len(sample)), (b"data", sample * 480_000))
    assert duration(content) == 10


def test_compressed_frames_are_recognised_also_if_few_of_them_are_at_the_beginning() -> None:
    frames = encode_audio("ac3", "ac3", "fltp")[:8000]
    swapped = bytes(frames[place ^ 1] for place in range(len(frames)))
    for content in (frames, swapped):
        samples = content + bytes(262_144) + content
        assert duration(wave(format_chunk(1, 2, 192_000, 16), (b"data", samples))) is None
    assert duration(wave(format_chunk(1, 2, 192_000, 16), (b"data", Random(1).randbytes(1_000_000)))) is not None


def test_a_packet_of_more_frames_than_allowed_counts_as_players_count_it() -> None:
    frames, code = 63, 3 << 3 | 3  # of 60 milliseconds; their number follows
    assert opus_seconds(bytes((code, frames))) == pytest.approx(frames * 0.06)


def test_audio_of_every_usual_form_is_measured() -> None:
    for container in ("mov", "ipod", "mp4"):
        for rate in (8000, 16_000, 44_100, 48_000):
            found = duration(encode_audio(container, "aac", "fltp", rate))
            assert found == pytest.approx(SECONDS, abs=0.3), (container, rate)


def test_the_delay_of_reordered_frames_is_not_charged_for() -> None:
    assert duration(FILES["mp4"]()) == SECONDS


def test_a_file_with_an_unknown_part_is_not_measured() -> None:
    film = FILES["mp4"]()
    assert duration(film + box(b"free", b"")) == pytest.approx(SECONDS, abs=0.3)
    for more in (box(b"abcd", b""), box(b"udta", b""), box(b"moov", b""), b"\0" * 4, b"\0\0\0\x07free"):
        assert duration(film + more) is None, more


def bomb(headers: int, tables: int, *, entries: int, stated: int) -> bytes:
    """A track with many headers and sample tables, each with one second per entry."""
    header = box(b"mdhd", struct.pack(">6I", 0, 0, 0, 1, 1, 0))
    table = box(b"stts", struct.pack(">II", 0, stated) + struct.pack(">II", 1, 1) * entries)
    media = box(b"mdia", header * headers, box(b"minf", box(b"stbl", table * tables)))
    movie = box(b"mvhd", struct.pack(">6I", 0, 0, 0, 1, 1, 0x10000), bytes(76))
    return box(b"ftyp", b"isom") + box(b"moov", movie, box(b"trak", box(b"tkhd", bytes(84)), media))


def bombs() -> Iterator[tuple[str, bytes]]:
    """Files of some megabytes that would take long to read without limits."""
    megabytes = 2_500_000
    yield "headers and tables", bomb(1_000, 30_000, entries=1, stated=2**31)
    yield "one huge table", bomb(1, 1, entries=megabytes // 8, stated=megabytes // 8)
    yield "boxes", box(b"ftyp", b"isom") + box(b"free", b"") * (megabytes // 8)
    yield "nested boxes", box(b"ftyp", b"isom") + struct.pack(">I4s", megabytes, b"trak") * (megabytes // 8)
    yield (
        "names",
        box(b"ftyp", b"isom") + box(b"moov", box(b"mvhd", bytes(100))) + box(b"free", b"moov" * (megabytes // 4)),
    )
    yield "WAV chunks", b"RIFF\0\0\0\0WAVE" + b"LIST\0\0\0\0" * (megabytes // 8)
    yield (
        "WAV samples",
        b"RIFF\0\0\0\0WAVE"
        + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
        + b"data"
        + b"\xff" * megabytes,
    )
    yield "MP3 marks", b"\xff\xfb\x90\0" + b"\xff" * megabytes
    yield "MP3 frames", b"\xff\xf3\x14\xc4" + b"\xff\xf3\x14\xc4".ljust(24, b"\0") * (megabytes // 24)
    yield "tags", b"ID3\4\0\0\0\0\0\0" * (megabytes // 10)
    yield "Ogg pages", (b"OggS" + bytes(22) + b"\0") * (megabytes // 27)
    yield "Ogg packets", (b"OggS\0\2" + bytes(20) + b"\xff" + b"\x08" * 255 + b"OpusHead" * 255) * (megabytes // 2322)
    head = b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff"
    yield "WebM elements", head + b"\xec\x80" * (megabytes // 2)
    yield "WebM clusters", head + b"\x1f\x43\xb6\x75\xff" * (megabytes // 5)


@pytest.mark.slow
def test_a_file_made_to_take_long_is_given_up_after_a_bounded_number_of_steps() -> None:
    for name, content in bombs():
        started = time.process_time()
        with suppress(TooComplex):
            duration(content)
        assert time.process_time() - started < 10, name


def test_a_sample_table_does_not_reach_beyond_its_box() -> None:
    film = with_table(b"stts", lambda table: table)
    assert duration(film) == pytest.approx(SECONDS, abs=0.5)
    for count in (0, 2, 2**20, 2**32 - 1):
        stated = struct.pack(">I", count)
        assert duration(with_table(b"stts", partial(with_count, stated))) is None, count


def with_count(stated: bytes, table: bytes) -> bytes:
    return table[:4] + stated + table[8:]


@pytest.mark.parametrize("loudness", [4, 16, 40, 65, 327])
def test_a_quiet_recording_is_not_mistaken_for_a_stream_of_frames(loudness: int) -> None:
    """The bytes of small samples look like the beginnings of frames at every turn."""
    rng = Random(loudness)
    samples = [max(-32_768, round(rng.gauss(0, loudness))) for _ in range(12 * 44_100)]
    data = struct.pack(f"<{len(samples)}h", *samples)
    assert duration(wave(format_chunk(1, 1, 44_100, 16), (b"data", data))) == pytest.approx(12)
