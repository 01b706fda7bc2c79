"""Recognise a stream of another format inside a file whose own format is weakly marked.

Players that look at the content take such a file for the other stream, whatever its beginning says.
"""

import re
from collections.abc import Iterator
from itertools import islice

from genlock.media.budget import Budget
from genlock.media.mapped_file import Content

#: This many frames one after the other are no coincidence, at the beginning and anywhere else. Quiet recordings without
#: compression have bytes that look like the first ones of a frame at every thirtieth place, and players take a stream
#: behind other bytes for one only after a hundred frames.
_FRAMES_AT_START, _FRAMES_ANYWHERE = 3, 20
#: Beginnings of frames of audio, and how many of them are no coincidence. Those that a quiet recording could have are
#: given with the bits that follow.
_AUDIO_MARKS = {
    re.compile(rb"\x7f\xfe\x80\x01"): 2,  # DTS, in both orders of bytes
    re.compile(rb"\xfe\x7f\x01\x80"): 2,
    re.compile(rb"\x1f\xff\xe8\x00\x07[\xf0-\xff]"): 2,  # DTS with 14 bits in a word
    re.compile(rb"\xff\x1f\x00\xe8[\xf0-\xff]\x07"): 2,
    re.compile(rb"\x72\xf8\x1f\x4e"): 2,  # S/PDIF
    re.compile(rb"\xf8\x72\x6f[\xba\xbb]"): 2,  # TrueHD and MLP
}
_ODD = b"[" + b"".join(rb"\x%02x" % byte for byte in range(1, 256, 2)) + b"]"
#: the header of a packet of MPEG-2, and of MPEG-1 with its stuffing, size of a buffer and time
_PACKET_HEADER = (
    rb"[\x80-\xbf](?:[\x00-\x3f]|[\x80-\xbf].[\x20-\x2f]|[\xc0-\xff].[\x30-\x3f])"
    rb"|\xff{0,64}(?:[\x40-\x7f].)?(?:\x0f|(?=[\x20-\x3f])" + _ODD + rb"." + _ODD + rb"." + _ODD + rb")"
)
#: Beginnings of frames of DTS and of TrueHD for which players look in all that they probe. Noise has the first bytes of
#: DTS every megabyte; players ask for them every 32 kB, and twice of that is allowed for what they probe at a time.
_DTS = (
    re.compile(rb"\x7f\xfe\x80\x01[\x7c-\x7f\xfc-\xff]"),
    re.compile(rb"\xfe\x7f\x01\x80.[\x7c-\x7f\xfc-\xff]", re.DOTALL),
    re.compile(rb"\x1f\xff\xe8\x00\x07[\xf0-\xff]"),
    re.compile(rb"\xff\x1f\x00\xe8[\xf0-\xff]\x07"),
)
_DTS_BYTES, _DTS_PROBED_MIN = 65_536, 262_144
_TRUE_HD = {re.compile(rb"\xf8\x72\x6f[\xba\xbb]"): 4}
#: the same for packs and sections of containers
_CONTAINER_MARKS = {
    re.compile(rb"\x00\x00\x01\xba[\x20-\x2f\x40-\x7f]"): 2,  # a program stream of MPEG
    # Its packets, of video or audio; some honest files of MP3 have six such sequences of bytes.
    re.compile(rb"\x00\x00\x01[\xbd\xc0-\xef]..(?:" + _PACKET_HEADER + rb")", re.DOTALL): 7,
    re.compile(rb"\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02"): 1,  # MXF
    re.compile(rb"\xf5\x46\x7a\xbd\x00\x00\x00\x02"): 1,  # TiVo
    re.compile(rb"\x1f\x07\x00[\x3f\xbf]"): 3,  # DV
    re.compile(rb"NSVs"): 1,
}
#: Marks of containers at a fixed position behind the beginning: of MPEG-4 and R3D, Pro Pinball, Scream Tracker, ACT,
#: HCOM, Sega Stream, WavArc, and trackers with samples.
_PLACED_MARKS = (
    (4, re.compile(rb"moov|mdat|pnot|udta|ftyp|ediw|wide|free|junk|pict|skip|uuid|prfl|RED1")),
    (4, re.compile(rb"(\x88\x15|\x11\x2b|\x22\x56|\x44\xac)\0\0.{20}\1\0\0", re.DOTALL)),
    (20, re.compile(rb"!Scream!|BMOD2STM|WUZAMOD!")),
    (44, re.compile(rb"SCRM|PTMF")),
    (44, re.compile(rb"\0{212}\x84.{7}\0{248}", re.DOTALL)),
    (65, re.compile(rb"FSSD")),
    (213, re.compile(rb"Sega Stream")),
    (257, re.compile(rb"0CPY|1DIF|2SLP|3NLP|4ALP|5ELP")),
    (
        1080,
        re.compile(rb"M[.!]K[.!]|M&K!|N\.T\.|NSMS|LARD|PATT|FEST|OKTA|OCTA|(FLT|EXO|TDZ)\d|CD\d1|\dCHN|\d\dC[HN]"),
    ),
    (1464, re.compile(rb"MTN\0|IT10")),
)
#: Bytes that hold the frames of MP3 or AAC by which players recognise these, however long the frames are.
_SPEECH_PROBED = 65_536
#: players ask for 32 valid frames of GSM for each invalid one
_GSM_FRAME, _GSM_SYNC, _GSM_RATIO = 33, 0xD, 24
#: Bytes of a frame of AMR by its mode, of the narrow and of the wide band. Players ask for more than 100 frames in a
#: row, and for 16 for each byte that is not of a frame.
_AMR_SIZES = ((13, 14, 16, 18, 20, 21, 27, 32, 6), (18, 24, 33, 37, 41, 47, 51, 59, 61, 6))
_AMR_FRAMES_MIN, _AMR_RATIO = 50, 8
_PACKET_SYNC, _PACKET_SIZES, _PACKETS, _SYNCS_MIN = b"G", (188, 192, 204), 10, 6


