"""Make, split and change the boxes of an MPEG-4 file."""

import struct
from collections.abc import Callable

#: where in an index the tables of samples are
TABLES = (b"trak", b"mdia", b"minf", b"stbl")


def box(name: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", 8 + len(body), name) + body


def nested(*names_and_content: bytes) -> bytes:
    """Return content in a box, that in another, and so on; the outermost name comes first."""
    *names, content = names_and_content
    for name in reversed(names):
        content = box(name, content)
    return content


def split(content: bytes) -> list[tuple[bytes, bytes]]:
    found, position = [], 0
    while position < len(content):
        size, name = struct.unpack_from(">I4s", content, position)
        found.append((name, content[position + 8 : position + size]))
        position += size
    return found


def edit(content: bytes, path: tuple[bytes, ...], change: Callable[[bytes], bytes]) -> bytes:
    """Change the content of all boxes at a path."""
    if not path:
        return change(content)
    return b"".join(
        box(name, edit(body, path[1:], change) if name == path[0] else body) for name, body in split(content)
    )
