"""How long a film or a sound plays, counted in its own bytes: senders and headers may say less than the truth."""

import struct
from collections.abc import Callable, Iterator
from functools import cache
from mmap import ACCESS_READ, mmap
from typing import IO

Content = bytes | mmap

#: a file with more pieces than this is not read to its end
PIECES_MAX = 500_000
#: nothing that fits into what Telegram gives is longer
SECONDS_MAX = 86_400.0
#: how much of a sound must be sound, for the count to be believed
SOUND_SHARE = 0.75


def measure_file(file: IO[bytes]) -> float | None:
    """The length of what was written to a file."""
    file.flush()
    with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return measure(content)


def measure(content: Content) -> float | None:
    """In seconds; None where it cannot be told."""
    reader = _reader(content)
    try:
        seconds = reader(content) if reader else None
    except (struct.error, IndexError, ValueError, ZeroDivisionError):
        return None
    return seconds if seconds is not None and 0 < seconds <= SECONDS_MAX else None


def _reader(content: Content) -> Callable[[Content], float | None] | None:
    head = content[:12]
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        return _mpeg4
    if head[:4] == b"RIFF" and head[8:] == b"WAVE":
        return _wave
    if head[:4] == b"OggS":
        return _ogg
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return _matroska
    return _mp3 if head[:3] == b"ID3" or head[:1] == b"\xff" else None


# MPEG-4: .mp4, .mov, .m4a


def _mpeg4(content: Content) -> float | None:
    """The longest that the index says anywhere. In fragments it does not say, so those are not measured."""
    boxes = list(_boxes(content, 0, len(content)))
    indexes = [box for box in boxes if box[0] == b"moov"]
    if len(indexes) != 1 or any(name == b"moof" for name, _, _ in boxes):
        return None
    _, start, end = indexes[0]
    return max(_film_lengths(content, start, end), default=None)


