"""Measure how long the audio of an MPEG-4 file plays, whatever times its samples have."""

import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence

from genlock.media.aac import Aac, frames_seconds, read_configuration
from genlock.media.budget import Budget, NotMeasured, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import Box, boxes
from genlock.media.mp4_samples import Samples, sample_descriptions
from genlock.media.ogg import opus_seconds

#: each is looked at
_SAMPLES_MAX = 2_000_000
_DESCRIBED_RATE_MAX = 65_535
_ES, _DECODER, _SPECIFIC = 3, 4, 5
_MPEG4_AUDIO = 0x40
#: the size of a description before its boxes, by its version
_DESCRIPTION = {0: 28, 1: 44}
_OPUS, _OPUS_BOXES = b"Opus", (b"dOps", b"btrt", b"free")
_BOXES = (b"esds", b"wave", b"chan", b"btrt", b"free")
_WAVE_BOXES = (b"esds", b"frma", b"mp4a", bytes(4))


def audio_seconds(content: Content, tables: Mapping[bytes, Box], samples: Samples, budget: Budget) -> float:
    """Return how long the samples of an audio track play. Each must be one frame of AAC or one packet of Opus."""
    descriptions = list(sample_descriptions(content, tables[b"stsd"], budget))
    require(descriptions, "audio without a description")
    require(not _is_uncompressed(content, tables[b"stts"]), "times as of audio without compression")
    require(samples.count <= _SAMPLES_MAX, "more samples than hours of audio have")
    if all(entry.name == _OPUS for entry in descriptions):
        _check_opus(content, descriptions, budget)
        positions = _positions(content, samples, budget) if samples.count else ()
        return sum(opus_seconds(bytes(content[at : at + 2])) for at in positions)
    kinds = [_read_aac(content, entry, budget) for entry in descriptions]
    require(len({kind.rate_index for kind in kinds}) == 1, "several sampling rates")
    if not samples.count:
        return 0.0
    lowest = Aac(min(kind.rate for kind in kinds), kinds[0].rate_index, min(kind.channels for kind in kinds))
    return frames_seconds(content, _positions(content, samples, budget), samples.sizes(), lowest)


def _is_uncompressed(content: Content, times: Box) -> bool:
    """Whether all samples take one unit of time, so that players suppose other sizes of them than the table has."""
    entries = content[times.start + 4 : times.end]
    return len(entries) == 12 and (entries[:4], entries[8:]) == (b"\0\0\0\1", b"\0\0\0\1")  # noqa: PLR2004


def _check_opus(content: Content, descriptions: Iterable[Box], budget: Budget) -> None:
    """Check that no box of a description could change the codec."""
    for entry in descriptions:
        require(entry.end - entry.start >= _DESCRIPTION[0], "a description that is cut off")
        require(not any(content[entry.start + 8 : entry.start + 10]), "a description of another version")
        inside = boxes(content, entry.start + _DESCRIPTION[0], entry.end, budget)
        require(all(box.name in _OPUS_BOXES for box in inside), "a description with other boxes")


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
    return read_configuration(esds[at : at + size])


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
