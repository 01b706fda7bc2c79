"""The channels of this package as subjects of the channel suite: Telegram with its simulator, the API on a folder."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from genlock.channels.api.channel import ApiChannel
from genlock.channels.telegram.caller import Caller, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.media.download import Downloads
from genlock.media.stores.folder import FolderMediaStore
from genlock.ports import Channel
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.testing import ChannelSituation, ChannelSubject, Shown
from tests.channels.telegram.harness import NoLimits
from tests.channels.telegram.plain_texts import PlainTexts
from tests.engine.recorder import Recorder
from tests.media.file_server import FileServer, running_file_server
from tests.media.samples import image
from tests.media.thread_reader import ThreadReader

PAGE = b"<!doctype html><html><body>Not found</body></html>"


class TelegramSubject(ChannelSubject):
    def __init__(self, telegram: TelegramSimulator, files: FileServer, closing: AsyncExitStack) -> None:
        self._telegram = telegram
        self._files = files
        self._closing = closing
        self._ann = telegram.add_user("Ann")
        self.address = f"{self._ann.id}/en"

    def make(self) -> Channel:
        caller = Caller(make_bot(self._telegram.token, self._telegram.url), NoLimits(), Recorder())
        downloads = Downloads(private=[self._files.host])
        self._closing.push_async_callback(downloads.close)
        self._closing.push_async_callback(caller.close)
        return TelegramChannel(caller, PlainTexts(), downloads, ThreadReader(), local_bot_api=True)

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(message=str(message.id), text=message.text, has_file=message.kind != "text")
            for message in self._ann.messages
        ]

    async def arrange(self, situation: ChannelSituation) -> None:
        match situation:
            case ChannelSituation.BUSY:
                self._telegram.faults.once(Fault.TOO_MANY, seconds=1.0)
            case ChannelSituation.ANSWER_LOST:
                self._telegram.faults.once(Fault.DROP_AFTER)
            case ChannelSituation.UNREACHABLE_USER:
                await self._ann.block()

    async def delete(self, message: str) -> None:
        await self._ann.delete(int(message))

    def picture_url(self) -> str:
        return self._files.put("fox.png", image(), "image/png")

    def page_url(self) -> str:
        return self._files.put("page.png", PAGE, "text/html")


class ApiSubject(ChannelSubject):
    """Its messages are the numbers of the parts; what users get are the copies in the media store."""

    address = '{"request":"of-the-suite"}'
    shows_texts = False

    def __init__(self, files: FileServer, folder: Path, closing: AsyncExitStack) -> None:
        self._files = files
        self._folder = folder
        self._closing = closing

    def make(self) -> Channel:
        downloads = Downloads(private=[self._files.host])
        self._closing.push_async_callback(downloads.close)
        return ApiChannel(downloads, FolderMediaStore(self._folder))

    async def shown(self) -> Sequence[Shown]:
        found = sorted(path for path in self._folder.rglob("*") if path.is_file())
        return [Shown(message=str(path.relative_to(self._folder)), text="", has_file=True) for path in found]

    def picture_url(self) -> str:
        return self._files.put("fox.png", image(), "image/png")

    def page_url(self) -> str:
        return self._files.put("page.png", PAGE, "text/html")


@asynccontextmanager
async def running_telegram_subject() -> AsyncIterator[TelegramSubject]:
    async with running_telegram() as telegram, running_file_server() as files, AsyncExitStack() as closing:
        yield TelegramSubject(telegram, files, closing)


@asynccontextmanager
async def running_api_subject() -> AsyncIterator[ApiSubject]:
    with TemporaryDirectory() as folder:
        async with running_file_server() as files, AsyncExitStack() as closing:
            yield ApiSubject(files, Path(folder), closing)
