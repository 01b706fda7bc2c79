"""Copies files from Telegram to providers."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from tempfile import TemporaryFile
from typing import IO

import aiohttp

from genlock.bot.attachment import BYTES_MAX
from genlock.channels.telegram.caller import Caller, Priority
from genlock.domain.errors import GenlockError, LevelRefused, ProviderError
from genlock.domain.field import FieldType
from genlock.domain.media_format import MediaType
from genlock.domain.upload import Upload, UploadCopy
from genlock.engine.file_storage import FileStorage
from genlock.media.sniff import could_be, suffix_by_content
from genlock.media.transfers import Transfers
from genlock.ports.media_reader import MediaReader

CHUNK = 65_536
SECONDS_MAX = 120.0
OK = 200


class WrongContent(GenlockError):
    """The content of a file does not match its type."""


class FileTransfer:
    def __init__(self, *, caller: Caller, storage: FileStorage, media: MediaReader, transfers: Transfers) -> None:
        self._caller = caller
        self._transfers = transfers
        self.storage = storage
        self._media = media
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def copy(self, file: str, kind: FieldType, extension: str) -> tuple[UploadCopy, float | None]:
        """Copy a file from Telegram to a provider; return where it is and its measured length.

        Raises WrongContent, TooComplex, ProviderError, and ChannelBusy, also if the instance stops meanwhile.
        """
        async with self._transfers.interruptible():
            return await self._copy(file, kind, extension)

    def read(self, upload: Upload) -> AsyncIterator[bytes]:
        """Return the content of a file that a user sent. Raises ProviderError and ChannelError."""
        return self._bytes(upload.file)

    async def _copy(self, file: str, kind: FieldType, extension: str) -> tuple[UploadCopy, float | None]:
        stream = self._bytes(file)
        first = await anext(stream, b"")
        if not could_be(first, MediaType(kind.value)):
            await stream.aclose()
            raise WrongContent
        name = f"{secrets.token_hex(12)}.{suffix_by_content(first, MediaType(kind.value), extension)}"
        if kind is FieldType.IMAGE:
            begun = [_chained(first, stream)]
            return await self.storage.store(lambda: begun.pop() if begun else self._bytes(file), name), None
        with TemporaryFile() as copy:
            async for chunk in _chained(first, stream):
                await asyncio.to_thread(copy.write, chunk)
            seconds = await self._media.measure(copy)  # before the upload: a file that cannot be read is not passed on
            return await self.storage.store(lambda: _read(copy), name), seconds

    async def _bytes(self, file: str) -> AsyncGenerator[bytes, None]:
        """Stream a file from Telegram. No error raised here may contain the URL: it contains the bot's token."""
        try:
            found = await self._caller.call(
                self._caller.bot.get_file, chat=None, priority=Priority.SCREEN, file_id=file
            )
        except LevelRefused as error:
            raise ProviderError("Telegram does not give the file") from error
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=SECONDS_MAX, sock_connect=10.0)
            self._session = aiohttp.ClientSession(timeout=timeout)
        size = 0
        try:
            async with self._session.get(found.file_path or "", allow_redirects=False) as answer:
                if answer.status != OK:
                    raise ProviderError(f"Telegram answered {answer.status} for a file")
                async for chunk in answer.content.iter_chunked(CHUNK):
                    size += len(chunk)
                    if size > BYTES_MAX:
                        raise ProviderError("the file is larger than Telegram declared")
                    yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise ProviderError(f"the file could not be read: {type(error).__name__}") from None


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _read(copy: IO[bytes]) -> AsyncIterator[bytes]:
    copy.seek(0)
    while chunk := await asyncio.to_thread(copy.read, CHUNK):
        yield chunk
