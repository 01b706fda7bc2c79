"""Turn a part into what Telegram shows at its level: a text, or a file by its id, its URL or its bytes."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from telegram import (
    InputFile,
    InputMedia,
    InputMediaAnimation,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
    Message,
)

from genlock.channels.telegram.direct_calls import SentMessage
from genlock.channels.telegram.file_kinds import UPLOAD_BYTES_MAX, FileKind, can_fetch, kind_of
from genlock.domain.delivery import Level, Part
from genlock.domain.errors import ChannelBusy, InvalidResult, LevelRefused
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.media.budget import TooComplex
from genlock.media.download import AddressRefused, Downloads, FetchedFile, FetchFailed, TooLarge
from genlock.media.mapped_file import mapped
from genlock.media.mp4 import VideoInfo, read_video_info
from genlock.media.photo import PHOTO_BYTES_MAX, NotUsableAsPhoto, photo_fits, sides_too_long
from genlock.media.sniff import NotMedia, recognise
from genlock.ports import FileLabel, OutgoingMessage
from genlock.ports.media_reader import MediaReader

#: attempts to fetch a result before it counts as invalid or is shown as a link only
FETCH_TRIES = 5
#: uploads at the same time in one instance
FILES_AT_ONCE = 6
_MEDIA: dict[FileKind, Any] = {
    FileKind.PHOTO: InputMediaPhoto,
    FileKind.VIDEO: InputMediaVideo,
    FileKind.ANIMATION: InputMediaAnimation,
    FileKind.AUDIO: InputMediaAudio,
    FileKind.DOCUMENT: InputMediaDocument,
}
#: further arguments by kind; with content type detection Telegram would turn some documents into videos
_OPTIONS: dict[FileKind, dict[str, Any]] = {
    FileKind.VIDEO: {"supports_streaming": True},
    FileKind.DOCUMENT: {"disable_content_type_detection": True},
}
NAME_LENGTH = 60
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class TextContent:
    """A part that is shown as text."""

    message: OutgoingMessage
    #: the text is Telegram HTML; otherwise it is plain text
    is_html: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Media:
    """A part that is shown as a file."""

    kind: FileKind
    #: a file id, a URL, or bytes
    file: str | InputFile
    uploads: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def to_edit(self, **caption: Any) -> InputMedia:
        media: InputMedia = _MEDIA[self.kind](media=self.file, **self.options, **caption)
        return media

    def to_json(self, **caption: Any) -> dict[str, Any]:
        """Return a file that is not uploaded, as the Bot API takes it."""
        assert not self.uploads
        return {"type": self.kind.value, "media": self.file, **self.options, **caption}


def file_reference(message: Message | SentMessage | bool | None) -> str | None:  # noqa: FBT001 - the library's type
    """Return a reference to a message's file, with which it can be shown again without an upload."""
    if isinstance(message, SentMessage):
        return message.file
    if not isinstance(message, Message):
        return None
    if message.photo:
        return f"{FileKind.PHOTO}:{message.photo[-1].file_id}"
    # A message with an animation also has a document, so the animation comes first.
    for kind in (FileKind.ANIMATION, FileKind.VIDEO, FileKind.AUDIO, FileKind.DOCUMENT):
        if file := getattr(message, kind):
            return f"{kind}:{file.file_id}"
    return None


def from_reference(reference: str) -> Media:
    """Return a file that Telegram already has, by what `file_reference` returned for it."""
    kind, _, file_id = reference.partition(":")
    return Media(kind=FileKind(kind), file=file_id)


