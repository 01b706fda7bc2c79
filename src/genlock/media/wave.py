"""Measure how long a WAV file plays."""

import struct

from genlock.media.budget import Budget, NotMeasured, require
from genlock.media.mapped_file import Content
from genlock.media.mp3 import frames_follow
from genlock.media.other_streams import has_frames, has_marks

#: the bits of a sample that players expect, by the code of the encoding
_INTEGER, _FLOAT, _ALAW, _MULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_BITS = {_INTEGER: (8, 16, 24, 32), _FLOAT: (32, 64), _ALAW: (8,), _MULAW: (8,)}
_EXTENSION = bytes.fromhex("000000001000800000aa00389b71")
_CHANNELS_MAX, _FREQUENCY_MAX = 32, 768_000
#: chunks before the samples that no player takes for samples
_IGNORED = (
    b"LIST", b"JUNK", b"junk", b"fact", b"bext", b"iXML", b"FLLR", b"PEAK", b"cue ", b"smpl", b"inst", b"PAD ", b"id3 ",
    b"ID3 ", b"_PMX",
)  # fmt: skip
#: where players look for a compressed stream between the samples
_PROBED_BYTES = 262_144


def read_duration(content: Content, budget: Budget) -> float:
    """Divide the bytes after the header by the byte rate. The length that the header states is ignored."""
    position, rate = 12, 0
    while position + 8 <= len(content):
        budget.spend()
        name, size = struct.unpack_from("<4sI", content, position)
        position += 8
        if name == b"data":
            require(rate, "samples before their format")
            require(not _is_compressed(content, position, budget), "a compressed stream instead of samples")
            return (len(content) - position) / rate
        if name == b"fmt ":
            require(not rate, "two formats")
            rate = _byte_rate(bytes(content[position : position + min(size, 40)]))
        else:
            require(name in _IGNORED, f"a chunk {name!r}")
        position += size + size % 2
    raise NotMeasured("no samples")


def _byte_rate(header: bytes) -> int:
    require(len(header) >= 16, "a format that is cut off")  # noqa: PLR2004
    encoding, channels, frequency, rate, frame, bits = struct.unpack_from("<HHIIHH", header)
    if encoding == _EXTENSIBLE:
        require(len(header) == 40 and header[26:] == _EXTENSION, "an encoding that is not known")  # noqa: PLR2004
        [encoding] = struct.unpack_from("<H", header, 24)
    require(bits in _BITS.get(encoding, ()), "an encoding that is not known")
    require(0 < channels <= _CHANNELS_MAX and 0 < frequency <= _FREQUENCY_MAX, "a format that no player expects")
    require(frame == channels * bits // 8 and rate == frame * frequency, "figures that contradict each other")
    return int(rate)


def _is_compressed(content: Content, position: int, budget: Budget) -> bool:
    """Whether the samples look like frames of an encoder: players decode these, whatever the header names."""
    probed = bytes(content[position : position + _PROBED_BYTES])
    return has_marks(probed) or frames_follow(probed, budget) or has_frames(probed, budget)
