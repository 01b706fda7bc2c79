"""The media store in a folder, for one machine or a shared disk."""

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from time import time
from typing import IO, ParamSpec, TypeVar

from genlock.domain.errors import MediaNotFound, MediaStoreError
from genlock.domain.stored_file import StoredFile, check_key

P = ParamSpec("P")
T = TypeVar("T")
CHUNK = 262_144
#: a client may read a hundred files at the same time, and each holds some chunks
READ_CHUNK = 65_536
#: an incomplete file that is older was left by a crash
WRITE_SECONDS_MAX = 600.0
_TEMPORARY = ".incomplete-"
#: a folder of another name is the operator's own
_DAY = re.compile(r"\d{8}", re.ASCII)


class FolderMediaStore:
    """One file per key. A file is written beside its place and moved there when it is complete and on the disk."""

    def __init__(self, folder: Path, now: Callable[[], float] = time) -> None:
        self._folder = folder
        self._now = now

    async def put(self, file: StoredFile, content: IO[bytes]) -> None:
        await _in_thread(self._put, self._path(file.key), content)

    def _put(self, path: Path, content: IO[bytes]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            content.seek(0)
            with temporary.open("xb") as copy:
                shutil.copyfileobj(content, copy, CHUNK)
                copy.flush()
                os.fsync(copy.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        for folder in (path.parent, path.parent.parent, self._folder):  # the names in a folder are data of their own
            _sync_folder(folder)

    async def size(self, key: str) -> int | None:
        path = self._path(key)
        try:
            return (await _in_thread(path.stat)).st_size
        except MediaNotFound:
            return None

    async def read(self, key: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        file = await _in_thread(self._path(key).open, "rb")
        try:
            await _in_thread(file.seek, start)
            while length > 0 and (chunk := await _in_thread(file.read, min(READ_CHUNK, length))):
                length -= len(chunk)
                yield chunk
        finally:
            file.close()

    async def days(self) -> Sequence[str]:
        return await _in_thread(self._days)

    def _days(self) -> list[str]:
        if not self._folder.exists():
            return []
        return sorted(
            folder.name for folder in self._folder.iterdir() if folder.is_dir() and _DAY.fullmatch(folder.name)
        )

    async def delete_day(self, day: str) -> int:
        return await _in_thread(self._delete_day, day)

    def _delete_day(self, day: str) -> int:
        folder = self._folder / check_key(f"{day}/a/a")[:8]
        if not folder.exists():
            return 0
        found = sum(path.is_file() for path in folder.rglob("*"))
        shutil.rmtree(folder)
        return found

    async def delete_account_files(self, day: str, account_id: int, keep: Callable[[str], bool]) -> int:
        return await _in_thread(self._delete_account_files, day, account_id, keep)

    def _delete_account_files(self, day: str, account_id: int, keep: Callable[[str], bool]) -> int:
        folder = (self._folder / check_key(f"{day}/{account_id}/a")).parent
        if not folder.exists():
            return 0
        found = [file for file in folder.iterdir() if not keep(file.name) and not self._is_being_written(file)]
        for file in found:
            file.unlink(missing_ok=True)
        return len(found)

    def _is_being_written(self, path: Path) -> bool:
        """Whether a file is incomplete and not the rest of a crash."""
        return path.name.startswith(_TEMPORARY) and path.stat().st_mtime > self._now() - WRITE_SECONDS_MAX

    async def close(self) -> None:
        """Do nothing: no file stays open."""

    def _path(self, key: str) -> Path:
        return self._folder / check_key(key)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread. Raises MediaNotFound and MediaStoreError in place of the system's errors."""
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except FileNotFoundError as error:
        raise MediaNotFound from error
    except OSError as error:
        raise MediaStoreError(f"the media folder cannot be used: {error.strerror}") from error
