"""Measure how long frames of AAC play, each of which must be one sample of its container."""

from collections.abc import Sequence
from random import SystemRandom
from typing import NamedTuple

from genlock.media.aac_frame import FrameReader
from genlock.media.budget import require
from genlock.media.mapped_file import Content

_FRAME = 1024
#: the limit of the standard for one frame and channel is 768, and encoders exceed it a little
_CHANNEL_BYTES_MAX = 1024
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
#: AAC-LC, and the two extensions of it that play as long
_LOW_COMPLEXITY, _TYPES = 2, (2, 5, 29)
_EXTENDED_RATE_MIN, _OTHER_RATE = 3, 15
#: channels by their setting; others are described elsewhere
_CHANNELS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8}
#: At most this many frames, and bytes of frames, are read to their end: that takes half a second, or two seconds if the
#: frames are made to be slow. In a longer file they are chosen at random, which finds a forgery that adds much to it.
_READ_FRAMES_MAX, _READ_BYTES_MAX = 20_000, 2_000_000
#: the first bits of a frame that has a header of its own, with another sampling rate; no frame of a sample has them
_HEADER = 0xE0


class Aac(NamedTuple):
    rate: float
    rate_index: int
    channels: int


def read_configuration(specific: bytes) -> Aac:
    """Return what the configuration of a decoder states."""
    require(len(specific) >= 2, "a description that is cut off")  # noqa: PLR2004
    return _specific(int.from_bytes(specific.ljust(4, b"\0")[:4]))


def frames_seconds(content: Content, positions: Sequence[int], sizes: Sequence[int], aac: Aac) -> float:
    """Return how long samples play, at least one. Each must be one frame."""
    require(max(sizes) <= _CHANNEL_BYTES_MAX * aac.channels, "several frames in a sample")
    require(max(map(content.__getitem__, positions)) < _HEADER, "frames with headers of their own")
    _check_frames(content, positions, sizes, aac.rate_index)
    return len(sizes) * _FRAME / aac.rate


def _check_frames(content: Content, positions: Sequence[int], sizes: Sequence[int], rate_index: int) -> None:
    """Check that samples hold one frame each. Decoders skip zeros after it, and play anything else."""
    for number in _chosen(sizes):
        sample = bytes(content[positions[number] : positions[number] + sizes[number]])
        require(not any(sample[FrameReader(sample, rate_index).end() :]), "several frames in a sample")


def _chosen(sizes: Sequence[int]) -> Sequence[int]:
    """Return the numbers of the samples that are read to their end: all, or as many as the limit allows."""
    count = min(_READ_FRAMES_MAX, len(sizes) * _READ_BYTES_MAX // max(1, sum(sizes)))
    return range(len(sizes)) if count >= len(sizes) else SystemRandom().sample(range(len(sizes)), count)


def _specific(bits: int) -> Aac:
    """Return what the first 32 bits of a configuration state."""
    type_, rate, channels = bits >> 27, bits >> 23 & 15, bits >> 19 & 15
    require(type_ in _TYPES, "AAC of another type")
    require(rate < len(_RATES), "a sampling rate of another form")
    require(channels in _CHANNELS, "channels of another form")
    rest = 16
    if type_ != _LOW_COMPLEXITY:
        # At rates above 48 kHz, the bits of an extended configuration may also mean MP3 instead of AAC.
        require(rate >= _EXTENDED_RATE_MIN and bits >> 15 & 15 != _OTHER_RATE, "a sampling rate of another form")
        require(bits >> 10 & 31 == _LOW_COMPLEXITY, "AAC of another type")
        rest = 7
    require(not bits >> rest & 7, "frames of another length")
    return Aac(_RATES[rate], rate, _CHANNELS[channels])
