"""Films in fragments that state a short length, or hide fragments, while players play longer."""

import struct
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count

from tests.media.boxes import box, edit, split
from tests.media.samples import encode_video

Change = Callable[[bytes], bytes]
_TRACK = (b"moof", b"traf")


@cache
def film() -> bytes:
    """Return a film of twelve seconds in fragments, of which each says where its samples are."""
    return encode_video("mp4", "libx264", fragments=True)


def without_index(content: bytes) -> bytes:
    return b"".join(box(name, body) for name, body in split(content) if name != b"mfra")


def with_times(content: bytes, time_of: Callable[[int], int]) -> bytes:
    """Return the film with other times of its fragments."""
    numbers = count()
    return edit(
        content, (*_TRACK, b"tfdt"), lambda body: body[:4] + struct.pack(">Q", time_of(next(numbers)))[: len(body) - 4]
    )


def with_duration(content: bytes, duration: int) -> bytes:
    """Return the film with another duration of its samples, and with times that agree."""
    changed = edit(content, (*_TRACK, b"tfhd"), lambda body: body[:8] + struct.pack(">I", duration) + body[12:])
    return without_index(with_times(changed, lambda number: 8 * duration * number))


def hidden(content: bytes, place: bytes) -> tuple[bytes, int]:
    """Return the film with all fragments but the first in another box at the end, and where they begin."""
    boxes = split(without_index(content))
    first = next(at for at, (name, _) in enumerate(boxes) if name == b"moof")
    head = b"".join(box(name, body) for name, body in boxes[: first + 2])
    rest = b"".join(box(name, body) for name, body in boxes[first + 2 :])
    return head + box(place, rest), len(head) + 8


def index_of(*fragments: int, time: int = 0) -> bytes:
    """Return an index for the end of the film that refers to positions, each later by a time than the one before."""
    entries = b"".join(struct.pack(">II", number * time, at) + b"\1\1\1" for number, at in enumerate(fragments))
    return box(b"mfra", box(b"tfra", struct.pack(">IIII", 0, 1, 0, len(fragments)), entries), box(b"mfro", bytes(8)))


def index_before(duration: int, size: int = 100, first: int = 0, scale: int = 1000, time: int = 0) -> bytes:
    """Return an index for the place before the first fragment."""
    return box(b"sidx", struct.pack(">IIIIIHHIII", 0, 1, scale, time, first, 0, 1, size, duration, 0))


def without_times(content: bytes) -> bytes:
    """Return a film whose fragments do not state when they begin."""

    def change(part: bytes) -> bytes:
        inside = [(name, body) for name, body in split(part) if name != b"tfdt"]
        removed = len(part) - sum(8 + len(body) for _, body in inside)
        return b"".join(box(name, _moved(body, removed) if name == b"trun" else body) for name, body in inside)

    return edit(without_index(content), _TRACK, change)


def _moved(run: bytes, by: int) -> bytes:
    """Return a run of samples that lie less far behind the beginning of the fragment."""
    [position] = struct.unpack_from(">i", run, 8)
    return run[:8] + struct.pack(">i", position - by) + run[12:]


def forged_fragments() -> Iterator[tuple[str, bytes]]:
    whole = film()
    yield "fragments with samples that are short", with_duration(whole, 1)
    yield "fragments with samples without a duration", with_duration(whole, 0)
    yield "fragments that begin late", without_index(with_times(whole, lambda number: 10_240 * (number + 100)))
    yield "fragments that all begin at zero", without_index(with_times(whole, lambda _: 0))
    yield "fragments that go back and forth", without_index(with_times(whole, lambda number: number % 2 * 81_920))
    yield "fragments in free space", hidden(with_duration(whole, 100), b"free")[0]
    at_end, start = hidden(whole, b"mdat")
    yield "fragments in media data", at_end + index_of(start)
    first = whole.index(b"moof") - 4
    yield "an index of a fragment that is late", without_index(whole) + index_of(first, first, time=1 << 20)
    yield "an index that states more", whole[:first] + index_before(90_000) + whole[first:]
    bare, late = without_times(whole), index_before(0, time=60_000)
    yield (
        "an index that states when the only fragments begin",
        bare[:first] + late + bare[first:],
    )
    gap = start - first
    yield "an index of media data", at_end[:first] + index_before(12_000, first=gap) + at_end[first:]
    longer = edit(
        without_index(whole), (b"moov", b"mvex"), lambda body: box(b"mehd", struct.pack(">II", 0, 90_000)) + body
    )
    yield "a header that states more", longer
