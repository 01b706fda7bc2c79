"""Count the pictures that a sample of VP9 or AV1 shows. Both codecs can hide several in one sample.

An encoder puts pictures that are only referred to into the sample of the one that is shown. A program that gives every
decoded picture the duration of a sample would play a film longer whose samples show several.
"""

from collections.abc import Iterator

from genlock.media.budget import require

_VP9_INDEX, _VP9_INDEX_BITS = 0xC0, 0xE0
_LAST_PROFILE = 3
#: units (OBUs) of AV1: the delimiter at the beginning of a sample, and those with the header of a picture
_DELIMITER, _HEADERS = 2, (3, 6)
_UNITS_MAX = 1000


def shown_in_vp9(sample: bytes) -> int:
    """Return how many pictures of a sample are shown."""
    return sum(map(_is_shown_vp9, _vp9_pictures(sample)))


def _vp9_pictures(sample: bytes) -> Iterator[bytes]:
    """Yield the beginning of each picture. If there are several, an index at the end of the sample has their sizes."""
    mark = sample[-1] if sample else 0
    count, width = (mark & 7) + 1, (mark >> 3 & 3) + 1
    start = len(sample) - 2 - count * width
    if mark & _VP9_INDEX_BITS != _VP9_INDEX or start < 0 or sample[start] != mark:
        yield sample[:1]
        return
    position = 0
    for at in range(start + 1, len(sample) - 1, width):
        yield sample[position : position + 1]
        position += int.from_bytes(sample[at : at + width], "little")


def _is_shown_vp9(head: bytes) -> bool:
    if not head:
        return False
    bits = head[0]
    if (bits >> 5 & 1) + (bits >> 4 & 1) * 2 == _LAST_PROFILE:  # it has one more bit
        return bool(bits & 0b101)
    return bool(bits & 0b1010)


def shown_in_av1(sample: bytes) -> int:
    """Return how many pictures of a sample are shown. Raises NotMeasured if its units do not fill it."""
    shown = position = 0
    for _ in range(_UNITS_MAX):
        if position >= len(sample):
            return shown
        kind, start, end = _av1_unit(sample, position)
        require(kind != _DELIMITER or position == 0, "several samples in one")
        if kind in _HEADERS and start < end:
            shown += bool(sample[start] & 0b1001_0000)
        position = end
    require(condition=False, what="too many units in a sample")
    return shown


def _av1_unit(sample: bytes, position: int) -> tuple[int, int, int]:
    """Return the type of a unit, and where its content begins and ends."""
    head = sample[position]
    start = position + (2 if head & 4 else 1)
    if not head & 2:
        return head >> 3 & 15, start, len(sample)
    size = 0
    for number in range(8):
        require(start < len(sample), "a unit that is cut off")
        byte = sample[start]
        size, start = size | (byte & 127) << 7 * number, start + 1
        if byte < 128:  # noqa: PLR2004 - the last byte of a size
            break
    require(start + size <= len(sample), "a unit that is cut off")
    return head >> 3 & 15, start, start + size
