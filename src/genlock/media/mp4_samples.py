"""Read the sample tables of a track: how many samples there are, when they are shown, how long audio decodes to."""

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from genlock.media.budget import Budget, NotMeasured, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import Box

_ENTRY = 8
#: each sample of these is one picture
_VIDEO_CODECS = (
    b"avc1", b"avc3", b"hvc1", b"hev1", b"av01", b"vp08", b"vp09", b"jpeg",
    b"apch", b"apcn", b"apcs", b"apco", b"ap4h", b"ap4x",
)  # fmt: skip
_AAC = b"mp4a"
_AAC_FRAME = 1024
_AAC_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
#: AAC-LC, and the two extensions of it that play as long
_AAC_TYPES = (2, 5, 29)
_ES, _DECODER, _SPECIFIC = 3, 4, 5
_MPEG4_AUDIO = 0x40


class Span(NamedTuple):
    """The samples of a track, and when the first is shown and the last ends, in units of the track's time scale."""

    samples: int
    start: int
    end: int


def presented(content: Content, tables: Mapping[bytes, Box], budget: Budget) -> Span:
    """Return when the samples of a track are shown. All tables must hold the same number of samples."""
    times = list(_pairs(content, tables[b"stts"], ">II", budget))
    samples = sum(count for count, _ in times)
    require(samples == _stated_samples(content, tables[b"stsz"]), "tables of different lengths")
    require(samples == _samples_in_chunks(content, tables, budget), "chunks of other samples than stated")
    if b"ctts" not in tables:
        return Span(samples, 0, sum(count * length for count, length in times))
    offsets = list(_pairs(content, tables[b"ctts"], ">Ii", budget))
    require(samples == sum(count for count, _ in offsets), "offsets of other samples than stated")
    return Span(samples, *_shown(times, offsets, budget))


def _shown(times: list[tuple[int, int]], offsets: list[tuple[int, int]], budget: Budget) -> tuple[int, int]:
    """Return the earliest start and the latest end of all samples, run by run of equal durations and offsets."""
    first: int | None = None
    last = now = 0
    moved = iter(offsets)
    left, offset = 0, 0
    for run, length in times:
        remaining = run
        while remaining:
            budget.spend()
            while not left:
                left, offset = next(moved)
            count = min(left, remaining)
            first = now + offset if first is None else min(first, now + offset)
            now += count * length
            last = max(last, now + offset)
            left, remaining = left - count, remaining - count
    return first or 0, max(last, now)


def _pairs(content: Content, box: Box, form: str, budget: Budget) -> Iterator[tuple[int, int]]:
    count = _count(content, box, 4)
    require(box.end - box.start == 8 + count * _ENTRY, "a table of another length")
    budget.spend(count)
    return struct.iter_unpack(form, content[box.start + 8 : box.end])


def _count(content: Content, box: Box, offset: int) -> int:
    """Return the number of entries of a table of version 0 or 1."""
    require(box.end - box.start >= offset + 4 and content[box.start] < 2, "a table of another version")  # noqa: PLR2004
    count: int = struct.unpack_from(">I", content, box.start + offset)[0]
    return count


def _stated_samples(content: Content, sizes: Box) -> int:
    count = _count(content, sizes, 8)
    [same] = struct.unpack_from(">I", content, sizes.start + 4)
    require(sizes.end - sizes.start == 12 + (0 if same else 4 * count), "a table of another length")
    return count


def _samples_in_chunks(content: Content, tables: Mapping[bytes, Box], budget: Budget) -> int:
    require((b"stco" in tables) != (b"co64" in tables), "no table of chunks, or two")
    box, width = (tables[b"stco"], 4) if b"stco" in tables else (tables[b"co64"], 8)
    chunks = _count(content, box, 4)
    require(box.end - box.start == 8 + chunks * width, "a table of another length")
    runs = tables[b"stsc"]
    count = _count(content, runs, 4)
    require(runs.end - runs.start == 8 + count * 12, "a table of another length")
    budget.spend(count)
    samples, following = 0, chunks + 1
    entries = list(struct.iter_unpack(">III", content[runs.start + 8 : runs.end]))
    for first, per_chunk, _ in reversed(entries):
        require(0 < first <= following, "chunks that are not in order")
        samples, following = samples + (following - first) * per_chunk, first
    require(not chunks or following == 1, "chunks without samples")
    return samples


def audio_seconds(content: Content, box: Box, kind: bytes, samples: int, budget: Budget) -> float:
    """Return how long the samples of an audio track play, whatever their times; 0 for other tracks."""
    count = _count(content, box, 4)
    longest, start = 0.0, box.start + 8
    for _ in range(count):
        budget.spend()
        require(start + 8 <= box.end, "fewer sample descriptions than stated")
        size, codec = struct.unpack_from(">I4s", content, start)
        require(8 <= size <= box.end - start, "a sample description of another length")  # noqa: PLR2004
        if kind == b"soun":
            require(codec == _AAC, f"audio as {codec!r}")
            rate = _aac_rate(content[start : start + size])
            longest = max(longest, samples * _AAC_FRAME / rate)
        require(kind != b"vide" or codec in _VIDEO_CODECS, f"video as {codec!r}")
        start += size
    return longest


def _aac_rate(entry: bytes) -> int:
    """Return the sampling rate of AAC by its own configuration in `esds`."""
    require(entry.count(b"esds") == 1, "no AAC configuration, or two")
    at = entry.index(b"esds") + 8
    at, _ = _descriptor(entry, at, _ES)
    require(at + 3 <= len(entry) and not entry[at + 2] & 0xE0, "a description of another form")
    at, _ = _descriptor(entry, at + 3, _DECODER)
    require(at + 13 <= len(entry) and entry[at] == _MPEG4_AUDIO, "audio that is not AAC")
    at, size = _descriptor(entry, at + 13, _SPECIFIC)
    bits, length = int.from_bytes(entry[at : at + size]), size * 8
    require(length >= 16 and bits >> (length - 5) in _AAC_TYPES, "AAC of another type")  # noqa: PLR2004
    rate = bits >> (length - 9) & 15
    if rate >= len(_AAC_RATES):
        raise NotMeasured("a sampling rate of another form")
    return _AAC_RATES[rate]


def _descriptor(entry: bytes, at: int, tag: int) -> tuple[int, int]:
    """Return where the content of an MPEG-4 descriptor begins, and its length."""
    require(at < len(entry) and entry[at] == tag, "a description of another form")
    size = 0
    for _ in range(4):
        at += 1
        require(at < len(entry), "a description that is cut off")
        size = size << 7 | entry[at] & 127
        if entry[at] < 128:  # noqa: PLR2004 - the last byte of a length
            break
    require(at + 1 + size <= len(entry), "a description that is cut off")
    return at + 1, size