def _boxes(content: Content, place: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Each box: its name, where its content begins and where it ends."""
    for _ in range(PIECES_MAX):
        if place + 8 > end:
            return
        size, name = struct.unpack_from(">I4s", content, place)
        start = place + 8
        if size == 1:
            [size] = struct.unpack_from(">Q", content, start)
            start += 8
        close = place + size if size else end
        if close < start:
            return
        yield name, start, min(close, end)
        place = close
    raise ValueError("too many boxes")


def _inside(content: Content, start: int, end: int, *path: bytes) -> Iterator[tuple[int, int]]:
    """The boxes at the end of a path of names."""
    for name, begin, close in _boxes(content, start, end):
        if name == path[0]:
            if len(path) == 1:
                yield begin, close
            else:
                yield from _inside(content, begin, close, *path[1:])


def _film_lengths(content: Content, start: int, end: int) -> Iterator[float]:
    scale = 0
    for begin, _ in _inside(content, start, end, b"mvhd"):
        scale, length = _scaled(content, begin)
        yield length / scale
    for begin, close in _inside(content, start, end, b"trak"):
        for header, _ in _inside(content, begin, close, b"tkhd"):
            form, place = (">Q", 28) if content[header] == 1 else (">I", 20)
            yield struct.unpack_from(form, content, header + place)[0] / scale
        for header, _ in _inside(content, begin, close, b"mdia", b"mdhd"):
            ticks, length = _scaled(content, header)
            yield length / ticks
            for table, _ in _inside(content, begin, close, b"mdia", b"minf", b"stbl", b"stts"):
                yield _samples(content, table) / ticks


def _scaled(content: Content, place: int) -> tuple[int, int]:
    """Ticks in a second, and how many there are."""
    form, offset = (">IQ", 20) if content[place] == 1 else (">II", 12)
    scale, length = struct.unpack_from(form, content, place + offset)
    return scale, length


def _samples(content: Content, place: int) -> int:
    """How many ticks all pictures or sounds of a track take together."""
    [count] = struct.unpack_from(">I", content, place + 4)
    if count > PIECES_MAX:
        raise ValueError("too many samples")
    pairs = struct.iter_unpack(">II", content[place + 8 : place + 8 + 8 * count])
    return sum(number * ticks for number, ticks in pairs)


# WAV


def _wave(content: Content) -> float | None:
    """All bytes behind the header at the rate they are played; what the header says of their number is not asked."""
    place, rate = 12, 0
    for _ in range(PIECES_MAX):
        name, size = struct.unpack_from("<4sI", content, place)
        place += 8
        if name == b"data":
            return (len(content) - place) / rate
        if name == b"fmt ":
            form, channels, frequency, _, _, bits = struct.unpack_from("<HHIIHH", content, place)
            if form not in (1, 3, 6, 7, 0xFFFE):
                return None  # packed
            rate = channels * frequency * bits // 8
        place += size + size % 2
    return None


# Ogg


def _ogg(content: Content) -> float | None:
    """Opus tells the length in each packet, as voice messages do; others are not measured."""
    place, seconds, begins = 0, 0.0, True
    while place < len(content):
        if content[place : place + 4] != b"OggS":
            return None
        flags, count = content[place + 5], content[place + 26]
        lacing = content[place + 27 : place + 27 + count]
        place += 27 + count
        if flags & 2 and content[place : place + 8] != b"OpusHead":
            return None
        for size in lacing:
            if begins and size and content[place : place + 4] != b"Opus":
                seconds += _opus(content[place], content[place + 1] if size > 1 else 0)
            begins = size < 255  # noqa: PLR2004 - a packet goes on in the next piece
            place += size
    return seconds


def _opus(kind: int, second: int) -> float:
    """How long a packet plays, by its first bytes (RFC 6716, 3.1)."""
    setting, frames = kind >> 3, (1, 2, 2, second & 63)[kind & 3]
    if setting < 12:  # noqa: PLR2004
        return (0.01, 0.02, 0.04, 0.06)[setting & 3] * frames
    if setting < 16:  # noqa: PLR2004
        return (0.01, 0.02)[setting & 1] * frames
    return (0.0025, 0.005, 0.01, 0.02)[setting & 3] * frames


# Matroska and WebM

_WITHIN = (0x18538067, 0x1549A966, 0x1F43B675, 0xA0)  # segment, info, cluster, group of blocks
_SCALE, _DURATION, _TIME, _BLOCKS = 0x2AD7B1, 0x4489, 0xE7, (0xA3, 0xA1)


def _matroska(content: Content) -> float | None:
    """What the header says or the last picture's time, whichever is longer."""
    place, scale, said, time, last = 0, 1_000_000, 0.0, 0, 0
    for _ in range(PIECES_MAX):
        if place >= len(content):
            return max(said, last) * scale / 1e9
        name, place = _number(content, place, marked=True)
        size, place = _number(content, place)
        if name in _WITHIN:
            continue
        if size == -1:
            return None
        body = content[place : place + min(size, 16)]
        if name == _SCALE:
            scale = int.from_bytes(body)
        elif name == _DURATION:
            [said] = struct.unpack(">f" if size == 4 else ">d", body)  # noqa: PLR2004
        elif name == _TIME:
            time = int.from_bytes(body)
        elif name in _BLOCKS:
            _, start = _number(body, 0)
            last = max(last, time + struct.unpack_from(">h", body, start)[0])
        place += size
    return None


def _number(content: Content, place: int, *, marked: bool = False) -> tuple[int, int]:
    """A number whose first byte says how many bytes it has, and where it ends; -1 if it is left open."""
    first = content[place]
    count = 9 - first.bit_length()
    raw = content[place : place + count]
    if count > 8 or len(raw) < count:  # noqa: PLR2004
        raise ValueError("not a number")
    value = int.from_bytes(raw)
    if marked:
        return value, place + count
    value &= (1 << 7 * count) - 1
    return -1 if value == (1 << 7 * count) - 1 else value, place + count


# MP3

_FREQUENCIES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_SLOW = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_KILOBITS = {
    (3, 1): tuple(range(32, 449, 32)),
    (3, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    **{(version, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256) for version in (0, 2)},
    **{(version, layer): _SLOW for version in (0, 2) for layer in (2, 3)},
}


def _mp3(content: Content) -> float | None:
    """Frame by frame."""
    place = _tag(content)
    sound, seconds, whole = 0, 0.0, len(content) - place
    for _ in range(PIECES_MAX):
        place = content.find(b"\xff", place)
        if place < 0 or place + 4 > len(content):
            return seconds if sound >= whole * SOUND_SHARE else None
        frame = _frame(content[place + 1], content[place + 2])
        if frame is None:
            place += 1
            continue
        size, lasting = frame
        place, sound, seconds = place + size, sound + size, seconds + lasting
    return None


def _tag(content: Content) -> int:
    """Where the tag in front ends."""
    if content[:3] != b"ID3":
        return 0
    size = 0
    for byte in content[6:10]:
        size = size << 7 | byte & 127
    return 10 + size


@cache
def _frame(kind: int, rates: int) -> tuple[int, float] | None:
    """The bytes and seconds of a frame by the bytes behind its first; None if it is none."""
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
