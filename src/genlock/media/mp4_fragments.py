"""Read the samples of an MPEG-4 file that was written in fragments, as browsers do: each has tables of its own."""

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from genlock.media.budget import Budget, require
from genlock.media.mapped_file import Content
from genlock.media.mp4 import Box

#: flags of a track in a fragment: what follows them, and what positions are relative to
_HAS_BASE, _HAS_DESCRIPTION, _HAS_DURATION, _HAS_SIZE, _HAS_FLAGS = 0x1, 0x2, 0x8, 0x10, 0x20
_IS_EMPTY, _BASE_IS_FRAGMENT = 0x10000, 0x20000
#: flags of a run of samples: what follows them, and what each of its entries has
_HAS_POSITION, _HAS_FIRST_FLAGS = 0x1, 0x4
_ENTRY_DURATION, _ENTRY_SIZE, _ENTRY_FLAGS, _ENTRY_OFFSET = 0x100, 0x200, 0x400, 0x800
_RUN_FLAGS = 0xF05
#: an entry takes less time than other steps, and an hour of a film has several hundred thousand
_ENTRIES_PER_STEP = 2
_POSITION_MAX = 1 << 62
#: a bit of an entry of an index
_REFERS_TO_INDEX = 1 << 31


class Defaults(NamedTuple):
    """What holds for samples whose run does not say otherwise."""

    duration: int
    size: int


class TrackFragment(NamedTuple):
    """What a fragment has of one track (`traf`)."""

    fragment: Box
    #: whether the fragment begins with it: positions are not relative to those of another track
    is_first: bool
    header: Box
    #: the time of its first sample; None if it follows the samples before
    time: Box | None
    runs: list[Box]

    def check_order(self) -> None:
        """Check that the header and the time come before the samples: players read these with what came before."""
        ends = [self.header.end, *([self.time.end] if self.time else [])]
        require(all(run.start > max(ends) for run in self.runs), "samples before their time")


@dataclass(slots=True)
class FragmentSamples:
    """The samples of a track in all of its fragments; times are in units of the track's time scale."""

    positions: "array[int]" = field(default_factory=lambda: array("Q"))
    sizes: "array[int]" = field(default_factory=lambda: array("I"))
    #: when the first sample is shown; None if there are no samples
    start: int | None = None
    #: when the first fragment begins, if no samples outside of fragments come before
    begin: int = 0
    #: when the last sample ends, or all of them if each is shown after the one before, with the pauses between them
    end: int = 0
    #: the duration of the last sample, and when it ends without its offset
    last: int = 0
    last_end: int = 0
    #: the offset of the first sample
    delay: int = 0


@dataclass(slots=True)
class Fragments:
    """What a file has in fragments; nothing if it was written as a whole."""

    #: where the boxes begin that an index may refer to
    known: set[int]
    #: the length that the header states, in units of the movie's time scale
    stated: int = 0
    #: the boxes with an index for random access
    random_access: list[Box] = field(default_factory=list)
    defaults: dict[int, Defaults] = field(default_factory=dict)
    track_fragments: dict[int, list[TrackFragment]] = field(default_factory=dict)
    #: when each track ends, and the units per second of its times
    ends: dict[int, int] = field(default_factory=dict)
    scales: dict[int, int] = field(default_factory=dict)

    def add_defaults(self, content: Content, box: Box) -> None:
        number = _track_of(content, box)
        require(number not in self.defaults and box.end - box.start == 24, "defaults of another form")  # noqa: PLR2004
        self.defaults[number] = Defaults(*struct.unpack_from(">II", content, box.start + 12))

    def add(self, content: Content, part: TrackFragment) -> None:
        number = _track_of(content, part.header)
        require(number in self.defaults, "a fragment without defaults")
        part.check_order()
        self.track_fragments.setdefault(number, []).append(part)

    def read_samples(self, content: Content, number: int, now: int, scale: int, budget: Budget) -> FragmentSamples:
        """Read the samples of a track, whose samples outside of fragments end at `now`."""
        require(not self.track_fragments or number not in self.ends, "two tracks of one number")
        found = FragmentSamples()
        if number in self.track_fragments:
            found = _read_parts(content, self.track_fragments[number], self.defaults[number], now, budget)
        self.ends[number], self.scales[number] = max(now, found.end), scale
        return found

    def check_indexes(self, content: Content, indexes: Sequence[Box], budget: Budget) -> float:
        """Check that players that follow an index find what is read here, and return when the last index ends."""
        require(self.track_fragments.keys() <= self.ends.keys(), "a fragment of no track")
        parts = (part for parts in self.track_fragments.values() for part in parts)
        require(not indexes or all(part.time for part in parts), "fragments whose times only an index states")
        for box in self.random_access:
            self._check_random_access(content, box, budget)
        return max((self._index_seconds(content, box, budget) for box in indexes), default=0.0)

    def _index_seconds(self, content: Content, box: Box, budget: Budget) -> float:
        """Return when an index of some fragments (`sidx`) ends. Some players take its end as in units of its track."""
        size = box.end - box.start
        require(size >= 24 and content[box.start] < 2, "an index of another version")  # noqa: PLR2004
        form = ">4xIIQQ2xH" if content[box.start] else ">4xIIII2xH"
        require(size >= struct.calcsize(form), "an index that is cut off")
        number, scale, time, position, count = struct.unpack_from(form, content, box.start)
        start = box.start + struct.calcsize(form)
        require(scale and box.end == start + 12 * count, "an index of another length")
        budget.spend(count)
        position += box.end
        for referred, duration, _ in struct.iter_unpack(">III", content[start : box.end]):
            require(referred < _REFERS_TO_INDEX and position in self.known, "an index that refers to other places")
            position, time = position + referred, time + duration
        return float(time / min(scale, self.scales.get(number, scale)))

    def _check_random_access(self, content: Content, box: Box, budget: Budget) -> None:
        """Check that an index (`tfra`) refers to fragments, and to times within their tracks."""
        size = box.end - box.start
        require(size >= 16 and content[box.start] < 2, "an index of another version")  # noqa: PLR2004
        number, lengths, count = struct.unpack_from(">4xIII", content, box.start)
        form = ">QQ" if content[box.start] else ">II"
        width = struct.calcsize(form) + sum((lengths >> shift & 3) + 1 for shift in (4, 2, 0))
        require(number in self.ends and size == 16 + count * width, "an index of another length")
        budget.spend(count)
        for at in range(box.start + 16, box.end, width):
            time, position = struct.unpack_from(form, content, at)
            require(position in self.known and time <= self.ends[number], "an index that refers to other places")


