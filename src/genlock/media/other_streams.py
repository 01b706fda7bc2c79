"""Recognise a stream of another format inside a file whose own format is weakly marked.

Players that look at the content take such a file for the other stream, whatever its beginning says.
"""

import re
from itertools import islice

from genlock.media.budget import Budget

#: This many frames one after the other are no coincidence, at the beginning and anywhere else. Quiet recordings without
#: compression have bytes that look like the first ones of a frame at every thirtieth place, and players take a stream
#: behind other bytes for one only after a hundred frames.
_FRAMES_AT_START, _FRAMES_ANYWHERE = 3, 20
#: Beginnings of frames or packs, and how many of them are no coincidence. Those that a quiet recording could have are
#: given with the bits that follow.
_MARKS = {
    re.compile(rb"\x7f\xfe\x80\x01"): 2,  # DTS, in both orders of bytes
    re.compile(rb"\xfe\x7f\x01\x80"): 2,
    re.compile(rb"\x1f\xff\xe8\x00\x07[\xf0-\xff]"): 2,  # DTS with 14 bits in a word
    re.compile(rb"\xff\x1f\x00\xe8[\xf0-\xff]\x07"): 2,
    re.compile(rb"\x72\xf8\x1f\x4e"): 2,  # S/PDIF
    re.compile(rb"\xf8\x72\x6f\xba"): 1,  # TrueHD
    re.compile(rb"\x00\x00\x01\xba[\x20-\x2f\x40-\x7f]"): 2,  # a program stream of MPEG
    re.compile(rb"\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02"): 1,  # MXF
    re.compile(rb"NSVs"): 1,
}
_PACKET_SYNC, _PACKET_SIZES, _PACKETS, _SYNCS_MIN = b"G", (188, 192, 204), 10, 6


def has_marks(content: bytes) -> bool:
    """Whether the content has the marks of an encoder or a container."""
    return any(len(list(islice(mark.finditer(content), least))) == least for mark, least in _MARKS.items())


def has_frames(content: bytes, budget: Budget, *, except_adts: bool = False) -> bool:
    """Whether enough frames of AAC (ADTS or LOAS) or of AC-3 follow each other somewhere in the content."""
    for first, size_of in _FRAMES.items():
        if except_adts and size_of is _adts_size:
            continue
        position = -1
        while (position := content.find(first, position + 1)) >= 0:
            budget.spend()
            following = position
            for _ in range(_FRAMES_ANYWHERE if position else _FRAMES_AT_START):
                size = size_of(content[following : following + 6])
                if not size:
                    break
                following += size
            else:
                return True
    return False


def _adts_size(head: bytes) -> int:
    if len(head) < 6 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:  # noqa: PLR2004
        return 0
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return size if size >= 7 else 0  # noqa: PLR2004 - the length of a header


def _loas_size(head: bytes) -> int:
    if len(head) < 3 or head[0] != 0x56 or head[1] & 0xE0 != 0xE0:  # noqa: PLR2004
        return 0
    return 3 + ((head[1] & 0x1F) << 8 | head[2])


def _ac3_size(head: bytes) -> int:
    if len(head) < 6 or head[:2] != b"\x0b\x77":  # noqa: PLR2004
        return 0
    if head[5] >> 3 > 10:  # noqa: PLR2004 - the versions from here on are E-AC-3
        return 2 + 2 * ((head[2] & 7) << 8 | head[3])
    frequency, rate = head[4] >> 6, head[4] & 63
    if frequency >= len(_AC3_FREQUENCIES) or rate >= 2 * len(_AC3_KILOBITS):
        return 0
    words = _AC3_KILOBITS[rate >> 1] * 96_000 // _AC3_FREQUENCIES[frequency]
    return 2 * (words + (rate & 1 if frequency == 1 else 0))


def _swapped_ac3_size(head: bytes) -> int:
    return _ac3_size(bytes(head[place ^ 1] for place in range(len(head) & ~1)))


_AC3_FREQUENCIES = (48_000, 44_100, 32_000)
_AC3_KILOBITS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)
#: the size of a frame by its first six bytes, 0 if it is none; by the bytes with which the frame begins
_FRAMES = {
    b"\xff": _adts_size,
    b"\x56": _loas_size,
    b"\x0b\x77": _ac3_size,
    b"\x77\x0b": _swapped_ac3_size,
}


def is_transport_stream(content: bytes) -> bool:
    """Whether most packets somewhere in the content would begin as those of an MPEG transport stream do."""
    for size in _PACKET_SIZES:
        for start in range(0, len(content), size * _PACKETS):
            window = content[start : start + size * _PACKETS]
            if window.count(_PACKET_SYNC) >= _SYNCS_MIN and any(
                window[offset::size].count(_PACKET_SYNC) >= _SYNCS_MIN for offset in range(size)
            ):
                return True
    return False
