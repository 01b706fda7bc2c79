"""Results through our own server: the browser of an operator asks no other host, and gets nothing that can run."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from genlock.dashboard.fetched_files import FetchedFiles
from genlock.domain.errors import MediaStoreError
from genlock.domain.media_format import Format, MediaType
from genlock.domain.stored_file import StoredFile
from genlock.media import sniff
from genlock.media.download import AddressRefused, Downloads, FetchedFile, FetchFailed, TooLarge
from genlock.media.sniff import NotMedia, recognise
from genlock.ports import MediaStore
from genlock.web.byte_ranges import ByteRange, read_range

FILE_BYTES_MAX = 100_000_000
CHUNK_BYTES = 256 * 1024
#: enough to recognise a format
HEAD_BYTES = 4096
#: downloads at the same time: previews must not take the bandwidth of deliveries
DOWNLOADS_MAX = 3
#: files on disk at the same time, of browsers that are still reading; each may take 100 MB
FILES_MAX = 30
#: how long a browser may read one
SEND_SECONDS = 600.0
SECONDS_CACHED = 600
#: what a browser may show; any other file can only be saved
_SHOWN = {
    sniff.JPEG: "image/jpeg", sniff.PNG: "image/png", sniff.WEBP: "image/webp", sniff.AVIF: "image/avif",
    sniff.GIF: "image/gif", sniff.BMP: "image/bmp", sniff.MP4: "video/mp4", sniff.MOV: "video/mp4",
    sniff.WEBM: "video/webm", sniff.M4A: "audio/mp4", sniff.MP3: "audio/mpeg", sniff.OGG: "audio/ogg",
    sniff.WAV: "audio/wav", sniff.FLAC: "audio/flac",
}  # fmt: skip
_POLICY = "sandbox; default-src 'none'; media-src 'self'; img-src 'self'; style-src 'unsafe-inline'"

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class PreviewRefused(Exception):
    """The file cannot be shown; `reason` is the last part of the key of the text that says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """What the file at a link is, from its first bytes."""

    #: image, video or audio; empty: it can only be saved
    kind: str
    suffix: str
    size: int | None


class Previews:
    """Opens results: our own copy where there is one, else the provider's link, with the same rules as a delivery.

    The copies are those of the orders of API clients. One that was deleted for its age, or that the media store cannot
    give right now, may still be at the provider's link.
    """

    def __init__(self, downloads: Downloads, media: MediaStore) -> None:
        self._downloads = downloads
        self._media = media
        self._free = asyncio.Semaphore(DOWNLOADS_MAX)
        self._files = 0
        self._fetched = FetchedFiles(self._fetch)

    async def look(self, url: str, copy: StoredFile | None = None) -> Preview:
        """Look at the beginning of a file. Raises PreviewRefused."""
        if (found := await self._copy(copy)) is not None and copy is not None:
            return Preview(kind=_kind(found), suffix=found.suffix, size=copy.size)
        try:
            async with self._free:
                peeked = await self._downloads.peek(url)
            found = recognise(peeked.head, peeked.content_type)
        except (AddressRefused, FetchFailed, TooLarge, NotMedia) as error:
            raise PreviewRefused(_reason(error)) from error
        if peeked.size is not None and peeked.size > FILE_BYTES_MAX:
            raise PreviewRefused("too_large")
        return Preview(kind=_kind(found), suffix=found.suffix, size=peeked.size)

    async def open(
        self, url: str, name: str, copy: StoredFile | None = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Response:
        """Answer with the file or a range of it, shown or saved as what its bytes are.

        Raises PreviewRefused and RangeNotSatisfiable.
        """
        if self._files >= FILES_MAX:
            raise PreviewRefused("busy")
        async with AsyncExitStack() as stack:
            stack.enter_context(self._counted())
            if (found := await self._copy(copy)) is not None and copy is not None:
                wanted = read_range(headers, copy.size, copy.sha256)
                read = self._media.read(copy.key, wanted.start, wanted.length)
                chunks = await stack.enter_async_context(aclosing(read))
                return _FileResponse(chunks, wanted, _headers(found, name, copy.sha256), stack.pop_all())
            fetched = await stack.enter_async_context(self._fetched.opened(url))
            try:
                found = recognise(fetched.head, fetched.content_type)
            except NotMedia as error:
                raise PreviewRefused(_reason(error)) from error
            wanted = read_range(headers, fetched.size)
            return _FileResponse(_chunks(fetched.file, wanted), wanted, _headers(found, name), stack.pop_all())

    @asynccontextmanager
    async def _fetch(self, url: str) -> AsyncIterator[FetchedFile]:
        async with AsyncExitStack() as stack:
            try:
                async with self._free:
                    fetched = await stack.enter_async_context(self._downloads.fetch(url, FILE_BYTES_MAX))
            except (AddressRefused, FetchFailed, TooLarge) as error:
                raise PreviewRefused(_reason(error)) from error
            yield fetched

    async def _copy(self, copy: StoredFile | None) -> Format | None:
        """Return the format of our copy; None if there is none that can be read."""
        if copy is None:
            return None
        try:
            async with aclosing(self._media.read(copy.key, 0, min(copy.size, HEAD_BYTES))) as chunks:
                head = b"".join([chunk async for chunk in chunks])
            return recognise(head, copy.content_type)
        except (MediaStoreError, NotMedia):
            return None

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._files += 1
        try:
            yield
        finally:
            self._files -= 1


class _FileResponse(StreamingResponse):
    """Sends a file and closes it afterwards, also if the browser went away before the first byte."""

    def __init__(
        self, chunks: AsyncIterator[bytes], byte_range: ByteRange, headers: Mapping[str, str], opened: AsyncExitStack
    ) -> None:
        super().__init__(chunks, byte_range.status, headers={**headers, **byte_range.headers})
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened, asyncio.timeout(SEND_SECONDS):
            await super().__call__(scope, receive, send)


def _reason(error: Exception) -> str:
    match error:
        case FetchFailed() if error.missing:
            return "expired"
        case FetchFailed():
            return "unreachable"
        case TooLarge():
            return "too_large"
        case AddressRefused():
            return "refused"
        case _:
            return "no_media"


def _kind(media_format: Format) -> str:
    media = _SHOWN.get(media_format, "").partition("/")[0]
    return media if media in {media_type.value for media_type in MediaType} else ""


def _headers(media_format: Format, name: str, etag: str = "") -> dict[str, str]:
    shown = _SHOWN.get(media_format)
    disposition = "inline" if shown else "attachment"
    return {
        "Content-Type": shown or "application/octet-stream",
        "Content-Disposition": f'{disposition}; filename="{name}{media_format.suffix}"',
        "Content-Security-Policy": _POLICY,
        "Cache-Control": f"private, max-age={SECONDS_CACHED}",
        **({"ETag": f'"{etag}"'} if etag else {}),
    }


async def _chunks(file: IO[bytes], byte_range: ByteRange) -> AsyncIterator[bytes]:
    """Yield a range of a file, by position: several browsers may read it at the same time."""
    position, end = byte_range.start, byte_range.start + byte_range.length
    while position < end:
        chunk = await asyncio.to_thread(os.pread, file.fileno(), min(CHUNK_BYTES, end - position), position)
        if not chunk:
            return
        yield chunk
        position += len(chunk)
