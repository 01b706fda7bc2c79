"""What a part is shown as, at its level: words, or a file by its id, its address or its bytes."""

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

from genlock.channels.telegram.messages import FileLabel, OutgoingMessage
from genlock.domain.delivery import Level, Part
from genlock.domain.errors import ChannelBusy, InvalidResult, LevelRefused
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.media.download import AddressRefused, Downloads, Fetched, FetchFailed, Look, TooLarge
from genlock.media.formats import (
    FETCH_BYTES_MAX,
    PHOTO_FETCH_BYTES_MAX,
    UPLOAD_BYTES_MAX,
    DoesNotFit,
    Kind,
    NoMedia,
    make_photo,
    photo_fits,
    recognise,
)
from genlock.media.mp4_info import Film, measure

#: so often a result that cannot be fetched is asked for again, before it is a failure or only a link
FETCH_TRIES = 5
#: files on their way at the same time in one instance
FILES_AT_ONCE = 6
_MEDIA: dict[Kind, Any] = {
    Kind.PHOTO: InputMediaPhoto,
    Kind.VIDEO: InputMediaVideo,
    Kind.ANIMATION: InputMediaAnimation,
    Kind.AUDIO: InputMediaAudio,
    Kind.DOCUMENT: InputMediaDocument,
}
#: more that Telegram is told of a kind; a document stays one, whatever it holds
_OPTIONS: dict[Kind, dict[str, Any]] = {
    Kind.VIDEO: {"supports_streaming": True},
    Kind.DOCUMENT: {"disable_content_type_detection": True},
}
NAME_LENGTH = 60
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class TextContent:
    """A part that is shown as text."""

    said: OutgoingMessage
    #: Telegram's HTML, or nothing but characters
    marked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Media:
    """A part that is shown as a file."""

    kind: Kind
    #: an id, an address, or bytes
    file: str | InputFile
    uploads: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def to_edit(self, **caption: Any) -> InputMedia:
        made: InputMedia = _MEDIA[self.kind](media=self.file, **self.options, **caption)
        return made


def by_id(stored: str) -> Media:
    """The channel's own copy, as `remember` wrote it down."""
    kind, _, file_id = stored.partition(":")
    return Media(kind=Kind(kind), file=file_id)


def remember(message: Message | bool | None) -> str | None:  # noqa: FBT001 - what the library answers
    """What to write down of a message's file, so that it can be shown again without an upload."""
    if not isinstance(message, Message):
        return None
    if message.photo:
        return f"{Kind.PHOTO}:{message.photo[-1].file_id}"
    for kind in (Kind.ANIMATION, Kind.VIDEO, Kind.AUDIO, Kind.DOCUMENT):  # an animation is a document, too
        if file := getattr(message, kind):
            return f"{kind}:{file.file_id}"
    return None


