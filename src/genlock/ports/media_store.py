"""Where copies of files are kept: results of API clients and the files they sent."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import IO, Protocol

from genlock.domain.stored_file import StoredFile


class MediaStore(Protocol):
    """Files by key. All methods raise MediaStoreError when the store does not answer."""

    async def put(self, file: StoredFile, content: IO[bytes]) -> None:
        """Store the content under the file's key, durably and as a whole. May be repeated."""

    async def size(self, key: str) -> int | None:
        """Return the size of a stored file in bytes; None if there is none."""

    def read(self, key: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """Yield a part of a file in chunks. Raises MediaNotFound before the first chunk."""

    async def days(self) -> Sequence[str]:
        """Return the days on which files were stored, as keys begin with them."""

    async def delete_day(self, day: str) -> int:
        """Delete files that were stored on this day, some thousands at a time. Returns how many were deleted."""

    async def delete_account_files(self, day: str, account_id: int, keep: Callable[[str], bool]) -> int:
        """Delete what an account stored on this day, except files whose name `keep` accepts. Returns how many."""

    async def close(self) -> None: ...
