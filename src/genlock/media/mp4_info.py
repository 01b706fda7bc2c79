"""How large and how long an MPEG-4 film is, read from its index. Telegram shows an upload as it is told."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

#: an index larger than this is not read
INDEX_BYTES_MAX = 8 * 1024 * 1024
BOXES_MAX = 10_000
_HEADER = struct.Struct(">I4s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Film:
    width: int
    height: int
    seconds: int


def measure(file: IO[bytes]) -> Film | None:
    """The film's measures, or None where its index does not tell. Leaves the file at its beginning."""
    try:
        index = _index(file)
        return _measure(index) if index else None
    except (struct.error, ValueError, IndexError):
        return None
    finally:
        file.seek(0)


def _index(file: IO[bytes]) -> bytes | None:
    """The content of the box `moov`, which may stand before or behind the pictures."""
    place = 0
    for _ in range(BOXES_MAX):
        file.seek(place)
        header = file.read(16)
        if len(header) < _HEADER.size:
            return None
        size, name = _HEADER.unpack_from(header)
        start = _HEADER.size
        if size == 1:
            [size] = struct.unpack_from(">Q", header, start)
            start += 8
        if name == b"moov":
            file.seek(place + start)
            return file.read(size - start) if start < size <= INDEX_BYTES_MAX else None
        if size < start:
            return None
        place += size
    return None


def _measure(index: bytes) -> Film | None:
    boxes = list(_boxes(index))
    seconds = max((_seconds(body) for name, body in boxes if name == b"mvhd"), default=0.0)
    tracks = [body for name, track in boxes if name == b"trak" for inner, body in _boxes(track) if inner == b"tkhd"]
    for body in tracks:
        width, height = (side >> 16 for side in struct.unpack(">II", body[-8:]))
        if width and height:
            return Film(width=width, height=height, seconds=round(seconds))
    return None


def _boxes(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    while place + _HEADER.size <= len(content):
        size, name = _HEADER.unpack_from(content, place)
        if size < _HEADER.size:
            return
        yield name, content[place + _HEADER.size : place + size]
        place += size


def _seconds(mvhd: bytes) -> float:
    form = ">IQ" if mvhd[0] == 1 else ">II"
    scale, length = struct.unpack_from(form, mvhd, 20 if mvhd[0] == 1 else 12)
    return float(length / scale) if scale else 0.0
