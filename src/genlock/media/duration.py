"""Measure how long a video or audio file plays from its own bytes: headers and senders may state less.

The duration sets the price, so a value that the content does not support is not returned.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import IO

from genlock.media import sniff
from genlock.media.mapped_file import Content, mapped
from genlock.media.mp4 import read_duration

#: a file with more elements than this is not read to its end
ELEMENTS_MAX = 500_000
#: no file within Telegram's size limit plays longer
SECONDS_MAX = 86_400.0
#: share of an MP3 file that must be audio frames for the result to count
AUDIO_SHARE_MIN = 0.75


def file_duration(file: IO[bytes]) -> float | None:
    """Return the duration of a file on disk in seconds; None if it cannot be determined."""
    with mapped(file) as content:
        return duration(content)


def duration(content: Content) -> float | None:
    """Return the duration in seconds; None if it cannot be determined."""
    found = sniff.likely_format(content[:12])
    reader = _READERS.get(found) if found else None
    try:
        seconds = reader(content) if reader else None
    except (struct.error, IndexError, ValueError, ZeroDivisionError):
        return None
    return seconds if seconds is not None and 0 < seconds <= SECONDS_MAX else None


# WAV


def _wave(content: Content) -> float | None:
    """Divide the bytes after the header by the byte rate. The length that the header states is ignored."""
    position, rate = 12, 0
    for _ in range(ELEMENTS_MAX):
        name, size = struct.unpack_from("<4sI", content, position)
        position += 8
        if name == b"data":
            return (len(content) - position) / rate
        if name == b"fmt ":
            form, channels, frequency, _, _, bits = struct.unpack_from("<HHIIHH", content, position)
            if form not in (1, 3, 6, 7, 0xFFFE):
                return None  # compressed
            rate = channels * frequency * bits // 8
        position += size + size % 2
    return None


# Ogg


def _ogg(content: Content) -> float | None:
    """Add up the durations that Opus packets (voice messages) state. Other codecs are not measured."""
    position, seconds, begins = 0, 0.0, True
    while position < len(content):
        if content[position : position + 4] != b"OggS":
            return None
        flags, count = content[position + 5], content[position + 26]
        lacing = content[position + 27 : position + 27 + count]
        position += 27 + count
        if flags & 2 and content[position : position + 8] != b"OpusHead":
            return None
        for size in lacing:
            if begins and size and content[position : position + 4] != b"Opus":
                seconds += _opus(content[position], content[position + 1] if size > 1 else 0)
            begins = size < 255  # noqa: PLR2004 - a full segment: the packet continues in the next one
            position += size
    return seconds


def _opus(kind: int, second: int) -> float:
    """Return the duration of a packet by its first two bytes (RFC 6716, 3.1)."""
    setting, frames = kind >> 3, (1, 2, 2, second & 63)[kind & 3]
    if setting < 12:  # noqa: PLR2004
        return (0.01, 0.02, 0.04, 0.06)[setting & 3] * frames
    if setting < 16:  # noqa: PLR2004
        return (0.01, 0.02)[setting & 1] * frames
    return (0.0025, 0.005, 0.01, 0.02)[setting & 3] * frames


# Matroska and WebM

_CONTAINERS = (0x18538067, 0x1549A966, 0x1F43B675, 0xA0)  # segment, info, cluster, group of blocks
_SCALE, _DURATION, _TIME, _BLOCKS = 0x2AD7B1, 0x4489, 0xE7, (0xA3, 0xA1)


def _matroska(content: Content) -> float | None:
    """Return the duration in the header or the time of the last block, whichever is longer."""
    position, scale, stated, time, last = 0, 1_000_000, 0.0, 0, 0
    for _ in range(ELEMENTS_MAX):
        if position >= len(content):
            return max(stated, last) * scale / 1e9
        name, position = _number(content, position, keep_marker=True)
        size, position = _number(content, position)
        if name in _CONTAINERS:
            continue
        if size == -1:
            return None
        body = content[position : position + min(size, 16)]
        if name == _SCALE:
            scale = int.from_bytes(body)
        elif name == _DURATION:
            [stated] = struct.unpack(">f" if size == 4 else ">d", body)  # noqa: PLR2004
        elif name == _TIME:
            time = int.from_bytes(body)
        elif name in _BLOCKS:
            _, start = _number(body, 0)
            last = max(last, time + struct.unpack_from(">h", body, start)[0])
        position += size
    return None


def _number(content: Content, position: int, *, keep_marker: bool = False) -> tuple[int, int]:
    """Read a variable-length integer; return it with the position after it. -1 means an unknown size."""
    first = content[position]
    count = 9 - first.bit_length()
    raw = content[position : position + count]
    if count > 8 or len(raw) < count:  # noqa: PLR2004
        raise ValueError("not an EBML number")
    value = int.from_bytes(raw)
    if keep_marker:
        return value, position + count
    value &= (1 << 7 * count) - 1
    return -1 if value == (1 << 7 * count) - 1 else value, position + count


# MP3

_FREQUENCIES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_LOW_RATES = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_KILOBITS = {
    (3, 1): tuple(range(32, 449, 32)),
    (3, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    **{(version, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256) for version in (0, 2)},
    **{(version, layer): _LOW_RATES for version in (0, 2) for layer in (2, 3)},
}


def _mp3(content: Content) -> float | None:
    """Add up the durations of all frames."""
    position = _id3_end(content)
    audio, seconds, whole = 0, 0.0, len(content) - position
    for _ in range(ELEMENTS_MAX):
        position = content.find(b"\xff", position)
        if position < 0 or position + 4 > len(content):
            return seconds if audio >= whole * AUDIO_SHARE_MIN else None
        frame = _frame(content[position + 1], content[position + 2])
        if frame is None:
            position += 1
            continue
        size, frame_seconds = frame
        position, audio, seconds = position + size, audio + size, seconds + frame_seconds
    return None


def _id3_end(content: Content) -> int:
    """Return the position where the ID3 tag ends."""
    if content[:3] != b"ID3":
        return 0
    size = 0
    for byte in content[6:10]:
        size = size << 7 | byte & 127
    return 10 + size


@cache
def _frame(kind: int, rates: int) -> tuple[int, float] | None:
    """Return the bytes and seconds of a frame by the second and third byte of its header; None if invalid."""
    version, layer = kind >> 3 & 3, 4 - (kind >> 1 & 3)
    speed, frequency = rates >> 4, rates >> 2 & 3
    if kind >> 5 != 7 or (version, layer) not in _KILOBITS or speed in (0, 15) or frequency == 3:  # noqa: PLR2004
        return None
    bits, per_second = _KILOBITS[version, layer][speed - 1] * 1000, _FREQUENCIES[version][frequency]
    padding = rates >> 1 & 1
    if layer == 1:
        return (12 * bits // per_second + padding) * 4, 384 / per_second
    samples = 576 if layer == 3 and version != 3 else 1152  # noqa: PLR2004
    return samples // 8 * bits // per_second + padding, samples / per_second


_READERS: dict[sniff.Format, Callable[[Content], float | None]] = {
    **dict.fromkeys((sniff.MP4, sniff.MOV, sniff.M4A, sniff.AVIF, sniff.HEIC), read_duration),
    sniff.WAV: _wave,
    sniff.OGG: _ogg,
    sniff.WEBM: _matroska,
    sniff.MP3: _mp3,
}
