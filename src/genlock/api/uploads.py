"""Stores files that clients send: a copy in the media store, and one where the providers can read it."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Self

from genlock.api.operation import Call
from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, Problem, invalid, too_many, unauthorized, unavailable
from genlock.api.types import FileAnswer
from genlock.domain.errors import ChannelBusy, ProviderError
from genlock.domain.media_format import Format, MediaType
from genlock.domain.stored_file import StoredFile, make_key
from genlock.domain.upload import Upload, UploadCopy
from genlock.engine.file_storage import ReadContent, SourceFailed
from genlock.media.budget import TooComplex
from genlock.media.content_types import content_type_of
from genlock.media.download import HEAD_BYTES
from genlock.media.hashing import hash_file
from genlock.media.sniff import NotMedia, recognise
from genlock.ports import MediaStore

ID_PREFIX = "file_"
CHUNK = 65_536
HOUR = 3600.0
DAY = 86_400.0
MEGABYTE = 1_000_000
#: files that this instance receives at the same time, all and of one account
FILES_AT_ONCE = 8
FILES_PER_ACCOUNT = 2
#: a file that takes longer to arrive gives its place to another if all are taken; 20 MB take this long at 8 Mbit/s
SLOW_SECONDS = 20.0


class Arrival:
    """A file that is arriving. Meanwhile its place may be given to another file; then the block raises Problem 408."""

    def __init__(self) -> None:
        self._since = asyncio.get_running_loop().time()
        self._limit = asyncio.timeout(None)
        self._is_over = False

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            detail = "the file arrived too slowly while other files waited for a place; send it again"
            headers = {"Connection": "close"}
            raise Problem(status=408, code="body_timeout", detail=detail, headers=headers) from None

    @property
    def is_slow(self) -> bool:
        return not self._is_over and asyncio.get_running_loop().time() - self._since > SLOW_SECONDS

    def give_way(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time())


class Uploads:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        #: the accounts of the files that are being received or passed on, the oldest first
        self._receiving: dict[Arrival, int] = {}

    @contextmanager
    def receiving(self, account_id: int, arrival: Arrival) -> Iterator[IO[bytes]]:
        """Yield a file on disk while it is received and passed on. Raises Problem.

        One account can take only some of the places. If several accounts take all, a slow file gives way to a new one.
        """
        if list(self._receiving.values()).count(account_id) >= FILES_PER_ACCOUNT:
            raise too_many(
                "too_many_files",
                f"{FILES_PER_ACCOUNT} files of this account are being sent; wait until one has arrived",
                1.0,
            )
        if len(self._receiving) >= FILES_AT_ONCE:
            slow = next((other for other in self._receiving if other.is_slow), None)
            if slow is None:
                raise unavailable("too many files are being sent at the moment; send this one again")
            slow.give_way()
            del self._receiving[slow]
        self._receiving[arrival] = account_id
        try:
            with TemporaryFile() as file:
                yield file
        finally:
            self._receiving.pop(arrival, None)

    async def check_quota(self, call: Call) -> None:
        """Take one of the account's permits for files. Raises Problem 429."""
        per_hour = self._parts.rules.uploads_per_hour
        pause = HOUR / per_hour
        key = f"upload:{call.account_id}"  # the same permits as in the chat
        [wait] = await self._parts.store.take_permits([key], pause, 1, -(per_hour - 1) * pause)
        if wait > 0:
            raise too_many("too_many_files", f"an account may send {per_hour} files per hour", wait)

    async def _check_bytes(self, account_id: int, size: int) -> None:
        """Count the file's megabytes: copies are kept for weeks, and must not fill the disk of the operator."""
        per_day = self._parts.rules.upload_megabytes_per_day
        wanted, pause = ceil(size / MEGABYTE), DAY / per_day
        # Taken ahead of time, up to a day's permits: a limit that lies in the past may be pruned.
        taken = await self._parts.store.reserve_permits(
            f"upload-mb:{account_id}", wanted, pause, 1, (per_day - 1) * pause
        )
        if len(taken) < wanted:
            wait = (wanted - len(taken)) * pause
            raise too_many("too_many_files", f"an account may send {per_day} megabytes of files per day", wait)

    async def store(self, call: Call, file: IO[bytes], size: int) -> FileAnswer:
        parts = self._parts
        found, kind = _recognise(file)
        await self._check_bytes(call.account_id, size)
        seconds = await self._measure(file) if kind is not MediaType.IMAGE else None
        name, now = secrets.token_hex(12), parts.now()
        stored = StoredFile(
            key=make_key(now, call.account_id, f"{name}{found.suffix}"),
            content_type=content_type_of(found),
            size=size,
            sha256=await asyncio.to_thread(hash_file, file),
        )
        await parts.media.put(stored, file)
        copy = await to_provider(parts, lambda: _read(file), f"{name}{found.suffix}")
        await self._check_not_revoked(call, stored)
        file_id = f"{ID_PREFIX}{secrets.token_urlsafe(18)}"
        await parts.store.add_upload(
            Upload(
                key=file_id,
                account_id=call.account_id,
                file=f"{copy.url} {stored}",
                kind=kind.value,
                seconds=seconds,
                age_seconds=0.0,
            )
        )
        await parts.store.save_upload_copy(replace(copy, key=file_id))
        return FileAnswer(
            id=file_id,
            kind=kind.value,
            content_type=stored.content_type,
            bytes=size,
            seconds=seconds,
            created_at=now,
            expires_at=stored.expires_at(parts.rules.keep_media_days),
        )

    async def _check_not_revoked(self, call: Call, stored: StoredFile) -> None:
        """Delete the file again if the key ended while it was sent: an erasure may have looked before it was there."""
        key = await self._parts.store.api_key(call.key.id)
        if key is not None and key.revoked_at is None:
            return
        day, _, name = stored.key.split("/")
        await self._parts.media.delete_account_files(day, call.account_id, lambda other: other != name)
        raise unauthorized("this API key was revoked while the file was sent; the file was deleted")

    async def _measure(self, file: IO[bytes]) -> float | None:
        try:
            return await self._parts.reader.measure(file)
        except TooComplex:
            raise _not_usable("cannot be read: it has too many parts") from None
        except ChannelBusy:
            raise unavailable("the service is stopping; send the file again") from None


async def to_provider(parts: ApiParts, read: ReadContent, name: str) -> UploadCopy:
    """Store a file at a provider. Raises Problem 503, and what `read` raises."""
    try:
        return await parts.storage.store(read, name)
    except SourceFailed as failed:
        raise failed.__cause__ or failed from None
    except ProviderError:
        raise unavailable("the file could not be passed on to the provider; send it again") from None


async def read_upload(media: MediaStore, upload: Upload) -> AsyncIterator[bytes]:
    """Yield the content of a file that a client sent, from our copy. Raises MediaStoreError."""
    stored = StoredFile.parse(upload.file.partition(" ")[2])
    async for chunk in media.read(stored.key, 0, stored.size):
        yield chunk


def _recognise(file: IO[bytes]) -> tuple[Format, MediaType]:
    file.seek(0)
    try:
        found = recognise(file.read(HEAD_BYTES))
    except NotMedia as error:
        raise _not_usable(str(error)) from None
    if not found.media:
        raise _not_usable("it is not an image, a video or a sound in a known format")
    return found, found.media[0]


def _not_usable(detail: str) -> Problem:
    return invalid([Fault(pointer="body", detail=detail)], "not_media")


async def _read(file: IO[bytes]) -> AsyncIterator[bytes]:
    file.seek(0)
    while chunk := await asyncio.to_thread(file.read, CHUNK):
        yield chunk
