"""Measure how long an MP3 file plays, or one of AAC, which begins in the same way."""

import re
import struct
from functools import cache
from typing import NamedTuple

from genlock.media.adts import frames_of_adts, is_adts
from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content
from genlock.media.other_streams import has_frames, has_marks, has_placed_mark, is_speech, is_transport_stream

_FREQUENCIES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_LOW_RATES = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_KILOBITS = {
    (3, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    **{(version, layer): _LOW_RATES for version in (0, 2) for layer in (2, 3)},
}
_TAG_HEADER, _TAGS_MAX = 10, 10
#: Behind a longer tag players choose the format by the suffix of the file.
_TAG_BYTES_PROBED = 1_000_000
#: players that find no frame behind 65,536 zeros estimate the length from a size that includes the zeros
_ZEROS_MAX = 60_000
#: a tag at the end of the file (ID3v1)
_LAST_TAG = 128
#: Marks behind which the first frame states the number of frames: where the number is, and where the flags are that say
#: whether it is there
_STATED = {re.compile(rb"Xing|Info"): (8, 4), re.compile(rb"VBRI"): (14, None)}
_STATED_BYTES, _FRAMES_STATED = 64, 1
#: players look at no more to recognise a format
_PROBED_BYTES = 1 << 20
#: this many frames one after the other are no coincidence
_FRAMES_FOLLOWING = 3
#: Players take a file for MP3 by this many frames at its beginning, if few of their bytes look like headers.
_FRAMES_RECOGNISED, _HEADERS_INSIDE_MAX = 7, 2


class Frame(NamedTuple):
    size: int
    seconds: float
    kilobits: int
    #: version, layer and frequency: the same for all frames of a file
    kind: tuple[int, int, int]


def read_duration(content: Content, budget: Budget) -> float:
    """Add up the durations of all frames, which must fill the file; players search for frames where there are none."""
    position = _after_tags(content, budget)
    end = len(content)
    if content[end - _LAST_TAG : end - _LAST_TAG + 3] == b"TAG" and end - _LAST_TAG > position:
        end -= _LAST_TAG
    is_aac = is_adts(content, position)
    require(not is_aac or position < _TAG_BYTES_PROBED, "a tag behind which players suppose MP3")
    require(not _is_other_stream(content, position, budget, is_aac=is_aac), "another stream inside the frames")
    if is_aac:
        return frames_of_adts(content, position, end, budget)
    first = frame_at(content, position)
    require(first is not None, "no frame at the beginning")
    assert first is not None
    seconds, kilobits, stated = 0.0, set(), _stated(content, position, first)
    count = 0
    while position + 4 <= end:
        budget.spend()
        frame = frame_at(content, position)
        require(frame is not None and frame.kind == first.kind, "other bytes between the frames")
        assert frame is not None
        require(count >= _FRAMES_RECOGNISED or not _has_headers(content, position, frame), "frames inside of others")
        kilobits.add(frame.kilobits)
        position, seconds, count = position + frame.size, seconds + frame.seconds, count + 1
    # Without a stated length, players estimate it from the first bit rate.
    require(stated is not None or len(kilobits) == 1, "a bit rate that varies without a stated length")
    return max(seconds, stated or 0.0)


def _is_other_stream(content: Content, position: int, budget: Budget, *, is_aac: bool) -> bool:
    """Whether players that look at the content would rather take it for another stream."""
    probed = bytes(content[position : position + _PROBED_BYTES])
    if has_placed_mark(probed) or has_marks(probed) or is_transport_stream(probed) or is_speech(probed):
        return True
    if has_frames(probed, budget, except_adts=is_aac):
        return True
    return is_aac and frames_follow(probed, budget)


def _after_tags(content: Content, budget: Budget) -> int:
    """Return the position after the ID3 tags at the beginning and the zeros that fill them up."""
    position = 0
    for _ in range(_TAGS_MAX):
        head = bytes(content[position : position + _TAG_HEADER])
        if head[:3] != b"ID3":
            break
        budget.spend()
        require(len(head) == _TAG_HEADER and 0xFF not in head[3:5] and max(head[6:]) < 128, "a tag of another form")  # noqa: PLR2004
        size = 0
        for byte in head[6:]:
            size = size << 7 | byte
        position += _TAG_HEADER + size + (_TAG_HEADER if head[5] & 16 else 0)
    start = content.find(b"\xff", position)
    require(0 <= start <= position + _ZEROS_MAX, "no frame near the beginning")
    require(not any(content[position:start]), "other bytes before the frames")
    return start


def _has_headers(content: Content, position: int, frame: Frame) -> bool:
    """Whether several places inside of a frame look like the beginning of another."""
    inside = bytes(content[position + 2 : position + frame.size])
    return inside.count(content[position : position + 2]) > _HEADERS_INSIDE_MAX


def _stated(content: Content, position: int, frame: Frame) -> float | None:
    """Return the longest duration that the first frame states for the whole file (Xing, Info, VBRI).

    Return None if it states none. Players look for the marks at different places, so all of them count.
    """
    head = bytes(content[position : position + min(frame.size, _STATED_BYTES + 18)])
    frames = 0
    for mark, (number_at, flags_at) in _STATED.items():
        for found in mark.finditer(head, 0, _STATED_BYTES):
            fields = head[found.start() :].ljust(18, b"\0")
            if flags_at is None or struct.unpack_from(">I", fields, flags_at)[0] & _FRAMES_STATED:
                frames = max(frames, struct.unpack_from(">I", fields, number_at)[0])
    return frames * frame.seconds if frames else None


def frame_at(content: Content, position: int) -> Frame | None:
    """Return the frame whose header is at a position; None if there is none."""
    if position + 4 > len(content) or content[position] != 0xFF:  # noqa: PLR2004
        return None
    return _frame(content[position + 1], content[position + 2])


def frames_follow(content: bytes, budget: Budget) -> bool:
    """Whether several frames of MPEG audio follow each other somewhere in the content."""
    position = -1
    while (position := content.find(b"\xff", position + 1)) >= 0:
        budget.spend()
        following = position
        for _ in range(_FRAMES_FOLLOWING):
            frame = frame_at(content, following)
            if frame is None:
                break
            following += frame.size
        else:
            return True
    return False


@cache
def _frame(kind: int, rates: int) -> Frame | None:
    """Return a frame by the second and third byte of its header; None if invalid."""
    version, layer = kind >> 3 & 3, 4 - (kind >> 1 & 3)
    speed, frequency = rates >> 4, rates >> 2 & 3
    if kind >> 5 != 7 or (version, layer) not in _KILOBITS or speed in (0, 15) or frequency == 3:  # noqa: PLR2004
        return None
    kilobits, per_second = _KILOBITS[version, layer][speed - 1], _FREQUENCIES[version][frequency]
    samples = 576 if layer == 3 and version != 3 else 1152  # noqa: PLR2004
    size = samples // 8 * kilobits * 1000 // per_second + (rates >> 1 & 1)
    return Frame(size, samples / per_second, kilobits, (version, layer, frequency))
