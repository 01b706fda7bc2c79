"""Measure how long the audio of an MPEG-4 file plays, whatever times its samples have."""

import struct
from array import array
from collections.abc import Mapping, Sequence
from random import SystemRandom
from typing import NamedTuple

from genlock.media.aac_frame import FrameReader
from genlock.media.budget import Budget, NotMeasured, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import Box, boxes
from genlock.media.mp4_samples import Samples, sample_descriptions

_FRAME = 1024
#: each is looked at
_SAMPLES_MAX = 2_000_000
#: the limit of the standard for one frame and channel is 768, and encoders exceed it a little
_CHANNEL_BYTES_MAX = 1024
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
#: AAC-LC, and the two extensions of it that play as long
_LOW_COMPLEXITY, _TYPES = 2, (2, 5, 29)
_EXTENDED_RATE_MIN, _OTHER_RATE = 3, 15
_DESCRIBED_RATE_MAX = 65_535
#: channels by their setting; others are described elsewhere
_CHANNELS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8}
_ES, _DECODER, _SPECIFIC = 3, 4, 5
_MPEG4_AUDIO = 0x40
#: At most this many frames, and bytes of frames, are read to their end: that takes half a second, or two seconds if the
#: frames are made to be slow. In a longer file they are chosen at random, which finds a forgery that adds much to it.
_READ_FRAMES_MAX, _READ_BYTES_MAX = 20_000, 2_000_000
#: the first bits of a frame that has a header of its own, with another sampling rate; no frame of a sample has them
_HEADER = 0xE0
#: the size of a description before its boxes, by its version
_DESCRIPTION = {0: 28, 1: 44}
_BOXES = (b"esds", b"wave", b"chan", b"btrt", b"free")
_WAVE_BOXES = (b"esds", b"frma", b"mp4a", bytes(4))


class Aac(NamedTuple):
    rate: int
    rate_index: int
    channels: int


def audio_seconds(content: Content, tables: Mapping[bytes, Box], samples: Samples, budget: Budget) -> float:
    """Return how long the samples of an audio track play. Each must be one frame of AAC."""
    kinds = [_read_aac(content, entry, budget) for entry in sample_descriptions(content, tables[b"stsd"], budget)]
    require(kinds, "audio without a description")
    require(samples.count <= _SAMPLES_MAX, "more samples than hours of audio have")
    if samples.count:
        frame_bytes = _CHANNEL_BYTES_MAX * min(kind.channels for kind in kinds)
        sizes = samples.sizes()
        require(max(sizes) <= frame_bytes, "several frames in a sample")
        positions = _positions(content, samples, budget)
        require(max(map(content.__getitem__, positions)) < _HEADER, "frames with headers of their own")
        require(len({kind.rate_index for kind in kinds}) == 1, "several sampling rates")
        _check_frames(content, positions, sizes, kinds[0].rate_index)
    return samples.count * _FRAME / min(kind.rate for kind in kinds)


def _check_frames(content: Content, positions: Sequence[int], sizes: Sequence[int], rate_index: int) -> None:
    """Check that samples hold one frame each. Decoders skip zeros after it, and play anything else."""
    for number in _chosen(sizes):
        sample = bytes(content[positions[number] : positions[number] + sizes[number]])
        require(not any(sample[FrameReader(sample, rate_index).end() :]), "several frames in a sample")


def _chosen(sizes: Sequence[int]) -> Sequence[int]:
    """Return the numbers of the samples that are read to their end: all, or as many as the limit allows."""
    count = min(_READ_FRAMES_MAX, len(sizes) * _READ_BYTES_MAX // max(1, sum(sizes)))
    return range(len(sizes)) if count >= len(sizes) else SystemRandom().sample(range(len(sizes)), count)


def _positions(content: Content, samples: Samples, budget: Budget) -> Sequence[int]:
    """Return where each sample begins. Raises NotMeasured if one is not in the file."""
    try:
        positions = array("Q", samples.positions(budget))
    except OverflowError:
        raise NotMeasured("a sample that is not in the file") from None
    require(max(positions) < len(content), "a sample that is not in the file")
    return positions


def _read_aac(content: Content, entry: Box, budget: Budget) -> Aac:
    """Return the lowest sampling rate that a description states, and its channels."""
    require(entry.end - entry.start >= _DESCRIPTION[0], "a description that is cut off")
    version, rate = struct.unpack_from(">H14xH", content, entry.start + 8)
    require(version in _DESCRIPTION, "a description of another version")
    found = list(boxes(content, entry.start + _DESCRIPTION[version], entry.end, budget))
    require(all(box.name in _BOXES for box in found), "a description with other boxes")
    for wave in [box for box in found if box.name == b"wave"]:
        inside = list(boxes(content, wave.start, wave.end, budget))
        require(all(box.name in _WAVE_BOXES for box in inside), "a description with other boxes")
        found += inside
    configurations = [box for box in found if box.name == b"esds"]
    require(len(configurations) == 1, "no AAC configuration, or two")
    aac = _configuration(content[configurations[0].start : configurations[0].end])
    if aac.rate > _DESCRIBED_RATE_MAX:  # the description has 16 bits for it, and encoders write half of the rate
        return aac
    return aac._replace(rate=min(rate or aac.rate, aac.rate))


def _configuration(esds: bytes) -> Aac:
    """Return what the configuration of the decoder in `esds` states."""
    at, _ = _descriptor(esds, 4, _ES)
    require(at + 3 <= len(esds) and not esds[at + 2] & 0xE0, "a description of another form")
    at, _ = _descriptor(esds, at + 3, _DECODER)
    require(at + 13 <= len(esds) and esds[at] == _MPEG4_AUDIO, "audio that is not AAC")
    at, size = _descriptor(esds, at + 13, _SPECIFIC)
    require(size >= 2, "a description that is cut off")  # noqa: PLR2004
    return _specific(int.from_bytes(esds[at : at + size].ljust(4, b"\0")[:4]))


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


def _descriptor(esds: bytes, at: int, tag: int) -> tuple[int, int]:
    """Return where the content of an MPEG-4 descriptor begins, and its length."""
    require(at < len(esds) and esds[at] == tag, "a description of another form")
    size = 0
    for _ in range(4):
        at += 1
        require(at < len(esds), "a description that is cut off")
        size = size << 7 | esds[at] & 127
        if esds[at] < 128:  # noqa: PLR2004 - the last byte of a length
            break
    require(at + 1 + size <= len(esds), "a description that is cut off")
    return at + 1, size