class Contents:
    """Makes the content of parts: looks, fetches, resizes."""

    def __init__(self, downloads: Downloads, *, near: bool) -> None:
        self._downloads = downloads
        #: the Bot API server reaches the private hosts that we may reach
        self._near = near
        #: for whoever is about to upload: a few that finish are better than many that hold each other up
        self.room = asyncio.Semaphore(FILES_AT_ONCE)
        #: an unpacked picture is large: one at a time
        self._easel = asyncio.Lock()

    @asynccontextmanager
    async def file(self, job: Job, index: int, part: Part, label: FileLabel) -> AsyncIterator[Media]:
        """The file of a part, at its level, for as long as the block lasts. An upload has taken `room` before."""
        name = _name(job, index, label)
        if part.file is not None:
            yield by_id(part.file)
        elif part.kind is PartKind.TEXT:
            yield _upload(Kind.DOCUMENT, InputFile(part.value, filename=f"{name}.txt", attach=True), label)
        elif part.level is Level.ADDRESS:
            yield await self._by_address(job, part, label)
        else:
            async with self._fetched(job, part) as fetched:
                kind, content, suffix = await self._prepare(part, fetched)
                content.seek(0)
                file = InputFile(content, filename=f"{name}{suffix}", attach=True, read_file_handle=False)
                found = await asyncio.to_thread(measure, content) if kind is Kind.VIDEO else None
                yield _upload(kind, file, label, found)

    async def _by_address(self, job: Job, part: Part, label: FileLabel) -> Media:
        """Telegram fetches it: only what it is able to fetch, known from a look at the content."""
        try:
            look = await self._downloads.look(part.value)
            found = recognise(look.head, look.content_type)
        except (AddressRefused, FetchFailed, NoMedia) as error:
            raise _meaning(job, error) from error
        limit = PHOTO_FETCH_BYTES_MAX if found.kind is Kind.PHOTO else FETCH_BYTES_MAX
        reachable = look.public or self._near
        if not reachable or look.content_type not in found.types or not look.size or look.size > limit:
            raise LevelRefused("Telegram cannot fetch it by itself")
        if found.kind is Kind.PHOTO and not _photo_fits(look):
            raise LevelRefused("the picture's sides are too long")
        return Media(kind=found.kind, file=part.value, options=_options(found.kind, label))

    @asynccontextmanager
    async def _fetched(self, job: Job, part: Part) -> AsyncIterator[Fetched]:
        try:
            async with self._downloads.fetch(part.value, UPLOAD_BYTES_MAX) as fetched:
                yield fetched
        except TooLarge as error:
            raise LevelRefused(f"too large to be uploaded: {error}") from error
        except (AddressRefused, FetchFailed) as error:
            raise _meaning(job, error) from error

    async def _prepare(self, part: Part, fetched: Fetched) -> tuple[Kind, IO[bytes], str]:
        try:
            found = recognise(fetched.head, fetched.content_type)
        except NoMedia as error:
            raise InvalidResult(str(error)) from error
        if part.level is Level.DOCUMENT or found.kind is not Kind.PHOTO:
            kind = Kind.DOCUMENT if part.level is Level.DOCUMENT else found.kind
            return kind, fetched.file, found.suffix
        try:
            async with self._easel:
                photo = await asyncio.to_thread(make_photo, fetched.file, fetched.size, found)
        except DoesNotFit as error:
            raise LevelRefused(str(error)) from error
        return Kind.PHOTO, photo or fetched.file, ".jpg" if photo else found.suffix


def _photo_fits(look: Look) -> bool:
    return photo_fits(look.head)


def _upload(kind: Kind, file: InputFile, label: FileLabel, film: Film | None = None) -> Media:
    measures = {"width": film.width, "height": film.height, "duration": film.seconds} if film else {}
    return Media(kind=kind, file=file, uploads=True, options=_options(kind, label) | measures)


def _options(kind: Kind, label: FileLabel) -> dict[str, Any]:
    if kind is Kind.AUDIO:
        return {"title": label.title, "performer": label.performer}
    return _OPTIONS.get(kind, {})


def _meaning(job: Job, error: Exception) -> Exception:
    """What a result that could not be fetched means: ask again for a while, then a failure or only a link."""
    if isinstance(error, NoMedia | AddressRefused):
        return InvalidResult(str(error))
    assert isinstance(error, FetchFailed)
    if job.attempts < FETCH_TRIES:
        return ChannelBusy(backoff(job.attempts, 0.5), f"the result cannot be fetched: {error}", failed=True)
    if error.missing:
        return InvalidResult(str(error))
    return LevelRefused(str(error))


def _name(job: Job, index: int, label: FileLabel) -> str:
    """What a file is called that is stored: its first words, and which of several it is."""
    stem = _UNSAFE.sub("-", label.title).strip("-.")[:NAME_LENGTH].rstrip("-.") or "result"
    return f"{stem}-{index + 1}" if len(job.parts) > 1 else stem
