"""Results through our own server: the browser of an operator asks no other host, and gets nothing that can run."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import IO

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from genlock.media import sniff
from genlock.media.download import AddressRefused, Downloads, FetchFailed, TooLarge
from genlock.media.sniff import Format, MediaType, NotMedia, recognise

FILE_BYTES_MAX = 100_000_000
CHUNK_BYTES = 256 * 1024
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
    """Fetches results from the provider's links, with the same rules as a delivery."""

    def __init__(self, downloads: Downloads) -> None:
        self._downloads = downloads
        self._free = asyncio.Semaphore(DOWNLOADS_MAX)
        self._files = 0

    async def close(self) -> None:
        await self._downloads.close()

    async def look(self, url: str) -> Preview:
        """Look at the beginning of a file. Raises PreviewRefused."""
        try:
            async with self._free:
                peeked = await self._downloads.peek(url)
            found = recognise(peeked.head, peeked.content_type)
        except (AddressRefused, FetchFailed, TooLarge, NotMedia) as error:
            raise PreviewRefused(_reason(error)) from error
        if peeked.size is not None and peeked.size > FILE_BYTES_MAX:
            raise PreviewRefused("too_large")
        return Preview(kind=_kind(found), suffix=found.suffix, size=peeked.size)

    async def open(self, url: str, name: str) -> Response:
        """Answer with the file, shown or saved as what its bytes are. Raises PreviewRefused."""
        if self._files >= FILES_MAX:
            raise PreviewRefused("busy")
        async with AsyncExitStack() as stack:
            stack.enter_context(self._counted())
            try:
                async with self._free:
                    fetched = await stack.enter_async_context(self._downloads.fetch(url, FILE_BYTES_MAX))
                found = recognise(fetched.head, fetched.content_type)
            except (AddressRefused, FetchFailed, TooLarge, NotMedia) as error:
                raise PreviewRefused(_reason(error)) from error
            headers = _headers(found, name, fetched.size)
            return _FileResponse(fetched.file, headers, stack.pop_all())

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._files += 1
        try:
            yield
        finally:
            self._files -= 1


class _FileResponse(StreamingResponse):
    """Sends a file and closes it afterwards, also if the browser went away before the first byte."""

    def __init__(self, file: IO[bytes], headers: Mapping[str, str], opened: AsyncExitStack) -> None:
        super().__init__(_chunks(file), headers=headers)
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


def _kind(found: Format) -> str:
    media = _SHOWN.get(found, "").partition("/")[0]
    return media if media in {one.value for one in MediaType} else ""


def _headers(found: Format, name: str, size: int) -> dict[str, str]:
    shown = _SHOWN.get(found)
    disposition = "inline" if shown else "attachment"
    return {
        "Content-Type": shown or "application/octet-stream",
        "Content-Length": str(size),
        "Content-Disposition": f'{disposition}; filename="{name}{found.suffix}"',
        "Content-Security-Policy": _POLICY,
        "Cache-Control": f"private, max-age={SECONDS_CACHED}",
    }


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
        yield chunk
