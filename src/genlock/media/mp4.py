"""Read the index of an MPEG-4 file (.mp4, .mov, .m4a): how long it plays and how large its picture is."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from genlock.media.mapped_file import Content

#: a file with more boxes or samples than this is not read to its end
BOXES_MAX = 500_000


class Box(NamedTuple):
    name: bytes
    #: where the content of the box begins and where it ends
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoInfo:
    width: int
    height: int
    seconds: int


def read_duration(content: Content) -> float | None:
    """Return the longest duration in seconds that any part of the index states.

    Return None for a fragmented file: its index does not state the duration. Raises struct.error, IndexError,
    ValueError or ZeroDivisionError for a damaged index.
    """
    top = list(_boxes(content, 0, len(content)))
    indexes = [box for box in top if box.name == b"moov"]
    if len(indexes) != 1 or any(box.name == b"moof" for box in top):
        return None
    return max(_durations(content, indexes[0]), default=None)


def read_video_info(content: Content) -> VideoInfo | None:
    """Return the size and the duration of the first track with a picture, or None if the index does not state them."""
    try:
        index = next(_find(content, 0, len(content), b"moov"), None)
        return None if index is None else _video_info(content, index)
    except (struct.error, ValueError, IndexError):
        return None


def _video_info(content: Content, index: Box) -> VideoInfo | None:
    seconds = 0.0
    for header in _find(content, index.start, index.end, b"mvhd"):
        scale, length = _timescale(content, header.start)
        seconds = max(seconds, length / scale if scale else 0.0)
    for header in _find(content, index.start, index.end, b"trak", b"tkhd"):
        if header.end - header.start < 8:  # noqa: PLR2004 - width and height are the last eight bytes
            raise ValueError("the track header is too short")
        width, height = (side >> 16 for side in struct.unpack_from(">II", content, header.end - 8))
        if width and height:
            return VideoInfo(width=width, height=height, seconds=round(seconds))
    return None


def _durations(content: Content, index: Box) -> Iterator[float]:
    scale = 0
    for header in _find(content, index.start, index.end, b"mvhd"):
        scale, length = _timescale(content, header.start)
        yield length / scale
    for track in _find(content, index.start, index.end, b"trak"):
        for header in _find(content, track.start, track.end, b"tkhd"):
            form, position = (">Q", 28) if content[header.start] == 1 else (">I", 20)
            yield struct.unpack_from(form, content, header.start + position)[0] / scale
        for header in _find(content, track.start, track.end, b"mdia", b"mdhd"):
            track_scale, length = _timescale(content, header.start)
            yield length / track_scale
            for table in _find(content, track.start, track.end, b"mdia", b"minf", b"stbl", b"stts"):
                yield _sum_of_samples(content, table.start) / track_scale


def _boxes(content: Content, position: int, end: int) -> Iterator[Box]:
    for _ in range(BOXES_MAX):
        if position + 8 > end:
            return
        size, name = struct.unpack_from(">I4s", content, position)
        start = position + 8
        if size == 1:
            [size] = struct.unpack_from(">Q", content, start)
            start += 8
        close = position + size if size else end
        if close < start:
            return
        yield Box(name, start, min(close, end))
        position = close
    raise ValueError("too many boxes")


def _find(content: Content, start: int, end: int, *path: bytes) -> Iterator[Box]:
    """Yield the boxes at the end of a path of names."""
    for box in _boxes(content, start, end):
        if box.name == path[0]:
            if len(path) == 1:
                yield box
            else:
                yield from _find(content, box.start, box.end, *path[1:])


def _timescale(content: Content, position: int) -> tuple[int, int]:
    """Return the units per second and the duration in these units, from `mvhd` or `mdhd`."""
    form, offset = (">IQ", 20) if content[position] == 1 else (">II", 12)
    scale, length = struct.unpack_from(form, content, position + offset)
    return scale, length


def _sum_of_samples(content: Content, position: int) -> int:
    """Return the duration of all samples of a track, from `stts`."""
    [count] = struct.unpack_from(">I", content, position + 4)
    if count > BOXES_MAX:
        raise ValueError("too many samples")
    pairs = struct.iter_unpack(">II", content[position + 8 : position + 8 + 8 * count])
    return sum(number * length for number, length in pairs)