class Contents:
    """Prepares the files of parts: peeks, downloads, converts."""

    def __init__(self, downloads: Downloads, media: MediaReader, *, local_bot_api: bool) -> None:
        self._downloads = downloads
        self._media = media
        #: a Bot API server of our own reaches the same private hosts as we do
        self._local_bot_api = local_bot_api
        #: limits uploads, so that a few finish instead of many delaying each other
        self._upload_slots = asyncio.Semaphore(FILES_AT_ONCE)

    @asynccontextmanager
    async def upload_slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it. Raises ChannelBusy if the instance stops first."""
        async with self._downloads.transfers.interruptible():
            await self._upload_slots.acquire()
        try:
            yield
        finally:
            self._upload_slots.release()

    @asynccontextmanager
    async def file(self, job: Job, index: int, part: Part, label: FileLabel) -> AsyncIterator[Media]:
        """Yield the file of a part at its level. The caller of an upload holds an `upload_slot`."""
        name = _file_name(job, index, label)
        if part.file is not None:
            yield from_reference(part.file)
        elif part.kind is PartKind.TEXT:
            yield _upload(FileKind.DOCUMENT, InputFile(part.value, filename=f"{name}.txt", attach=True), label)
        elif part.level is Level.ADDRESS:
            yield await self._by_url(job, part, label)
        else:
            async with self._fetched(job, part) as fetched:
                kind, content, suffix = await self._prepare(part, fetched, label)
                content.seek(0)
                file = InputFile(content, filename=f"{name}{suffix}", attach=True, read_file_handle=False)
                video = await asyncio.to_thread(_video_info, content) if kind is FileKind.VIDEO else None
                yield _upload(kind, file, label, video)

    async def _by_url(self, job: Job, part: Part, label: FileLabel) -> Media:
        """Let Telegram download the file itself, if the first bytes and the headers show that it can."""
        try:
            file = await self._downloads.peek(part.value)
            found = recognise(file.head, file.content_type)
        except (AddressRefused, FetchFailed, NotMedia) as error:
            raise _fetch_error(job, error) from error
        kind = kind_of(found)
        reachable = file.public or self._local_bot_api
        if not reachable or not can_fetch(found, file.content_type, file.size):
            raise LevelRefused("Telegram cannot fetch the file by its URL")
        if kind is FileKind.PHOTO and (label.exact or not photo_fits(file.head)):
            raise LevelRefused("the image must stay exact, may be transparent, or has too long sides")
        return Media(kind=kind, file=part.value, options=_options(kind, label))

    @asynccontextmanager
    async def _fetched(self, job: Job, part: Part) -> AsyncIterator[FetchedFile]:
        try:
            async with self._downloads.fetch(part.value, UPLOAD_BYTES_MAX) as fetched:
                yield fetched
        except TooLarge as error:
            raise LevelRefused(f"too large to be uploaded: {error}") from error
        except (AddressRefused, FetchFailed) as error:
            raise _fetch_error(job, error) from error

    async def _prepare(self, part: Part, fetched: FetchedFile, label: FileLabel) -> tuple[FileKind, IO[bytes], str]:
        """Return how a file is shown. An image that a photo would change for the worse is shown as a document."""
        try:
            found = recognise(fetched.head, fetched.content_type)
        except NotMedia as error:
            raise InvalidResult(str(error)) from error
        kind = FileKind.DOCUMENT if part.level is Level.DOCUMENT else kind_of(found)
        if kind is FileKind.PHOTO and (label.exact or fetched.size > PHOTO_BYTES_MAX or sides_too_long(fetched.head)):
            kind = FileKind.DOCUMENT
        if kind is not FileKind.PHOTO:
            return kind, fetched.file, found.suffix
        try:
            photo = await self._media.fit_photo(fetched.file, fetched.size, found)
        except (NotUsableAsPhoto, TooComplex) as error:
            raise LevelRefused(str(error)) from error
        return kind, photo or fetched.file, ".jpg" if photo else found.suffix


def _video_info(file: IO[bytes]) -> VideoInfo | None:
    """Read the size and duration of a video: Telegram shows an upload with the values that the sender states."""
    with mapped(file) as content:
        return read_video_info(content)


def _upload(kind: FileKind, file: InputFile, label: FileLabel, video: VideoInfo | None = None) -> Media:
    size = {"width": video.width, "height": video.height, "duration": video.seconds} if video else {}
    return Media(kind=kind, file=file, uploads=True, options=_options(kind, label) | size)


def _options(kind: FileKind, label: FileLabel) -> dict[str, Any]:
    if kind is FileKind.AUDIO:
        return {"title": label.title, "performer": label.performer}
    return _OPTIONS.get(kind, {})


def _fetch_error(job: Job, error: Exception) -> Exception:
    """Return what a failed download means: retry a few times, then the result is invalid or only its link is shown."""
    if isinstance(error, NotMedia | AddressRefused):
        return InvalidResult(str(error))
    assert isinstance(error, FetchFailed)
    if job.attempts < FETCH_TRIES:
        return ChannelBusy(backoff(job.attempts, 0.5), f"the result cannot be fetched: {error}", failed=True)
    if error.missing:
        return InvalidResult(str(error))
    return LevelRefused(str(error))


def _file_name(job: Job, index: int, label: FileLabel) -> str:
    """Return a file name from the title, with a number if the result has several files."""
    stem = _UNSAFE.sub("-", label.title).strip("-.")[:NAME_LENGTH].rstrip("-.") or "result"
    return f"{stem}-{index + 1}" if len(job.parts) > 1 else stem
