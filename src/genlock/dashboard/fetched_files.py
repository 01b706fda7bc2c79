"""Downloaded results that stay on disk for a while: a browser that seeks in a video asks for many ranges of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from genlock.media.download import FetchedFile

#: files on disk that no browser reads at the moment; each may take 100 MB
KEPT_MAX = 4
KEPT_SECONDS = 120.0

Fetch = Callable[[str], AbstractAsyncContextManager[FetchedFile]]


@dataclass(eq=False)
class _Kept:
    file: FetchedFile
    opened: AsyncExitStack
    readers: int = 0
    expiry: asyncio.TimerHandle | None = field(default=None, repr=False)


class FetchedFiles:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        #: by address, the most recently used last
        self._kept: dict[str, _Kept] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(self, url: str) -> AsyncIterator[FetchedFile]:
        """Yield the file at an address: as it was downloaded a moment ago, or downloaded now."""
        kept = self._take(url) or await self._download(url)
        other = self._take(url)  # downloaded by another request meanwhile
        self._kept[url] = kept
        kept.readers += 1
        try:
            if other is not None and other.readers == 0:
                await other.opened.aclose()
            yield kept.file
        finally:
            kept.readers -= 1
            await self._settle(url, kept)

    async def _download(self, url: str) -> _Kept:
        async with AsyncExitStack() as stack:
            file = await stack.enter_async_context(self._fetch(url))
            return _Kept(file, stack.pop_all())

    async def _settle(self, url: str, kept: _Kept) -> None:
        """Close what no browser reads and is not to be kept. A file is taken out before the first wait."""
        unused: list[_Kept] = []
        if kept.readers == 0:
            if self._kept.get(url) is kept:
                loop = asyncio.get_running_loop()
                kept.expiry = loop.call_later(KEPT_SECONDS, self._expire, url, kept)
            else:  # downloaded a second time meanwhile
                unused.append(kept)
        unread = [kept_url for kept_url, file in self._kept.items() if file.readers == 0]
        unused += [taken for kept_url in unread[: max(0, len(unread) - KEPT_MAX)] if (taken := self._take(kept_url))]
        for file in unused:
            await file.opened.aclose()

    def _expire(self, url: str, kept: _Kept) -> None:
        if self._kept.get(url) is kept and kept.readers == 0:
            del self._kept[url]
            closing = asyncio.create_task(kept.opened.aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _take(self, url: str) -> _Kept | None:
        kept = self._kept.pop(url, None)
        if kept is not None and kept.expiry is not None:
            kept.expiry.cancel()
        return kept
