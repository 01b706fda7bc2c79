"""A result on its way to the disk."""

import hashlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from genlock.client.errors import DamagedDownload, api_error
from genlock.client.protocol import Received
from genlock.client.types import Result

_ERROR, _PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 400, 206, 416


class Download:
    """A file that gets its name when it is whole. After a cut connection the next answer continues it."""

    def __init__(self, result: Result, path: str | PathLike[str]) -> None:
        self._result = result
        self._target = Path(path)
        self._partial = self._target.with_name(f"{self._target.name}.part")
        self._partial.unlink(missing_ok=True)
        #: without the host: the key goes only to the address that it was made for
        self.path = urlsplit(result.url).path

    def headers(self) -> dict[str, str]:
        """Return the headers that ask for what is missing, byte for byte."""
        size = self._size()
        return {"Accept-Encoding": "identity", **({"Range": f"bytes={size}-"} if size else {})}

    def begin(self, status: int, headers: Mapping[str, str], content: bytes) -> IO[bytes]:
        """Open the file where the content of an answer belongs; `content` is that of an error. Raises ApiError."""
        size = self._size()
        is_whole = status == _RANGE_NOT_SATISFIABLE and size > 0
        if status >= _ERROR and not is_whole:
            raise api_error(status, Received(status=status, headers=headers, content=content).json(), None)
        file = self._partial.open("ab")
        if not is_whole and status != _PARTIAL_CONTENT:
            file.truncate(0)
        return file

    def finish(self) -> Path:
        """Give the file its name. Raises DamagedDownload if it is not the result."""
        with self._partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if self._result.sha256 not in (None, digest):
            self._partial.unlink()
            raise DamagedDownload(f"the content of result {self._result.index} is not the one that the job has")
        return self._partial.replace(self._target)

    def _size(self) -> int:
        return self._partial.stat().st_size if self._partial.exists() else 0
