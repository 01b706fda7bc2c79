"""One range of bytes of a file, as RFC 9110 defines it."""

import re
from collections.abc import Mapping

from genlock.domain.value import value

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class RangeNotSatisfiable(Exception):
    """The range begins after the end of the content."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the content has {size} bytes")
        self.headers = {"Content-Range": f"bytes */{size}"}


@value
class ByteRange:
    start: int
    length: int
    #: of the whole content
    size: int
    #: the status is 206 if a range was asked for, also if it contains everything
    is_partial: bool

    @property
    def status(self) -> int:
        return 206 if self.is_partial else 200

    @property
    def headers(self) -> dict[str, str]:
        found = {"Accept-Ranges": "bytes", "Content-Length": str(self.length)}
        if self.is_partial:
            found["Content-Range"] = f"bytes {self.start}-{self.start + self.length - 1}/{self.size}"
        return found


def read_range(headers: Mapping[str, str], size: int, etag: str = "") -> ByteRange:
    """Return the part of the content that a request asks for. Raises RangeNotSatisfiable.

    A range that cannot be read as one, or that is meant for another version of the content, is ignored.
    """
    whole = ByteRange(start=0, length=size, size=size, is_partial=False)
    found = _RANGE.fullmatch(headers.get("range", "").strip())
    only_if = headers.get("if-range", f'"{etag}"')
    if found is None or found.groups() == ("", "") or only_if != f'"{etag}"':
        return whole
    first, last = found.groups()
    if first and last and int(last) < int(first):
        return whole
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if start >= size or (not first and int(last) == 0):
        raise RangeNotSatisfiable(size)
    return ByteRange(start=start, length=end - start + 1, size=size, is_partial=True)
