"""Frames of AAC in MPEG-4 are followed to their end: ordinary files are measured, forged ones are not."""

import io
import math
import struct
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import av
import pytest

from genlock.media import aac
from genlock.media.aac_codebooks import band_starts, scale_steps, word_steps
from genlock.media.aac_frame import FrameReader
from genlock.media.duration import duration
from tests.media.boxes import TABLES, box, edit, split
from tests.media.forgeries import forged_audio, frames_of, played_seconds, with_samples
from tests.media.samples import encode_audio

LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1", 8: "7.1"}
SECONDS = 2


def waveform(kind: str, rate: int, channel: int) -> bytes:
    """Return samples of a kind that makes an encoder use other codebooks and windows than the others."""
    rng, count = Random(channel), SECONDS * rate
    values = {
        "silence": lambda _: 0.0,
        "quiet": lambda _: rng.gauss(0, 1e-4),
        "noise": lambda _: rng.uniform(-1, 1),
        "tone": lambda at: 0.9 * math.sin(2 * math.pi * (220 + 7 * channel) * at / rate),
        "clicks": lambda at: rng.gauss(0, 0.002) + (0.99 if at % (rate // 9) < 4 else 0.0) * (-1) ** at,
    }[kind]
    return struct.pack(f"{count}f", *map(values, range(count)))


def encode(kind: str, rate: int, channels: int, bit_rate: int) -> bytes:
    file = io.BytesIO()
    planes = [waveform(kind, rate, channel) for channel in range(channels)]
    with av.open(file, "w", format="ipod") as out:
        stream: Any = out.add_stream("aac", rate=rate, layout=LAYOUTS[channels])
        stream.bit_rate = bit_rate
        for start in range(0, SECONDS * rate, 1024):
            frame = av.AudioFrame(format="fltp", layout=LAYOUTS[channels], samples=1024)
            for plane, values in zip(frame.planes, planes, strict=False):
                plane.update(values[start * 4 : start * 4 + 4096].ljust(4096, b"\0"))
            frame.sample_rate, frame.pts = rate, start
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(
    ("rate", "channels", "bit_rate"),
    [
        (8000, 1, 64_000), (11_025, 2, 96_000), (22_050, 1, 16_000), (24_000, 2, 160_000), (32_000, 1, 160_000),
        (44_100, 2, 320_000), (48_000, 6, 256_000), (48_000, 8, 512_000), (64_000, 1, 96_000), (96_000, 1, 128_000),
    ],
)  # fmt: skip
def test_ordinary_audio_of_every_rate_is_measured(rate: int, channels: int, bit_rate: int) -> None:
    for kind in ("silence", "quiet", "noise", "tone", "clicks"):
        assert duration(encode(kind, rate, channels, bit_rate)) == pytest.approx(SECONDS, abs=0.3), kind


def test_several_frames_in_a_sample_are_found_in_a_file_too_long_to_read_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest, forged = encode_audio("ipod", "aac", "fltp"), dict(forged_audio())["10 frames in some samples"]
    monkeypatch.setattr(aac, "_READ_BYTES_MAX", len(forged) // 2)

    assert duration(honest) is not None
    assert duration(forged) is None


def elements(rng: Random) -> str:
    """Return the bits of elements without sound; decoders disagree where some of them end."""
    found = ""
    for _ in range(rng.randrange(3)):
        size = rng.randrange(15)
        content = "".join(rng.choices("01", k=8 * size))
        if rng.random() < 0.3:
            found += f"100{0:04b}{rng.randrange(2)}{size:08b}{content}"  # data
        else:
            extension = rng.choice((0, 1, 2, 11, 11, 13, 14))
            found += f"110{size:04b}{extension:04b}{content[4:]}" if size else f"110{0:04b}"  # filling
    return found


def hidden_in(frames: list[bytes], rng: Random) -> list[bytes]:
    """Return samples of six frames each; the first frame of each has more elements, and perhaps no end."""
    before, behind, samples = elements(rng), elements(rng), []
    for at in range(0, len(frames) - 6, 6):
        bits = before + sound_of(frames[at]) + behind + rng.choice(("111", "111", ""))
        samples.append(packed(bits) + b"".join(frames[at + 1 : at + 6]))
    return samples


def test_frames_hidden_after_other_elements_are_found() -> None:
    content = encode_audio("ipod", "aac", "fltp")
    frames, rng, longer = frames_of(content), Random(1), 0
    for _ in range(80):
        forged = with_samples(content, hidden_in(frames, rng))
        found, played = duration(forged), played_seconds(forged)
        longer += played > SECONDS
        assert found is None or found > played - 0.3
    assert longer > 10, "some of them do play longer"


def sound_of(frame: bytes) -> str:
    """Return the bits of a frame without its end."""
    reader = FrameReader(frame, 3)
    reader.end()
    return f"{int.from_bytes(frame):0{8 * len(frame)}b}"[: reader.position - 3]


def packed(bits: str) -> bytes:
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8)


def test_a_long_file_with_a_chunk_for_each_frame_is_measured() -> None:
    content, count = encode_audio("ipod", "aac", "fltp"), 300_000
    frame = frames_of(content)[5]
    one_each = struct.pack(">IIIII", 0, 1, 1, 1, 1)

    def change(moov: bytes) -> bytes:
        at = len(box(b"ftyp", dict(split(content))[b"ftyp"])) + 8
        positions = struct.pack(f">II{count}I", 0, count, *range(at, at + count * len(frame), len(frame)))
        return edit(edit(moov, (*TABLES, b"stsc"), lambda _: one_each), (*TABLES, b"stco"), lambda _: positions)

    assert duration(with_samples(content, [frame] * count, change)) == count * 1024 / 48_000


class PulsesFinder(FrameReader):
    """Notes where the bit lies that says whether the first channel has pulse data."""

    pulses_at = 0

    def _scale_factors(self, groups: list[list[tuple[int, int, int]]]) -> None:
        super()._scale_factors(groups)
        self.pulses_at = self.pulses_at or self.position


def with_pulses(frame: bytes, count: int) -> bytes:
    reader = PulsesFinder(frame, 3)
    reader.end()
    bits = f"{int.from_bytes(frame):0{8 * len(frame)}b}"
    assert bits[reader.pulses_at] == "0"
    pulses = f"1{count - 1:02b}{0:06b}" + f"{2:05b}{1:04b}" * count
    return packed(bits[: reader.pulses_at] + pulses + bits[reader.pulses_at + 1 : reader.position])


@pytest.mark.parametrize("pulses", [1, 2, 3, 4])
def test_audio_with_pulse_data_is_measured(pulses: int) -> None:
    """Some encoders write the highest peaks beside the other coefficients; FFmpeg's does not."""
    content = encode("tone", 48_000, 1, 128_000)
    frames = [with_pulses(frame, pulses) for frame in frames_of(content)[2:-2]]
    changed = with_samples(content, frames)

    with av.open(io.BytesIO(changed), "r", options={"err_detect": "explode"}) as file:
        assert len(list(file.decode(audio=0))) == len(frames), "FFmpeg finds no error in them"
    assert duration(changed) == pytest.approx(SECONDS, abs=0.3)


def in_data_after_dynamic_ranges(frames: list[bytes]) -> bytes:
    """FFmpeg reads dynamic ranges to their own end, a byte further: there it finds the end of the frame."""
    filling, extension = "1100000", "110" + f"{1:04b}" + "10110000"
    start = sound_of(frames[0])
    while (len(start) + len(extension)) % 8:
        start += filling
    data, hidden = "100" + "0000" + "1", b"".join(frames[1:])
    size = 0b111_00000
    return packed(start + extension + data + f"{size:08b}") + hidden.ljust(size, b"\0") + b"\xe0"


def in_replication_before_channels(frames: list[bytes]) -> bytes:
    """FFmpeg does not skip replication before the first channel, so it decodes what is in it."""
    hidden = packed("1" * 19 + sound_of(frames[0]) + "111") + b"".join(frames[1:])
    start = "110" + "1111" + f"{len(hidden) - 15:08b}" + "1101"
    inside = f"{int.from_bytes(hidden):0{8 * len(hidden)}b}"[19:] + "0" * 7
    return packed(start + inside + sound_of(frames[0]) + "111")


@pytest.mark.parametrize("hide", [in_data_after_dynamic_ranges, in_replication_before_channels])
def test_frames_in_an_extension_that_decoders_read_differently_are_found(hide: Callable[[list[bytes]], bytes]) -> None:
    content = encode_audio("ipod", "aac", "fltp")
    frames = frames_of(content)
    forged = with_samples(content, [hide(frames[at : at + 20]) for at in range(0, len(frames) - 20, 20)])

    assert played_seconds(forged) > 9, "the frames are really played"
    assert duration(forged) is None


def test_the_tables_of_codes_are_complete() -> None:
    assert all(len(word_steps(book)) == 1 << 16 for book in range(1, 12))
    assert len(scale_steps()) == 1 << 19
    for rate, is_short in product(range(13), (False, True)):
        assert band_starts(rate, is_short=is_short)[-1] == (128 if is_short else 1024)