def read_number(content: Content, box: Box) -> int:
    """Return the only number of a box: the time of a part (`tfdt`), or the length of all fragments (`mehd`)."""
    require(box.end - box.start in (8, 12), "a number of another length")
    version = content[box.start]
    require(version < 2 and box.end - box.start == (12 if version else 8), "a number of another version")  # noqa: PLR2004
    number: int = struct.unpack_from(">Q" if version else ">I", content, box.start + 4)[0]
    return number


def _track_of(content: Content, header: Box) -> int:
    """Return the number of the track that defaults or a part of a fragment belong to."""
    require(header.end - header.start >= 8, "a header that is cut off")  # noqa: PLR2004
    number: int = struct.unpack_from(">I", content, header.start + 4)[0]
    return number


def _read_parts(
    content: Content, parts: Iterable[TrackFragment], defaults: Defaults, now: int, budget: Budget
) -> FragmentSamples:
    """Read the samples of a track."""
    found, played = FragmentSamples(), now
    for part in parts:
        base, own = _read_header(content, part, defaults)
        if part.time is not None:
            time = read_number(content, part.time)
            if not played:
                found.begin = time
            played, now = played + max(0, time - now), time
        for run in part.runs:
            for position, size, duration, offset in _read_run(content, run, base, own, budget):
                found.positions.append(position)
                found.sizes.append(size)
                if found.start is None:
                    found.start, found.delay = now + offset, max(0, offset)
                found.start = min(found.start, now + offset)
                now, played = now + duration, played + duration
                found.end, found.last = max(found.end, now, now + offset, played), duration
                found.last_end = now
    return found


def _read_header(content: Content, part: TrackFragment, defaults: Defaults) -> tuple[int, Defaults]:
    """Return what the positions of samples are relative to, and the defaults."""
    box = part.header
    [flags] = struct.unpack_from(">I", content, box.start)
    flags &= 0xFFFFFF
    require(not flags & _IS_EMPTY, "a pause instead of samples")
    at = box.start + 8
    base = part.fragment.start - 8
    form = {_HAS_BASE: "Q", _HAS_DESCRIPTION: "I", _HAS_DURATION: "I", _HAS_SIZE: "I", _HAS_FLAGS: "I"}
    present = [flag for flag in form if flags & flag]
    fields = ">" + "".join(form[flag] for flag in present)
    require(box.end == at + struct.calcsize(fields), "a header of another length")
    values = dict(zip(present, struct.unpack_from(fields, content, at), strict=True))
    require(part.is_first or flags & (_HAS_BASE | _BASE_IS_FRAGMENT), "positions relative to those of another track")
    base = values.get(_HAS_BASE, base)
    return base, Defaults(values.get(_HAS_DURATION, defaults.duration), values.get(_HAS_SIZE, defaults.size))


def _read_run(
    content: Content, box: Box, base: int, defaults: Defaults, budget: Budget
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the position, the size, the duration and the delay of each sample."""
    require(box.end - box.start >= 12, "a run that is cut off")  # noqa: PLR2004
    flags, count, position = struct.unpack_from(">IIi", content, box.start)
    flags &= 0xFFFFFF
    require(flags & _HAS_POSITION and not flags & ~_RUN_FLAGS, "a run of another form")
    at = box.start + (16 if flags & _HAS_FIRST_FLAGS else 12)
    present = [flag for flag in (_ENTRY_DURATION, _ENTRY_SIZE, _ENTRY_FLAGS, _ENTRY_OFFSET) if flags & flag]
    form = ">" + "".join("i" if flag == _ENTRY_OFFSET else "I" for flag in present)
    require(box.end == at + count * struct.calcsize(form), "a run of another length")
    budget.spend(1 + count // _ENTRIES_PER_STEP)
    position += base
    entries = struct.iter_unpack(form, content[at : box.end]) if present else repeat((), count)
    for entry in entries:
        values = dict(zip(present, entry, strict=True))
        size = values.get(_ENTRY_SIZE, defaults.size)
        require(0 <= position <= _POSITION_MAX, "a sample that is not in the file")
        yield position, size, values.get(_ENTRY_DURATION, defaults.duration), values.get(_ENTRY_OFFSET, 0)
        position += size