def has_marks(content: bytes) -> bool:
    """Whether the content has the marks of an encoder or a container."""
    return _occur(_AUDIO_MARKS, content) or _occur(_CONTAINER_MARKS, content)


def has_repeated_marks(content: bytes) -> bool:
    """Whether the content has as many marks of an encoder of audio as are no coincidence in a long recording."""
    return _occur(_TRUE_HD, content) or any(_is_dense(mark.finditer(content)) for mark in _DTS)


def _is_dense(marks: Iterator[re.Match[bytes]]) -> bool:
    """Whether there are enough marks up to one of them."""
    return any(count * _DTS_BYTES >= max(mark.start(), _DTS_PROBED_MIN) for count, mark in enumerate(marks, 1))


def _occur(marks: dict[re.Pattern[bytes], int], content: bytes) -> bool:
    return any(len(list(islice(mark.finditer(content), least))) == least for mark, least in marks.items())


def has_placed_mark(content: Content, start: int = 0) -> bool:
    """Whether players would take what begins at a position for another container, by a mark behind the beginning."""
    return any(mark.match(content, start + place) for place, mark in _PLACED_MARKS)


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


def is_speech(content: bytes) -> bool:
    """Whether players that see some of the beginning would take it for speech as phones code it, GSM or AMR."""
    probed = content[:_SPEECH_PROBED]
    return _is_gsm(probed) or any(_is_amr(probed, sizes) for sizes in _AMR_SIZES)


def _is_gsm(content: bytes) -> bool:
    """Whether nearly all frames of GSM up to one of them begin as they do."""
    valid = invalid = 0
    for byte in content[::_GSM_FRAME]:
        valid, invalid = (valid + 1, invalid) if byte >> 4 == _GSM_SYNC else (valid, invalid + 1)
        if valid > _GSM_RATIO * invalid:
            return True
    return False


def _is_amr(content: bytes, sizes: tuple[int, ...]) -> bool:
    """Whether many frames of AMR follow each other, behind few other bytes."""
    position = valid = invalid = 0
    while position < len(content):
        head = content[position]
        mode = head >> 3 & 15
        size = sizes[mode] if mode < len(sizes) and head & 4 else 0
        rest = content[position + 1 : position + size]
        if rest.count(head) < len(rest):
            valid, position = valid + 1, position + size
        else:
            valid, invalid, position = 0, invalid + 1, position + max(1, size)
        if valid > _AMR_FRAMES_MIN and valid > _AMR_RATIO * invalid:
            return True
    return False


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
