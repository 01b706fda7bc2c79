"""Read the boxes of an MPEG-4 file (.mp4, .mov, .m4a), and how large its picture is."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from genlock.media.budget import Budget, NotMeasured, TooComplex, require
from genlock.media.mapped_file import Content

#: the index of a result has far fewer boxes
INFO_STEPS_MAX = 10_000


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


def boxes(content: Content, start: int, end: int, budget: Budget) -> Iterator[Box]:
    """Yield the boxes between two positions, which they fill exactly. Raises NotMeasured and TooComplex.

    A 64-bit size and a box without a size, which ends with the file, are understood for the media data only.
    """
    while start < end:
        budget.spend()
        require(start + 8 <= end, "bytes that are no box")
        size, name = struct.unpack_from(">I4s", content, start)
        header = 8
        if name == b"mdat" and size == 1:
            require(start + 16 <= end, "a box without its size")
            [size] = struct.unpack_from(">Q", content, start + 8)
            header = 16
        elif name == b"mdat" and size == 0 and end == len(content):
            size = end - start
        require(header <= size <= end - start, "a box that does not end where it should")
        yield Box(name, start + header, start + size)
        start += size


def header_times(content: Content, box: Box, sizes: tuple[int, int]) -> tuple[int, int]:
    """Return the units per second and the duration in these units, from `mvhd` or `mdhd`.

    `sizes` are those of version 0 and version 1 of the box.
    """
    version = version_of(content, box, sizes)
    form, offset = (">IQ", 20) if version else (">II", 12)
    scale, length = struct.unpack_from(form, content, box.start + offset)
    require(0 < scale < 2**31, "a time scale that players do not agree about")
    return scale, length


def version_of(content: Content, box: Box, sizes: tuple[int, int]) -> int:
    """Return the version of a header, which must have the size of that version."""
    require(box.end - box.start in sizes, "a header of another size")
    version = content[box.start]
    require(version < 2 and box.end - box.start == sizes[version], "a header of another version")  # noqa: PLR2004
    return version


def read_video_info(content: Content) -> VideoInfo | None:
    """Return the size and the duration of the first track with a picture, or None if the index does not state them."""
    try:
        return _video_info(content, Budget(INFO_STEPS_MAX))
    except (NotMeasured, TooComplex):
        return None


def _video_info(content: Content, budget: Budget) -> VideoInfo | None:
    index = next((box for box in boxes(content, 0, len(content), budget) if box.name == b"moov"), None)
    if index is None:
        return None
    inside = list(boxes(content, index.start, index.end, budget))
    seconds = 0.0
    for box in inside:
        if box.name == b"mvhd":
            scale, length = header_times(content, box, MOVIE_HEADER)
            seconds = length / scale
    for track in inside:
        if track.name != b"trak":
            continue
        for header in boxes(content, track.start, track.end, budget):
            if header.name == b"tkhd":
                version_of(content, header, TRACK_HEADER)
                width, height = (side >> 16 for side in struct.unpack_from(">II", content, header.end - 8))
                if width and height:
                    return VideoInfo(width=width, height=height, seconds=round(seconds))
    return None


#: sizes of headers without their first eight bytes, in version 0 and version 1
MOVIE_HEADER = (100, 112)
TRACK_HEADER = (84, 96)
MEDIA_HEADER = (24, 36)
