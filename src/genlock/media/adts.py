"""Measure how long a file of AAC plays whose frames have headers of their own (ADTS), as phones record it."""

from array import array
from typing import NamedTuple

from genlock.media.aac import Aac, frames_seconds, read_configuration
from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content

_HEADER_BYTES, _CHECK_SUM_BYTES = 7, 2
#: by the size of this many frames at the beginning, players estimate the bit rate and with it the duration
_FRAMES_ESTIMATED = 50


class Header(NamedTuple):
    #: bytes of the frame with its header
    size: int
    #: bytes of the header
    length: int
    #: type, sampling rate and channels: the same for all frames of a file
    configuration: bytes


def is_adts(content: Content, position: int) -> bool:
    """Whether a header of AAC is at a position."""
    head = content[position : position + 2]
    return len(head) == 2 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0  # noqa: PLR2004


def frames_of_adts(content: Content, position: int, end: int, budget: Budget) -> float:
    """Add up the durations of all frames, which must fill the file up to the end.

    No length is stated, so players estimate it from the first frames; the estimate counts if it is longer.
    """
    positions, sizes, first, length = array("Q"), array("Q"), _header(content, position), end - position
    while position < end:
        budget.spend()
        header = _header(content, position)
        require(header.configuration == first.configuration, "frames of several forms")
        require(position + header.size <= end, "a frame that is cut off")
        positions.append(position + header.length)
        sizes.append(header.size - header.length)
        position += header.size
    seconds = frames_seconds(content, positions, sizes, _aac(first))
    begun = sizes[:_FRAMES_ESTIMATED]
    mean_size = sum(begun) / len(begun) + first.length
    return max(seconds, seconds / len(sizes) * length / mean_size)


def _header(content: Content, position: int) -> Header:
    head = content[position : position + _HEADER_BYTES]
    require(len(head) == _HEADER_BYTES and is_adts(content, position), "other bytes between the frames")
    require(not head[6] & 3, "several frames with one header")
    length = _HEADER_BYTES + (0 if head[1] & 1 else _CHECK_SUM_BYTES)
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    require(size > length, "a frame without content")
    return Header(size, length, bytes((head[1] & 8, head[2] & 0xFD, head[3] & 0xC0)))


def _aac(header: Header) -> Aac:
    """Return what the header says in the form of a configuration."""
    _, second, third = header.configuration
    type_, rate, channels = (second >> 6) + 1, second >> 2 & 15, (second & 1) << 2 | third >> 6
    return read_configuration((type_ << 11 | rate << 7 | channels << 3).to_bytes(2))
