"""Read the sample tables of a track: how many samples there are, when they are shown, and where they are."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import Box
from genlock.media.mp4_fragments import FragmentSamples

_ENTRY = 8


class Span(NamedTuple):
    """The samples of a track, and when the first is shown and the last ends, in units of the track's time scale."""

    samples: int
    start: int
    end: int
    #: the duration of the last sample
    last: int = 0
    #: the offset of the first sample: players that add up the durations begin with it
    delay: int = 0


def presented(content: Content, tables: Mapping[bytes, Box], budget: Budget) -> Span:
    """Return when the samples of a track are shown. All tables must hold the same number of samples."""
    times = list(_pairs(content, tables[b"stts"], ">II", budget))
    samples = sum(count for count, _ in times)
    require(samples == _stated_samples(content, tables[b"stsz"]), "tables of different lengths")
    require(samples == _samples_in_chunks(content, tables, budget), "chunks of other samples than stated")
    last = next((length for count, length in reversed(times) if count), 0)
    if b"ctts" not in tables:
        return Span(samples, 0, sum(count * length for count, length in times), last)
    offsets = list(_pairs(content, tables[b"ctts"], ">Ii", budget))
    require(samples == sum(count for count, _ in offsets), "offsets of other samples than stated")
    return _shown(times, offsets, budget)._replace(last=last)


def with_fragments(span: Span, more: FragmentSamples) -> Span:
    """Return when the samples of a track are shown together with those in fragments."""
    if more.start is None:
        return span
    start, delay = (min(span.start, more.start), span.delay) if span.samples else (more.start, more.delay)
    end = max(span.end, more.end, more.last_end + delay)
    return Span(span.samples + len(more.sizes), start, end, more.last, delay)


def _shown(times: list[tuple[int, int]], offsets: list[tuple[int, int]], budget: Budget) -> Span:
    """Return the earliest start and the latest end of all samples, run by run of equal durations and offsets."""
    first: int | None = None
    delay = samples = last = now = 0
    moved = iter(offsets)
    left, offset = 0, 0
    for run, length in times:
        remaining = run
        while remaining:
            budget.spend()
            while not left:
                left, offset = next(moved)
            count = min(left, remaining)
            if first is None:
                first, delay = offset, max(0, offset)
            first = min(first, now + offset)
            now, samples = now + count * length, samples + count
            last = max(last, now + offset)
            left, remaining = left - count, remaining - count
    return Span(samples, first or 0, max(last, now + delay), delay=delay)


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


class Samples:
    """The samples of a track: those in its tables, and then those in fragments."""

    def __init__(self, content: Content, tables: Mapping[bytes, Box], count: int, more: FragmentSamples) -> None:
        self._content, self._tables, self._more = content, tables, more
        self.count = count + len(more.sizes)

    def sizes(self) -> Sequence[int]:
        """Return the size of each sample. The caller has limited their number."""
        return [*sample_sizes(self._content, self._tables[b"stsz"]), *self._more.sizes]

    def positions(self, budget: Budget) -> Iterator[int]:
        """Yield where in the file each sample begins. The caller has limited their number."""
        yield from sample_positions(self._content, self._tables, budget)
        yield from self._more.positions


def sample_sizes(content: Content, sizes: Box) -> Sequence[int]:
    """Return the size of each sample. The caller has limited their number."""
    count = _stated_samples(content, sizes)
    [same] = struct.unpack_from(">I", content, sizes.start + 4)
    return list(repeat(same, count)) if same else struct.unpack_from(f">{count}I", content, sizes.start + 12)


def sample_positions(content: Content, tables: Mapping[bytes, Box], budget: Budget) -> Iterator[int]:
    """Yield where in the file each sample begins. The caller has limited their number."""
    sizes = sample_sizes(content, tables[b"stsz"])
    start, form, chunks = _chunk_table(content, tables)
    budget.spend(chunks)
    offsets = struct.unpack_from(f">{chunks}{form}", content, start)
    done = 0
    for first, last, per_chunk in _chunk_runs(content, tables[b"stsc"], chunks, budget):
        for offset in offsets[first - 1 : last - 1]:
            if per_chunk:
                yield from accumulate(sizes[done : done + per_chunk - 1], initial=offset)
            done += per_chunk


def _samples_in_chunks(content: Content, tables: Mapping[bytes, Box], budget: Budget) -> int:
    _, _, chunks = _chunk_table(content, tables)
    runs = _chunk_runs(content, tables[b"stsc"], chunks, budget)
    return sum((last - first) * per_chunk for first, last, per_chunk in runs)


def _chunk_table(content: Content, tables: Mapping[bytes, Box]) -> tuple[int, str, int]:
    """Return where the positions of the chunks begin, their form, and how many there are."""
    require((b"stco" in tables) != (b"co64" in tables), "no table of chunks, or two")
    box, form, width = (tables[b"stco"], "I", 4) if b"stco" in tables else (tables[b"co64"], "Q", 8)
    chunks = _count(content, box, 4)
    require(box.end - box.start == 8 + chunks * width, "a table of another length")
    return box.start + 8, form, chunks


def _chunk_runs(content: Content, box: Box, chunks: int, budget: Budget) -> list[tuple[int, int, int]]:
    """Return runs of chunks: the number of the first, of the one after the last, and the samples in each of them."""
    count = _count(content, box, 4)
    require(box.end - box.start == 8 + count * 12, "a table of another length")
    budget.spend(count)
    runs, following = [], chunks + 1
    entries = list(struct.iter_unpack(">III", content[box.start + 8 : box.end]))
    for number, (first, per_chunk, description) in reversed(list(enumerate(entries, 1))):
        is_last = number == count
        require(number <= first < following + is_last, "chunks that are not in order")
        # Players replace an entry without samples or without a description by the next one.
        require(per_chunk and description, "chunks without samples")
        runs.append((first, following, per_chunk))
        following = first
    require(not chunks or following == 1, "chunks without samples")
    return runs[::-1]


def sample_descriptions(content: Content, box: Box, budget: Budget) -> Iterator[Box]:
    """Yield the description of each type of sample of a track; its name is that of the codec."""
    start = box.start + 8
    for _ in range(_count(content, box, 4)):
        budget.spend()
        require(start + 8 <= box.end, "fewer sample descriptions than stated")
        size, codec = struct.unpack_from(">I4s", content, start)
        require(8 <= size <= box.end - start, "a sample description of another length")  # noqa: PLR2004
        yield Box(codec, start + 8, start + size)
        start += size
