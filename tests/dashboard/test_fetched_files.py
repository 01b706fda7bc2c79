"""Files that stay on disk for a while: each is closed once, and never while a browser reads it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import pytest

from genlock.dashboard import fetched_files
from genlock.dashboard.fetched_files import FetchedFiles
from genlock.media.download import FetchedFile


class Downloads:
    def __init__(self) -> None:
        self.open: list[BytesIO] = []
        #: set when the next download may end
        self.ready: list[asyncio.Event] = []

    @asynccontextmanager
    async def fetch(self, url: str) -> AsyncIterator[FetchedFile]:
        if self.ready:
            await self.ready.pop(0).wait()
        file = BytesIO()
        self.open.append(file)
        yield FetchedFile(file=file, head=b"", content_type="", size=0)
        await asyncio.sleep(0)
        self.open.remove(file)
        file.close()


async def read(files: FetchedFiles, url: str) -> None:
    async with files.opened(url) as fetched:
        assert not fetched.file.closed


async def test_a_file_that_two_requests_downloaded_is_kept_once() -> None:
    downloads = Downloads()
    files = FetchedFiles(downloads.fetch)
    first, second = downloads.ready = [asyncio.Event(), asyncio.Event()]
    reading = [asyncio.create_task(read(files, "a")) for _ in range(2)]
    await asyncio.sleep(0)
    first.set()
    await reading[0]
    second.set()
    await reading[1]

    assert len(downloads.open) == 1


async def test_requests_that_end_together_close_each_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_files, "KEPT_MAX", 1)
    downloads = Downloads()
    files = FetchedFiles(downloads.fetch)
    await asyncio.gather(*(read(files, f"{number}") for number in range(8)))

    assert len(downloads.open) == 1


async def test_a_file_that_expires_while_a_request_takes_it_stays_open() -> None:
    downloads = Downloads()
    files = FetchedFiles(downloads.fetch)
    await read(files, "a")
    kept = files._kept["a"]
    files._expire("a", kept)
    [closing] = files._closing
    async with files.opened("a") as fetched:
        await closing
        assert not fetched.file.closed
