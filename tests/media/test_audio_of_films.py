"""The audio of a film is measured by what it plays, whatever times its container gives it."""

import io
import struct
from collections.abc import Sequence

import av
import pytest

from genlock.media.duration import duration
from tests.media.boxes import TABLES, box, edit
from tests.media.samples import SECONDS, encode_audio

SOURCES = {
    "aac": ("ipod", "aac", "fltp"),
    "mp3": ("mp3", "libmp3lame", "s16p"),
    "opus": ("ogg", "libopus", "s16"),
}


def packets(content: bytes) -> list[bytes]:
    with av.open(io.BytesIO(content), "r") as file:
        return [bytes(packet) for packet in file.demux(audio=0) if packet.size]


def in_container(content: bytes, container: str, samples: Sequence[bytes], milliseconds: int) -> bytes:
    """Return audio with other samples in another container, each of them so long."""
    file = io.BytesIO()
    with av.open(io.BytesIO(content), "r") as source, av.open(file, "w", format=container) as out:
        [original] = source.streams.audio
        stream = out.add_stream_from_template(original)
        assert original.time_base is not None
        for number, sample in enumerate(samples):
            packet = av.Packet(sample)
            packet.stream, packet.time_base = stream, original.time_base
            packet.duration = round(milliseconds / 1000 / original.time_base)
            packet.pts = packet.dts = number * packet.duration
            out.mux(packet)
    return file.getvalue()


@pytest.mark.parametrize(
    ("codec", "container"), [("aac", "matroska"), ("mp3", "matroska"), ("opus", "matroska"), ("opus", "mp4")]
)
def test_audio_is_measured_by_its_frames(codec: str, container: str) -> None:
    content = encode_audio(*SOURCES[codec])
    frames = packets(content)
    assert duration(in_container(content, container, frames, 24)) == pytest.approx(SECONDS, abs=2.5)
    assert duration(in_container(content, container, frames, 1)) == pytest.approx(SECONDS, abs=0.1)
    assert duration(in_container(content, container, frames, 50)) == pytest.approx(len(frames) * 0.05, abs=0.1)


@pytest.mark.parametrize("codec", ["aac", "mp3"])
def test_several_frames_in_a_block_are_found(codec: str) -> None:
    content = encode_audio(*SOURCES[codec])
    frames = packets(content)
    joined = [b"".join(frames[at : at + 5]) for at in range(0, len(frames), 5)]
    assert duration(in_container(content, "matroska", joined, 24)) is None
    assert duration(in_container(content, "matroska", [*frames[:50], *joined[10:]], 24)) is None


def test_a_slower_sampling_rate_beside_the_configuration_counts() -> None:
    content = encode_audio(*SOURCES["aac"])
    film = in_container(content, "matroska", packets(content), 21)
    rate = film.index(b"\xb5\x88") + 2
    assert duration(film[:rate] + struct.pack(">d", 12_000) + film[rate + 8 :]) == pytest.approx(4 * SECONDS, abs=0.2)
    assert duration(film[:rate] + struct.pack(">d", 0) + film[rate + 8 :]) is None


@pytest.mark.parametrize("more", [box(b"esds", bytes(20)), box(b"wave", b""), b"\0"])
def test_opus_with_the_configuration_of_another_codec_is_not_measured(more: bytes) -> None:
    content = encode_audio(*SOURCES["opus"])
    film = in_container(content, "mp4", packets(content), 20)

    def change(table: bytes) -> bytes:
        return table[:8] + struct.pack(">I", len(table) - 8 + len(more)) + table[12:] + more

    assert duration(edit(film, (b"moov", *TABLES, b"stsd"), lambda table: table)) == pytest.approx(SECONDS, abs=0.1)
    assert duration(edit(film, (b"moov", *TABLES, b"stsd"), change)) is None
