"""Measure how long a WAV file plays."""

import re
import struct

from genlock.media.budget import Budget, NotMeasured, require
from genlock.media.mapped_file import Content
from genlock.media.mp3 import frames_follow
from genlock.media.other_streams import has_frames, has_marks, has_placed_mark, has_repeated_marks

#: the bits of a sample that players expect, by the code of the encoding
_INTEGER, _FLOAT, _ALAW, _MULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_BITS = {_INTEGER: (8, 16, 24, 32), _FLOAT: (32, 64), _ALAW: (8,), _MULAW: (8,)}
_EXTENSION = bytes.fromhex("000000001000800000aa00389b71")
_CHANNELS_MAX, _FREQUENCY_MAX = 32, 768_000
#: chunks before the samples that no player takes for samples
_IGNORED = (
    b"LIST", b"JUNK", b"junk", b"bext", b"iXML", b"FLLR", b"PEAK", b"cue ", b"smpl", b"inst", b"PAD ", b"id3 ",
    b"ID3 ", b"_PMX",
)  # fmt: skip
#: Players look for a compressed stream in this many bytes, which may begin with silence. Most types of it must begin at
#: the first sound; some are also found later if they fill most of the rest.
_PROBED_BYTES, _PROBED_LATER_BYTES, _ALL_PROBED_BYTES = 262_144, 65_536, 10_000_000
_SOUND = re.compile(rb"[^\0]")


def read_duration(content: Content, budget: Budget) -> float:
    """Divide the bytes after the header by the byte rate. The number of bytes that the header states is ignored.

    If that is not the number of bytes in the file, players believe the number of samples that is stated elsewhere.
    """
    require(not has_placed_mark(content), "another container")
    position, rate, frequency, stated = 12, 0, 0, 0
    while position + 8 <= len(content):
        budget.spend()
        name, size = struct.unpack_from("<4sI", content, position)
        position += 8
        if name == b"data":
            require(rate, "samples before their format")
            require(not _is_compressed(content, position), "a compressed stream instead of samples")
            if 0 < size <= len(content) - position:
                stated = 0
            return max((len(content) - position) / rate, stated / frequency)
        if name == b"fmt ":
            require(not rate, "two formats")
            rate, frequency = _rates(bytes(content[position : position + min(size, 40)]))
        elif name == b"fact":
            stated = max(stated, _stated_samples(content, position))
        else:
            require(name in _IGNORED, f"a chunk {name!r}")
        position += size + size % 2
    raise NotMeasured("no samples")


def _stated_samples(content: Content, position: int) -> int:
    """Return the number of samples that a chunk states."""
    require(position + 4 <= len(content), "a number that is cut off")
    samples: int = struct.unpack_from("<I", content, position)[0]
    return samples


def _rates(header: bytes) -> tuple[int, int]:
    """Return the bytes and the samples of a second."""
    require(len(header) >= 16, "a format that is cut off")  # noqa: PLR2004
    encoding, channels, frequency, rate, frame, bits = struct.unpack_from("<HHIIHH", header)
    if encoding == _EXTENSIBLE:
        require(len(header) == 40 and header[26:] == _EXTENSION, "an encoding that is not known")  # noqa: PLR2004
        [encoding] = struct.unpack_from("<H", header, 24)
    require(bits in _BITS.get(encoding, ()), "an encoding that is not known")
    require(0 < channels <= _CHANNELS_MAX and 0 < frequency <= _FREQUENCY_MAX, "a format that no player expects")
    require(frame == channels * bits // 8 and rate == frame * frequency, "figures that contradict each other")
    return int(rate), int(frequency)


def _is_compressed(content: Content, position: int) -> bool:
    """Whether the samples look like frames of an encoder: players decode these, whatever the header names."""
    sound = _SOUND.search(content, position)
    if sound is None:
        return False
    start = sound.start()
    if has_marks(bytes(content[start : start + _PROBED_BYTES])):
        return True
    end = min(len(content), start + _ALL_PROBED_BYTES)
    if has_repeated_marks(bytes(content[start:end])):
        return True
    later = ((start + (end - start) * part // 4, _PROBED_LATER_BYTES) for part in (1, 2, 3))
    for begin, length in ((start, _PROBED_BYTES), *later):
        probed = bytes(content[begin : begin + length])
        # Silence a little below zero is full of first bytes of frames: the number of bytes limits the steps.
        if frames_follow(probed, Budget()) or has_frames(probed, Budget()):
            return True
    return False
