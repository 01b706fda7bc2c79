"""Measure how long an Ogg file with Opus plays, as voice messages are. Other codecs are not measured."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content

_MARK = b"OggS"
_CONTINUED, _BEGINS, _ENDS = 1, 2, 4
_FULL = 255
_HEADERS = (b"OpusHead", b"OpusTags")
_PER_SECOND = 48_000


class Page(NamedTuple):
    flags: int
    #: the end of the page in samples since the beginning; -1 if no packet ends here
    time: int
    serial: int
    lacing: bytes
    start: int


def read_duration(content: Content, budget: Budget) -> float:
    """Add up the durations that the packets of one stream state, or take the time of its pages if that is longer.

    Players begin before zero if the packets up to the end of a page play longer than its time says.
    """
    pages, packets, seconds, start, latest, open_ = 0, 0, 0.0, 0.0, 0, False
    first: Page | None = None
    for page in _pages(content, budget):
        require((page.flags & _BEGINS != 0) == (first is None), "several streams")
        first, pages = first or page, pages + 1
        require(page.serial == first.serial and bool(page.flags & _CONTINUED) == open_, "several streams")
        latest = max(latest, page.time)
        position = page.start
        for size in page.lacing:
            budget.spend()
            if not open_:
                if packets < len(_HEADERS):
                    require(content[position : position + 8] == _HEADERS[packets], "a codec that is not Opus")
                elif size:
                    seconds += opus_seconds(content[position : position + 2])
                packets += 1
            open_ = size == _FULL
            position += size
        if page.time >= 0 and not page.flags & _ENDS:  # at the end, the last packet is cut off
            start = min(start, page.time / _PER_SECOND - seconds)
    require(_count_marks(content, budget) == pages, "a page in another, which players find if the outer one is damaged")
    return max(seconds, latest / _PER_SECOND) - start


def _count_marks(content: Content, budget: Budget) -> int:
    count, position = 0, -1
    while (position := content.find(_MARK, position + 1)) >= 0:
        budget.spend()
        count += 1
    return count


def _pages(content: Content, budget: Budget) -> Iterator[Page]:
    position = 0
    while position < len(content):
        budget.spend()
        require(position + 27 <= len(content) and content[position : position + 4] == _MARK, "bytes that are no page")
        version, flags, time, serial, count = struct.unpack_from("<BBqI8xB", content, position + 4)
        require(version == 0 and flags <= _CONTINUED | _BEGINS | _ENDS, "a page of another version")
        position += 27
        lacing = bytes(content[position : position + count])
        position += count
        require(len(lacing) == count and position + sum(lacing) <= len(content), "a page that is cut off")
        yield Page(flags, time, serial, lacing, position)
        position += sum(lacing)


def opus_seconds(head: bytes) -> float:
    """Return the duration of a packet by its first two bytes (RFC 6716, 3.1).

    More than 120 ms are not allowed, and players count them all the same.
    """
    kind, second = head[0], head[1] if len(head) > 1 else 0
    setting, frames = kind >> 3, (1, 2, 2, second & 63)[kind & 3]
    if setting < 12:  # noqa: PLR2004
        return (0.01, 0.02, 0.04, 0.06)[setting & 3] * frames
    if setting < 16:  # noqa: PLR2004
        return (0.01, 0.02)[setting & 1] * frames
    return (0.0025, 0.005, 0.01, 0.02)[setting & 3] * frames
