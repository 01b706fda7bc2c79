"""Two providers that store files, and a user's photo."""

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ProviderError
from genlock.domain.job import Job, State
from genlock.domain.offer import Offer
from genlock.domain.task import TaskOrder
from genlock.domain.upload import Upload, UploadCopy
from genlock.engine.file_storage import FileStorage, ProviderStorage
from genlock.engine.input_files import InputFiles
from tests.engine.two_providers import TwoProviders
from tests.engine.world import World
from tests.packaged import CATALOG

MODEL = "bytedance/seedream-v4-edit"
ADDRESS = "https://fake/photo.png"
DAY = 86_400.0


class Storage:
    """The storage of one provider, which counts what it was sent."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.stored: list[str] = []
        self.fault: BaseException | None = None
        #: counts the uploads that have begun
        self.begun = asyncio.Semaphore(0)
        self.open = asyncio.Event()
        self.open.set()
        #: as many uploads as it counts go on before one of them ends
        self.together: asyncio.Barrier | None = None

    async def upload(self, content: AsyncIterable[bytes], name: str, folder: str) -> str:
        assert b"".join([chunk async for chunk in content]) == b"photo"
        url = f"https://{self.provider}/{len(self.stored)}/{name}"
        self.stored.append(url)
        self.begun.release()
        await self.open.wait()
        if self.together is not None:
            await self.together.wait()
        if self.fault is not None:
            raise self.fault
        return url


class Files:
    """Two providers with a storage each, and a user's photo, which is stored at the first."""

    def __init__(
        self,
        world: World,
        *,
        first_stores: bool = True,
        second_is_public: bool = True,
        pass_on_seconds: float = 60.0,
    ) -> None:
        self.world = world
        self.first, self.second = Storage("fake"), Storage("other")
        self.lost = False
        self._pass_on_seconds = pass_on_seconds
        first = ProviderStorage(provider="fake", upload=self.first.upload, keep_seconds=3 * DAY)
        second = ProviderStorage(
            provider="other", upload=self.second.upload, keep_seconds=DAY, is_public=second_is_public
        )
        self._storage = FileStorage([first, second] if first_stores else [second])
        self.input = self.instance()
        self.two = TwoProviders(world, self.input)
        self.two.offers = [Offer(provider="fake", model="flux"), Offer(provider="other", model="other/flux")]

    def instance(self) -> InputFiles:
        """Return the files as another process has them."""
        made = InputFiles(
            store=self.world.store,
            storage=self._storage,
            catalog=CurrentCatalog(CATALOG),
            pass_on_seconds=self._pass_on_seconds,
        )
        made.sources["chat"] = self._read
        return made

    async def _read(self, upload: Upload) -> AsyncIterator[bytes]:
        assert upload.file == "telegram-id"
        if self.lost:
            raise ProviderError("Telegram does not give the file")
        yield b"photo"

    async def send(self, *, account: int | None = None, left: float = 3 * DAY, address: str = ADDRESS) -> None:
        account = self.world.account if account is None else account
        await self.world.store.add_upload(
            Upload(key=address, account_id=account, file="telegram-id", kind="image", seconds=None, age_seconds=0.0)
        )
        await self.keep("fake", address, left, address)

    async def keep(self, provider: str, url: str, left: float, address: str = ADDRESS) -> None:
        """Record a provider's copy of the file."""
        copy = UploadCopy(key=address, provider=provider, url=url, left_seconds=left)
        await self.world.store.save_upload_copy(copy)

    async def waiting(self) -> Job:
        """Return an order that waits, because its file could not be read."""
        self.lost = True
        job: Job = await self.order()
        self.lost = False
        assert job.state is State.QUEUED
        return job

    async def take_result(self, kind: str) -> None:
        """Record the result of another order as a file: its link, and the channel's copy."""
        await self.world.store.add_upload(
            Upload(
                key=ADDRESS,
                account_id=self.world.account,
                file="telegram-id",
                kind=kind,
                seconds=None,
                age_seconds=0.0,
            )
        )

    async def order(self, **changes: Any) -> Any:
        values = {"prompt": "at night", "image_urls": [ADDRESS]}
        return await self.two.order(**{"model": MODEL, "input": json.dumps(values)} | changes)

    async def retry(self) -> None:
        """Let a minute pass, and the instance claim what is due."""
        self.world.clock.advance(60.0)
        await self.two.work()


def sent(order: TaskOrder) -> object:
    return order.input()["image_urls"]
