"""Read how large an image is from its first bytes, without decoding or decompressing anything.

The event loop does this, so each file takes a bounded number of steps, whatever it holds: Pillow would decompress the
texts and profiles of a PNG, which takes it tenths of a second.
"""

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from genlock.domain.media_format import Format
from genlock.media.sniff import AVIF, BMP, GIF, JPEG, PNG, TIFF, WEBP, likely_format

#: chunks of a PNG, segments of a JPEG, fields of a TIFF that are looked at
_PARTS_MAX = 1000
#: types of colour of a PNG that have an alpha channel
_WITH_ALPHA = (4, 6)
#: segments of a JPEG that describe the frame, and those without a length
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_START_OF_SCAN = 0xDA
_BARE = frozenset((0x01, *range(0xD0, 0xD8)))
#: the fields of a TIFF for its sides, and the forms of a value by its type
_WIDTH, _HEIGHT = 256, 257
_TIFF_FORMS = {3: "H", 4: "I"}
_AVIF_SIDES = re.compile(rb"ispe\0{4}(.{4})(.{4})", re.DOTALL)
_BYTE_ORDERS = {b"II": "<", b"MM": ">"}


class ImageHead(NamedTuple):
    width: int
    height: int
    #: whether the image certainly has no transparent pixel
    is_opaque: bool


def read_image_head(head: bytes) -> ImageHead | None:
    """Return what the first bytes of an image state; None if they do not state its sides."""
    found = likely_format(head[:12])
    reader = _READERS.get(found) if found else None
    try:
        image = reader(head) if reader else None
    except (struct.error, IndexError):
        return None  # it is cut off
    return image if image and image.width > 0 and image.height > 0 else None


def _png(head: bytes) -> ImageHead | None:
    size, name, width, height, _, colour = struct.unpack_from(">I4sIIBB", head, 8)
    if size != 13 or name != b"IHDR":  # noqa: PLR2004 - the length of this chunk
        return None
    return ImageHead(width, height, colour not in _WITH_ALPHA and _png_is_opaque(head))


def _png_is_opaque(head: bytes) -> bool:
    """Whether the pixels begin without a table of transparent colours before them."""
    position = 8
    for _ in range(_PARTS_MAX):
        if position + 8 > len(head):
            return False
        size, name = struct.unpack_from(">I4s", head, position)
        if name in (b"IDAT", b"tRNS"):
            return bool(name == b"IDAT")
        position += 12 + size
    return False


def _jpeg(head: bytes) -> ImageHead | None:
    position = 2
    for _ in range(_PARTS_MAX):
        mark, kind, size, _, height, width = struct.unpack_from(">BBHBHH", head, position)
        if mark != 0xFF or kind == _START_OF_SCAN:  # noqa: PLR2004 - every segment begins like this
            return None
        if kind in _FRAMES:
            return ImageHead(width, height, is_opaque=True)
        # A mark may be repeated, and some segments have no length.
        position += 1 if kind == 0xFF else 2 if kind in _BARE else 2 + size  # noqa: PLR2004
    return None


def _gif(head: bytes) -> ImageHead:
    width, height = struct.unpack_from("<HH", head, 6)
    return ImageHead(width, height, is_opaque=False)


def _bmp(head: bytes) -> ImageHead:
    is_old = struct.unpack_from("<I", head, 14) == (12,)
    width, height = struct.unpack_from("<HH" if is_old else "<ii", head, 18)
    return ImageHead(width, abs(height), is_opaque=False)


def _webp(head: bytes) -> ImageHead | None:
    kind = head[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
    elif kind == b"VP8L":
        [bits] = struct.unpack_from("<I", head, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", head, 26))
    else:
        return None
    return ImageHead(width, height, is_opaque=False)


def _tiff(head: bytes) -> ImageHead | None:
    order = _BYTE_ORDERS[head[:2]]
    [start] = struct.unpack_from(f"{order}I", head, 4)
    [count] = struct.unpack_from(f"{order}H", head, start)
    sides = {}
    for at in range(start + 2, start + 2 + 12 * min(count, _PARTS_MAX), 12):
        field, kind = struct.unpack_from(f"{order}HH", head, at)
        if field in (_WIDTH, _HEIGHT) and kind in _TIFF_FORMS:
            [sides[field]] = struct.unpack_from(order + _TIFF_FORMS[kind], head, at + 8)
    return ImageHead(sides[_WIDTH], sides[_HEIGHT], is_opaque=False) if len(sides) == 2 else None  # noqa: PLR2004


def _avif(head: bytes) -> ImageHead | None:
    """Return the largest image of the file: tiles and thumbnails are smaller."""
    found = _AVIF_SIDES.finditer(head)
    images = (ImageHead(int.from_bytes(each[1]), int.from_bytes(each[2]), is_opaque=False) for each in found)
    return max(images, default=None)


_READERS: dict[Format, Callable[[bytes], ImageHead | None]] = {
    PNG: _png, JPEG: _jpeg, GIF: _gif, BMP: _bmp, WEBP: _webp, TIFF: _tiff, AVIF: _avif,
}  # fmt: skip
