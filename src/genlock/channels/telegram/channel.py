"""The Telegram channel: a result replaces its placeholder by an edit, which may be repeated; the rest is sent once.

    create_placeholder (or the message whose button was pressed)
              │  progress: editMessageText, droppable
              ▼
put: file id ─▶ URL ─▶ bytes ─▶ document ─▶ text with the link     each an edit of the same message
              │  a repeated upload first checks by editMessageCaption whether the file is there
              ▼
          notify: one short message that makes a sound
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from telegram import Message
from telegram.constants import ParseMode

from genlock.channels.telegram.address import Address
from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.content import Contents, Media, TextContent, file_reference
from genlock.channels.telegram.direct_calls import HTML, NO_PREVIEW, SentMessage, keyboard_json
from genlock.channels.telegram.errors import (
    GroupMigrated,
    MessageHasMedia,
    MessageHasNoMedia,
    MessageNotModified,
    is_bug_or_unknown,
    is_topic_gone,
)
from genlock.channels.telegram.fallback_texts import FallbackTexts
from genlock.channels.telegram.file_kinds import FileKind
from genlock.channels.telegram.simpler_forms import call_with_simpler_forms
from genlock.channels.telegram.text import CAPTION_MAX, TEXT_MAX, fitted, keyboard, split
from genlock.domain.delivery import PARTS_MAX, Level, Part
from genlock.domain.errors import (
    AddressChanged,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.media.download import Downloads
from genlock.ports import Channel, MessageTexts, OutgoingMessage, Placed
from genlock.ports.media_reader import MediaReader

T = TypeVar("T")
#: fractions of the expected time at which progress is shown, the last one to users who wait longer; a group allows only
#: 20 calls a minute in total
PROGRESS_POINTS = (0.25, 0.5, 0.75, 1.1)
GROUP_PROGRESS_POINTS = (0.3, 0.7)
UPLOAD_READ_SECONDS = 90.0


class TelegramChannel(Channel):
    """The Channel port over the Bot API."""

    name = "telegram"

    def __init__(
        self,
        caller: Caller,
        texts: MessageTexts,
        downloads: Downloads,
        media: MediaReader,
        *,
        local_bot_api: bool = False,
    ) -> None:
        self._caller = caller
        self._bot = caller.bot
        self._direct = caller.direct
        self._texts = FallbackTexts(texts, caller.observer)
        self._contents = Contents(downloads, media, local_bot_api=local_bot_api)

    def split(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Split long texts into several messages or, if that makes too many, show the text as a file."""
        divided: list[Part] = []
        for index, part in enumerate(parts):
            pieces = split(part.value) if part.kind is PartKind.TEXT and part.level is not Level.DOCUMENT else []
            if len(pieces) < 2:  # noqa: PLR2004 - it fits one message
                divided.append(part)
            elif len(divided) + len(pieces) + len(parts) - index - 1 > PARTS_MAX:
                divided.append(replace(part, level=Level.DOCUMENT))
            else:
                divided += [replace(part, value=piece) for piece in pieces]
        return tuple(divided)

    def progress_points(self, job: Job) -> Sequence[float]:
        return GROUP_PROGRESS_POINTS if Address.parse(job.address).group else PROGRESS_POINTS

    # calls that must not be repeated

    async def create_placeholder(self, job: Job, index: int) -> str:
        address = Address.parse(job.address)
        if index == 0 and not job.ended:
            text = self._texts.waiting(job, address.language, None)
        else:
            text = self._texts.placeholder(job, address.language, index)
        try:
            message = await self._send_text(address, TextContent(message=text), disable_notification=True)
        except LevelRefused as refused:  # texts are forbidden here, or ours is wrong: the result is sent without one
            raise PlaceholderGone(f"a placeholder was refused: {refused}") from refused
        return str(message.message_id)

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        try:
            return await self._send(job, index, part)
        except (LevelRefused, ChannelBusy) as error:
            raise _retry_or_lower(job, part, error) from error

    async def _send(self, job: Job, index: int, part: Part) -> Placed:
        address = Address.parse(job.address)
        text = self._text_content(job, address, index, part)
        if text is not None:
            return Placed(message=_id_of(await self._send_text(address, text)))
        caption = self._texts.caption(job, address.language, index, part)
        async with self._upload_slot(part), self._contents.file(job, index, part, self._texts.label(job)) as media:
            message = await call_with_simpler_forms(
                caption, CAPTION_MAX, lambda caption: self._send_media(address, media, caption)
            )
        return Placed(message=_id_of(message), file=file_reference(message))

    async def notify(self, job: Job) -> None:
        address = Address.parse(job.address)
        first = job.parts[0].message if job.parts else job.placeholder
        reply = None
        if first is not None and first.isdigit():
            reply = {"message_id": int(first), "allow_sending_without_reply": True}
        notice = self._texts.notice(job, address.language)
        if notice.text:
            await self._send_text(address, TextContent(message=notice), reply_parameters=reply)

    async def tell(self, address: str, text: str) -> None:
        """Send `text` (Telegram HTML) with the priority of the bot's own screens: results go first.

        A text over the limit is shortened; HTML that Telegram refuses is sent as plain text.
        """
        try:
            to = Address.parse(address)
        except ValueError as error:
            raise RecipientUnreachable(str(error)) from error
        content = TextContent(message=fitted(OutgoingMessage(text=text)))
        await self._send_text(to, content, priority=Priority.SCREEN)

    # calls that may be repeated

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        try:
            return await self._put(job, index, part)
        except (LevelRefused, ChannelBusy) as error:
            raise _retry_or_lower(job, part, error) from error
        except RecipientUnreachable as error:
            # Only the answer to a send says that the group has become a supergroup, and where.
            if Address.parse(job.address).basic_group:
                raise PlaceholderGone(error.reason) from error
            raise

    async def _put(self, job: Job, index: int, part: Part) -> Placed:
        assert part.message is not None
        address = Address.parse(job.address)
        text = self._text_content(job, address, index, part)
        if text is not None:
            if part.kind is PartKind.FILE and not job.just_ended:  # the file of an earlier try may have arrived
                caption = self._texts.caption(job, address.language, index, part)
                shown, file = await self._is_shown(address, int(part.message), caption)
                if shown:
                    return Placed(message=part.message, file=file)
            await self._edit_text(address, int(part.message), text)
            return Placed(message=part.message)
        async with self._upload_slot(part):
            return await self._put_file(job, index, part)

    async def _put_file(self, job: Job, index: int, part: Part) -> Placed:
        address, message_id = Address.parse(job.address), int(part.message or 0)
        caption = self._texts.caption(job, address.language, index, part)
        if _uploads(part) and not job.just_ended:
            shown, file = await self._is_shown(address, message_id, caption)
            if shown:
                return Placed(message=str(message_id), file=file)
        async with self._contents.file(job, index, part, self._texts.label(job)) as media:
            message = await call_with_simpler_forms(
                caption, CAPTION_MAX, lambda caption: self._edit_media(address, message_id, media, caption)
            )
        return Placed(message=str(message_id), file=file_reference(message) or part.file)

    def _upload_slot(self, part: Part) -> AbstractAsyncContextManager[None]:
        """Hold one slot for the check and the upload: if all checked first, the first upload would wait for all."""
        return self._contents.upload_slot() if _uploads(part) else nullcontext()

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        if job.placeholder is None:
            return
        address = Address.parse(job.address)
        text = self._texts.waiting(job, address.language, fraction)
        try:
            async with asyncio.timeout_at(until):
                await self._caller.call(
                    self._direct.edit_message_text,
                    chat=address.chat,
                    priority=Priority.PROGRESS,
                    message_id=int(job.placeholder),
                    **_text_arguments(text),
                )
        except TimeoutError as error:
            raise ChannelOutcomeUnknown("the progress edit took too long") from error
        except (MessageNotModified, MessageHasMedia):
            return

    # calls of the Bot API

    def _text_content(self, job: Job, address: Address, index: int, part: Part) -> TextContent | None:
        """Return the text of a part that is shown as text; None for a part that is shown as a file."""
        if part.kind is PartKind.MESSAGE:
            return TextContent(message=self._texts.failed(job, address.language))
        if part.kind is PartKind.TEXT and part.level is not Level.DOCUMENT:
            buttons = self._texts.caption(job, address.language, index, part).buttons
            return TextContent(message=OutgoingMessage(text=part.value, buttons=buttons), is_html=False)
        if part.kind is PartKind.FILE and part.level is Level.TEXT and part.file is None:
            return TextContent(message=self._texts.link(job, address.language, index, part))
        return None

    async def _send_text(self, address: Address, content: TextContent, **options: Any) -> SentMessage:
        async def send(message: OutgoingMessage) -> SentMessage:
            return await self._call(
                address,
                self._direct.send_message,
                message_thread_id=address.thread,
                **_text_arguments(message, is_html=content.is_html),
                **options,
            )

        return await call_with_simpler_forms(content.message, TEXT_MAX, send, is_html=content.is_html)

    async def _edit_text(self, address: Address, message_id: int, content: TextContent) -> None:
        async def edit(message: OutgoingMessage) -> SentMessage:
            return await self._call(
                address,
                self._direct.edit_message_text,
                message_id=message_id,
                **_text_arguments(message, is_html=content.is_html),
            )

        try:
            await call_with_simpler_forms(content.message, TEXT_MAX, edit, is_html=content.is_html)
        except MessageNotModified:
            return
        except MessageHasMedia as error:
            raise PlaceholderGone("the message is no longer a text message") from error

    async def _edit_media(
        self, address: Address, message_id: int, media: Media, caption: OutgoingMessage
    ) -> Message | SentMessage | bool | None:
        try:
            if media.uploads:
                return await self._upload_media(address, message_id, media, caption)
            return await self._call(
                address,
                self._direct.edit_message_media,
                message_id=message_id,
                media=media.to_json(caption=caption.text, parse_mode=HTML),
                reply_markup=keyboard_json(caption),
            )
        except MessageNotModified:
            return None

    async def _upload_media(
        self, address: Address, message_id: int, media: Media, caption: OutgoingMessage
    ) -> Message | bool:
        return await self._call(
            address,
            self._bot.edit_message_media,
            message_id=message_id,
            media=media.to_edit(caption=caption.text, parse_mode=ParseMode.HTML),
            reply_markup=keyboard(caption),
            read_timeout=UPLOAD_READ_SECONDS,
        )

    async def _send_media(self, address: Address, media: Media, caption: OutgoingMessage) -> Message:
        methods: dict[FileKind, Callable[..., Awaitable[Message]]] = {
            FileKind.PHOTO: self._bot.send_photo,
            FileKind.VIDEO: self._bot.send_video,
            FileKind.ANIMATION: self._bot.send_animation,
            FileKind.AUDIO: self._bot.send_audio,
            FileKind.DOCUMENT: self._bot.send_document,
        }
        options: dict[str, Any] = {media.kind.value: media.file, **media.options}
        if media.uploads:
            options["read_timeout"] = UPLOAD_READ_SECONDS
        return await self._call(
            address,
            methods[media.kind],
            message_thread_id=address.thread,
            caption=caption.text,
            parse_mode=ParseMode.HTML,
            reply_markup=keyboard(caption),
            **options,
        )

    async def _is_shown(self, address: Address, message_id: int, caption: OutgoingMessage) -> tuple[bool, str | None]:
        """Whether the message already shows the file, and its reference if Telegram states it.

        Sets the caption that the message should have: Telegram refuses this for a text message.
        """

        async def ask(caption: OutgoingMessage) -> SentMessage:
            return await self._call(
                address,
                self._direct.edit_message_caption,
                message_id=message_id,
                caption=caption.text,
                parse_mode=HTML,
                reply_markup=keyboard_json(caption),
            )

        try:
            return True, file_reference(await call_with_simpler_forms(caption, CAPTION_MAX, ask))
        except MessageNotModified:
            return True, None
        except MessageHasNoMedia:
            return False, None

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
        except GroupMigrated as migrated:
            raise AddressChanged(str(address.migrated_to(migrated.chat))) from migrated
        except RecipientUnreachable as unreachable:
            if address.thread is not None and is_topic_gone(unreachable):
                raise AddressChanged(str(address.outside_topics())) from unreachable
            raise


