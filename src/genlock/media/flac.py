"""Measure how long a FLAC file plays."""

import re
import struct
from functools import cache
from typing import NamedTuple

from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content

_BLOCKS_MAX = 1000
_STREAM_INFO, _STREAM_INFO_BYTES, _LAST_BLOCK = 0, 34, 0x80
#: players take a file that states less samples in a block, or more in a second, for another format
_BLOCK_SAMPLES_MIN, _RATE_MAX = 16, 655_350
_FRAME = re.compile(rb"\xff[\xf8\xf9]")
#: the longest header of a frame
_HEADER_BYTES_MAX = 16
#: samples of a frame by its code; of two codes, a number of 8 or 16 bits follows
_BLOCK_SIZES = {
    1: 192,
    **{code: 576 << code - 2 for code in range(2, 6)},
    **{code: 256 << code - 8 for code in range(8, 16)},
}
_BLOCK_SIZE_BYTES = {6: 1, 7: 2}
#: sampling rates by their code; of three codes, a number with such a factor follows. Code 0 is the rate of the file.
_RATES = {
    1: 88_200, 2: 176_400, 3: 192_000, 4: 8000, 5: 16_000, 6: 22_050, 7: 24_000, 8: 32_000, 9: 44_100, 10: 48_000,
    11: 96_000,
}  # fmt: skip
_RATE_BYTES = {12: (1, 1000), 13: (2, 1), 14: (2, 10)}
_CHANNELS_MAX, _RESERVED_DEPTH = 10, 3
_POLYNOMIAL, _FRAME_POLYNOMIAL = 0x107, 0x18005
#: a longer frame is not checked; the bytes of one step are checked in the time that other steps take
_FRAME_BYTES_MAX, _BYTES_PER_STEP = 1 << 20, 16


class Frame(NamedTuple):
    #: samples
    size: int
    rate: int
    #: whether the number is that of the first sample, or of the frame
    counts_samples: bool
    number: int

    @property
    def end(self) -> float:
        """When the frame ends as players tell by its number alone, in seconds."""
        return (self.number * (1 if self.counts_samples else self.size) + self.size) / self.rate

    @property
    def next_number(self) -> int:
        return self.number + (self.size if self.counts_samples else 1)


def read_duration(content: Content, budget: Budget) -> float:
    """Add up the durations of all frames, wherever they are, or take the longest that the header and numbers state."""
    position, rate, samples = _read_header(content, budget)
    require(_FRAME.match(content, position), "no frame at the beginning")
    seconds = latest = 0.0
    last, inside, expected = position, list[int](), 0
    for found in _FRAME.finditer(content, position):
        budget.spend()
        start = found.start()
        frame = _read_frame(content[start : start + _HEADER_BYTES_MAX], rate)
        if frame is None:
            continue
        seconds += frame.size / frame.rate
        if frame.number not in (0, expected):  # several recordings may follow each other
            inside.append(start)
            continue
        _check_inside(content, last, inside, start, budget)
        latest, last, inside, expected = max(latest, frame.end), start, [], frame.next_number
    _check_inside(content, last, inside, len(content), budget)
    return max(seconds, latest, samples / rate)


def _check_inside(content: Content, start: int, inside: list[int], end: int, budget: Budget) -> None:
    """Check that what looks like the beginnings of frames out of turn is the content of a frame, by its check sum.

    Players show a frame when its number says.
    """
    if not inside:
        return
    require(end - start <= _FRAME_BYTES_MAX, "frames with other numbers")
    budget.spend((end - start) // _BYTES_PER_STEP)
    found = 0
    for place in (*inside, end):
        found, start = _frame_check_sum(content[start:place], found), place
        require((found == 0) == (place == end), "frames with other numbers")


def _read_header(content: Content, budget: Budget) -> tuple[int, int, int]:
    """Return where the frames begin, the sampling rate, and the number of samples."""
    position, info = 4, b""
    for number in range(_BLOCKS_MAX):
        budget.spend()
        require(position + 4 <= len(content), "a header that is cut off")
        [block] = struct.unpack_from(">I", content, position)
        kind, size, position = block >> 24 & 127, block & 0xFFFFFF, position + 4
        require((kind == _STREAM_INFO) == (number == 0), "a header of another form")
        if number == 0:
            require(size == _STREAM_INFO_BYTES, "a header of another length")
            info = bytes(content[position : position + size])
        position += size
        if block >> 24 & _LAST_BLOCK:
            break
    require(len(info) == _STREAM_INFO_BYTES, "a header that is cut off")
    bits = int.from_bytes(info[10:18])
    require(0 < bits >> 44 <= _RATE_MAX, "no sampling rate")
    require(_BLOCK_SAMPLES_MIN <= int.from_bytes(info[:2]) <= int.from_bytes(info[2:4]), "blocks of another form")
    return position, bits >> 44, bits & (1 << 36) - 1


def _read_frame(head: bytes, stated_rate: int) -> Frame | None:
    """Return the frame of a header; None if the bytes are no header of a frame, as its check sum tells."""
    head = head.ljust(_HEADER_BYTES_MAX, b"\0")
    if head[3] & 1 or head[3] >> 4 > _CHANNELS_MAX or head[3] >> 1 & 7 == _RESERVED_DEPTH:
        return None
    size_code, rate_code = head[2] >> 4, head[2] & 15
    ones = 8 - (head[4] ^ 0xFF).bit_length()
    at = 4 + max(1, ones)
    number = head[4] & 0x7F >> ones
    for byte in head[5:at]:
        number = number << 6 | byte & 0x3F
    size, rate = _BLOCK_SIZES.get(size_code, 0), _RATES.get(rate_code, 0 if rate_code else stated_rate)
    if size_code in _BLOCK_SIZE_BYTES:
        end = at + _BLOCK_SIZE_BYTES[size_code]
        size, at = int.from_bytes(head[at:end]) + 1, end
    if rate_code in _RATE_BYTES:
        count, factor = _RATE_BYTES[rate_code]
        rate, at = int.from_bytes(head[at : at + count]) * factor, at + count
    if not size or not rate or _check_sum(head[:at]) != head[at]:
        return None
    return Frame(size, min(rate, stated_rate), bool(head[1] & 1), number)


def _check_sum(head: bytes) -> int:
    table, found = _check_sums(), 0
    for byte in head:
        found = table[found ^ byte]
    return found


def _frame_check_sum(content: bytes, found: int) -> int:
    """Continue the check sum of a frame, which is 0 at its end."""
    table = _frame_check_sums()
    for byte in content:
        found = found << 8 & 0xFFFF ^ table[found >> 8 ^ byte]
    return found


@cache
def _frame_check_sums() -> list[int]:
    """Return the check sum of frames for each byte."""
    table = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = value << 1 ^ (_FRAME_POLYNOMIAL if value & 0x8000 else 0)
        table.append(value)
    return table


@cache
def _check_sums() -> bytes:
    """Return the check sum of each byte."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value << 1 ^ (_POLYNOMIAL if value & 128 else 0)
        table.append(value)
    return bytes(table)
