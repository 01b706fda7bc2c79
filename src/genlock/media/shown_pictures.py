"""Count the pictures that a sample of VP9, AV1 or JPEG shows. All of them can hide several in one sample.

An encoder of VP9 or AV1 puts pictures that are only referred to into the sample of the one that is shown. A program
that gives every decoded picture the duration of a sample would play a film longer whose samples show several.
"""

from collections.abc import Iterator

from genlock.media.budget import require

#: Cameras take no more. Programs that round the times of pictures show each of them for longer if there are more.
PICTURES_PER_SECOND_MAX = 240
#: A picture may be stated to be shown for this long, or for twice the average: some encoders state half the rate.
_STATED_SECONDS_MAX, _STATED_RATIO_MAX = 0.1, 2.2
_VP9_INDEX, _VP9_INDEX_BITS = 0xC0, 0xE0
_LAST_PROFILE = 3
#: units (OBUs) of AV1: parameters, the delimiter at the beginning of a sample, and those with the header of a picture
_PARAMETERS, _DELIMITER, _HEADERS = 1, 2, (3, 6)
#: a bit of the parameters: headers of pictures do not state whether they are shown
_STILL_PICTURES = 0b1000
_UNITS_MAX = 1000
#: of JPEG: the beginning of a picture and of its data, and marks that no length follows
_JPEG_START, _JPEG_DATA, _JPEG_BARE = b"\xff\xd8", 0xDA, (0x00, 0x01, *range(0xD0, 0xDA))
_SEGMENTS_MAX = 100


def check_stated(picture_seconds: float, pictures: int, seconds: float) -> None:
    """Check how long a stream states that a picture is shown: encoders and copies may use it instead of the times."""
    longest = max(_STATED_SECONDS_MAX, _STATED_RATIO_MAX * seconds / max(pictures, 1))
    require(picture_seconds <= longest, "pictures that are stated to be shown for longer")


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
        if kind == _PARAMETERS and start < end:
            require(not sample[start] & _STILL_PICTURES, "still pictures")
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


def shown_in_jpeg(sample: bytes) -> int:
    """Return 1 or, if another picture begins after the data of the first one, 2."""
    require(sample.startswith(_JPEG_START), "no picture at the beginning of a sample")
    position = 2
    for _ in range(_SEGMENTS_MAX):
        require(position + 4 <= len(sample) and sample[position] == 0xFF, "a picture of another form")  # noqa: PLR2004
        mark = sample[position + 1]
        if mark == _JPEG_DATA:
            return 1 if sample.find(_JPEG_START, position) < 0 else 2
        require(mark not in _JPEG_BARE, "a picture of another form")
        position += 2 + int.from_bytes(sample[position + 2 : position + 4])
    require(condition=False, what="too many segments in a picture")
    return 0