def _retry_or_lower(job: Job, part: Part, error: LevelRefused | ChannelBusy) -> ChannelError:
    """Return the error that the engine should see.

    A refusal of the last level would return the money at once. If the cause is unknown or a bug of ours, the result is
    tried again later instead: meanwhile an operator sees the refusal.
    """
    if isinstance(error, ChannelBusy):
        return error if not error.failed else ChannelBusy(_pause(job, error.after), str(error), failed=True)
    if part.lower() is None and is_bug_or_unknown(error):
        return ChannelBusy(_pause(job), str(error), failed=True)
    return error


def _pause(job: Job, least: float = 0.0) -> float:
    return max(least, backoff(job.attempts, 0.5))


def _id_of(message: Message | SentMessage) -> str | None:
    """Return the id of a sent message. Telegram numbers a video for a large group only when it has processed it."""
    return str(message.message_id) if message.message_id else None


def _uploads(part: Part) -> bool:
    """Whether showing the part at its level uploads its bytes."""
    return part.file is None and (part.level in (Level.BYTES, Level.DOCUMENT))


def _text_arguments(message: OutgoingMessage, *, is_html: bool = True) -> dict[str, Any]:
    return {
        "text": message.text,
        "parse_mode": HTML if is_html else None,
        "reply_markup": keyboard_json(message),
        "link_preview_options": NO_PREVIEW,
    }
