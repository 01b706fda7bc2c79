"""A table of chunks counts only in a form that players do not correct: corrected, it names other samples."""

import struct

import pytest

from genlock.media.duration import duration
from tests.media.boxes import TABLES, box, edit, split
from tests.media.forgeries import frames_of, played_seconds, short_headers
from tests.media.samples import encode_audio

#: bytes of a long sample, and the number of such samples, which come first
LONG, COUNT = 1000, 40

Entry = tuple[int, int, int]


def audio_with(entries: list[Entry], *, chunks: int) -> bytes:
    """Return audio whose first samples are one frame and zeros, and whose others are one frame.

    The first chunk has the first samples. Each of the others begins with one frame of a thousand bytes of frames.
    """
    content = encode_audio("ipod", "aac", "fltp")
    boxes = dict(split(content))
    frame = frames_of(content)[10]
    head = box(b"ftyp", boxes[b"ftyp"])
    many = (frame * (LONG // len(frame))).ljust(LONG, b"\0")
    data = frame.ljust(LONG, b"\0") * COUNT + many * (chunks - 1)
    sizes = [LONG] * COUNT + [len(frame)] * (chunks - 1)
    first = len(head) + 8
    places = [first, *(first + LONG * (COUNT + number) for number in range(chunks - 1))]
    tables = {
        b"stts": struct.pack(">IIII", 0, 1, len(sizes), 1024),
        b"stsz": struct.pack(f">III{len(sizes)}I", 0, 0, len(sizes), *sizes),
        b"stsc": struct.pack(">II", 0, len(entries)) + b"".join(struct.pack(">III", *entry) for entry in entries),
        b"stco": struct.pack(f">II{chunks}I", 0, chunks, *places),
    }
    ignored = (b"sgpd", b"sbgp")

    def change(old: bytes) -> bytes:
        return b"".join(box(name, tables.get(name, body)) for name, body in split(old) if name not in ignored)

    return head + box(b"mdat", data) + box(b"moov", short_headers(edit(boxes[b"moov"], TABLES, change)))


def test_a_table_of_chunks_in_order_is_read() -> None:
    content = audio_with([(1, COUNT, 1), (2, 1, 1)], chunks=COUNT)
    assert duration(content) == pytest.approx(1.685, abs=0.01)
    assert played_seconds(content) < 1.685


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([(1, COUNT, 0), (2, 1, 1)], id="no description"),
        pytest.param([(1, COUNT, 1), (1, 0, 1), (2, 1, 1)], id="no samples"),
        pytest.param([(1, COUNT, 1), (2, 0, 1), (2, 1, 1)], id="twice the same chunk"),
    ],
)
def test_a_table_of_chunks_that_players_correct_is_not_measured(entries: list[Entry]) -> None:
    content = audio_with(entries, chunks=COUNT)
    assert duration(content) is None


def test_players_find_more_frames_by_a_corrected_table() -> None:
    """The first entry has no description, so players replace it by the second: each chunk has one sample."""
    assert played_seconds(audio_with([(1, COUNT, 0), (2, 1, 1)], chunks=COUNT)) > 100
