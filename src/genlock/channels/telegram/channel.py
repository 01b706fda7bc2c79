"""The Telegram channel: a result is put on its message by an edit, which may be repeated; the rest is sent once.

          place (or the message that was pressed)
              │  progress: editMessageText, droppable
              ▼
put: file id ─▶ address ─▶ bytes ─▶ document ─▶ text with the link     each an edit of the same message
              │  a repeated upload asks first: editMessageCaption with what it should say
              ▼
          notify: one short message that makes a sound
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from telegram import LinkPreviewOptions, Message, ReplyParameters
from telegram.constants import ParseMode

from genlock.channels.telegram.address import Address
from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.content import Contents, Media, TextContent, remember
from genlock.channels.telegram.errors import HasMedia, HasNoMedia, Migrated, Unchanged, WordsRefused
from genlock.channels.telegram.messages import MessageTexts, OutgoingMessage
from genlock.channels.telegram.text import CAPTION_MAX, TEXT_MAX, cut, fitted, keyboard, plain, split
from genlock.domain.delivery import PARTS_MAX, Level, Part
from genlock.domain.errors import AddressChanged, ChannelOutcomeUnknown, PlaceholderGone, RecipientUnreachable
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.media.download import Downloads
from genlock.media.formats import Kind
from genlock.ports import Channel, Placed

T = TypeVar("T")
#: at which fractions of the expected time progress is shown; a group has twenty calls a minute for everything
MOMENTS = (0.08, 0.25, 0.45, 0.65, 0.85)
GROUP_MOMENTS = (0.3, 0.7)
UPLOAD_READ_SECONDS = 90.0
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class TelegramChannel(Channel):
    """ports.Channel over a Bot."""

    name = "telegram"

    def __init__(self, caller: Caller, words: MessageTexts, downloads: Downloads, *, near: bool = False) -> None:
        self._caller = caller
        self._bot = caller.bot
        self._words = words
        self._contents = Contents(downloads, near=near)

    def split(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Long texts in several messages, or, where they would be too many, as a file."""
        divided: list[Part] = []
        for place, part in enumerate(parts):
            pieces = split(part.value) if part.kind is PartKind.TEXT and part.level is not Level.DOCUMENT else []
            if len(pieces) < 2:  # noqa: PLR2004 - as it is
                divided.append(part)
            elif len(divided) + len(pieces) + len(parts) - place - 1 > PARTS_MAX:
                divided.append(replace(part, level=Level.DOCUMENT))
            else:
                divided += [replace(part, value=piece) for piece in pieces]
        return tuple(divided)

    def progress_points(self, job: Job) -> Sequence[float]:
        return GROUP_MOMENTS if Address.parse(job.address).group else MOMENTS

    # what may be done once

    async def create_placeholder(self, job: Job, index: int) -> str:
        address = Address.parse(job.address)
        waits = index == 0 and not job.ended
        said = self._words.waiting(job, address, None) if waits else self._words.placeholder(job, address, index)
        message = await self._say(address, said, disable_notification=True)
        return str(message.message_id)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        address = Address.parse(job.address)
        words = self._in_words(job, address, index, part)
        if words is not None:
            message = await self._say(address, words.said, marked=words.marked)
            return Placed(message=str(message.message_id))
        said = self._words.caption(job, address, index, part)
        async with self._room(part), self._contents.file(job, index, part, self._words.label(job)) as media:
            message = await self._with_words(said, CAPTION_MAX, lambda said: self._send_media(address, media, said))
        return Placed(message=str(message.message_id), file=remember(message))

    async def notify(self, job: Job) -> None:
        address = Address.parse(job.address)
        first = job.parts[0].message if job.parts else job.placeholder
        reply = None
        if first is not None and first.isdigit():
            reply = ReplyParameters(message_id=int(first), allow_sending_without_reply=True)
        said = self._words.notice(job, address)
        if said.text:
            await self._say(address, said, reply_parameters=reply)

    async def tell(self, address: str, text: str) -> None:
        """Send `text` (Telegram HTML) with the priority of the bot's own screens: results go first.

        A text over the limit is shortened; HTML that Telegram refuses is sent as plain text.
        """
        try:
            to = Address.parse(address)
        except ValueError as error:
            raise RecipientUnreachable(str(error)) from error
        await self._say(to, fitted(OutgoingMessage(text=text)), priority=Priority.SCREEN)

    # what may be repeated

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        assert part.message is not None
        address = Address.parse(job.address)
        words = self._in_words(job, address, index, part)
        if words is not None:
            await self._edit_text(address, int(part.message), words)
            return Placed(message=part.message)
        async with self._room(part):
            return await self._put_file(job, index, part)

    async def _put_file(self, job: Job, index: int, part: Part) -> Placed:
        address, place = Address.parse(job.address), int(part.message or 0)
        said = self._words.caption(job, address, index, part)
        if _uploads(part) and not job.fresh:
            shown, file = await self._is_there(address, place, said)
            if shown:
                return Placed(message=str(place), file=file)
        async with self._contents.file(job, index, part, self._words.label(job)) as media:
            message = await self._with_words(
                said, CAPTION_MAX, lambda said: self._edit_media(address, place, media, said)
            )
        return Placed(message=str(place), file=remember(message) or part.file)

    def _room(self, part: Part) -> AbstractAsyncContextManager[None]:
        """Who asks whether a file is there uploads it next: if all asked first, the first upload would wait for all."""
        return self._contents.room if _uploads(part) else nullcontext()

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        if job.placeholder is None:
            return
        address = Address.parse(job.address)
        said = self._words.waiting(job, address, fraction)
        try:
            async with asyncio.timeout_at(until):
                await self._caller.call(
                    self._bot.edit_message_text,
                    chat=address.chat,
                    priority=Priority.PROGRESS,
                    message_id=int(job.placeholder),
                    **_text(said),
                )
        except TimeoutError as error:
            raise ChannelOutcomeUnknown("progress took too long") from error
        except (Unchanged, HasMedia):
            return

    # calls

    def _in_words(self, job: Job, address: Address, index: int, part: Part) -> TextContent | None:
        """What a part says, if it is shown as text."""
        if part.kind is PartKind.MESSAGE:
            return TextContent(said=self._words.failed(job, address))
        if part.kind is PartKind.TEXT and part.level is not Level.DOCUMENT:
            buttons = self._words.caption(job, address, index, part).buttons
            return TextContent(said=OutgoingMessage(text=part.value, buttons=buttons), marked=False)
        if part.kind is PartKind.FILE and part.level is Level.TEXT and part.file is None:
            return TextContent(said=self._words.link(job, address, index, part))
        return None

    async def _say(self, address: Address, said: OutgoingMessage, *, marked: bool = True, **options: Any) -> Message:
        async def send(said: OutgoingMessage) -> Message:
            return await self._call(
                address,
                self._bot.send_message,
                message_thread_id=address.thread,
                **_text(said, marked=marked),
                **options,
            )

        return await self._with_words(said, TEXT_MAX, send, marked=marked)

    async def _edit_text(self, address: Address, message: int, words: TextContent) -> None:
        async def edit(said: OutgoingMessage) -> Message | bool:
            return await self._call(
                address, self._bot.edit_message_text, message_id=message, **_text(said, marked=words.marked)
            )

        try:
            await self._with_words(words.said, TEXT_MAX, edit, marked=words.marked)
        except Unchanged:
            return
        except HasMedia as error:
            raise PlaceholderGone("the message is not a text any more") from error

    async def _edit_media(
        self, address: Address, message: int, media: Media, said: OutgoingMessage
    ) -> Message | bool | None:
        options: dict[str, Any] = {"read_timeout": UPLOAD_READ_SECONDS} if media.uploads else {}
        try:
            return await self._call(
                address,
                self._bot.edit_message_media,
                message_id=message,
                media=media.to_edit(caption=said.text, parse_mode=ParseMode.HTML),
                reply_markup=keyboard(said),
                **options,
            )
        except Unchanged:
            return None

    async def _send_media(self, address: Address, media: Media, said: OutgoingMessage) -> Message:
        methods: dict[Kind, Callable[..., Awaitable[Message]]] = {
            Kind.PHOTO: self._bot.send_photo,
            Kind.VIDEO: self._bot.send_video,
            Kind.ANIMATION: self._bot.send_animation,
            Kind.AUDIO: self._bot.send_audio,
            Kind.DOCUMENT: self._bot.send_document,
        }
        options: dict[str, Any] = {media.kind.value: media.file, **media.options}
        if media.uploads:
            options["read_timeout"] = UPLOAD_READ_SECONDS
        return await self._call(
            address,
            methods[media.kind],
            message_thread_id=address.thread,
            caption=said.text,
            parse_mode=ParseMode.HTML,
            reply_markup=keyboard(said),
            **options,
        )

    async def _is_there(self, address: Address, message: int, said: OutgoingMessage) -> tuple[bool, str | None]:
        """Whether the message shows the file already: asked by saying what it should say, which changes nothing."""

        async def ask(said: OutgoingMessage) -> Message | bool:
            return await self._call(
                address,
                self._bot.edit_message_caption,
                message_id=message,
                caption=said.text,
                parse_mode=ParseMode.HTML,
                reply_markup=keyboard(said),
            )

        try:
            return True, remember(await self._with_words(said, CAPTION_MAX, ask))
        except Unchanged:
            return True, None
        except HasNoMedia:
            return False, None

    async def _with_words(
        self, said: OutgoingMessage, limit: int, call: Callable[[OutgoingMessage], Awaitable[T]], *, marked: bool = True
    ) -> T:
        """TextContent that Telegram does not take are a bug of ours: their bare text will do."""
        try:
            return await call(said)
        except WordsRefused:
            return await call(plain(said, limit) if marked else OutgoingMessage(text=cut(said.text, limit)))

    async def _call(
        self,
        address: Address,
        method: Callable[..., Awaitable[T]],
        *,
        priority: Priority = Priority.RESULT,
        **arguments: Any,
    ) -> T:
        try:
            return await self._caller.call(method, chat=address.chat, priority=priority, **arguments)
        except Migrated as moved:
            raise AddressChanged(str(address.moved(moved.chat))) from moved


def _uploads(part: Part) -> bool:
    """Whether showing the part at its level sends its bytes."""
    return part.file is None and (part.level in (Level.BYTES, Level.DOCUMENT))


def _text(said: OutgoingMessage, *, marked: bool = True) -> dict[str, Any]:
    return {
        "text": said.text,
        "parse_mode": ParseMode.HTML if marked else None,
        "reply_markup": keyboard(said),
        "link_preview_options": _NO_PREVIEW,
    }
