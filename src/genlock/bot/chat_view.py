"""Renders messages in a chat: shows, edits, sends and removes them, and answers button presses."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from telegram import InputFile, Message
from telegram.constants import ParseMode

from genlock.bot.context import UpdateContext
from genlock.bot.screen_files import ScreenFile
from genlock.channels.telegram.caller import Caller, Priority, bot_id
from genlock.channels.telegram.content import Media, file_reference
from genlock.channels.telegram.direct_calls import HTML, NO_PREVIEW, SentMessage, keyboard_json
from genlock.channels.telegram.errors import MessageHasMedia, MessageNotModified
from genlock.channels.telegram.text import fits_caption, fitted, keyboard
from genlock.domain.errors import ChannelError, LevelRefused, PlaceholderGone, RecipientUnreachable
from genlock.ports import Database, OutgoingMessage

TOAST_LENGTH = 200
UPLOAD_SECONDS = 90.0


class ChatView:
    """A chat has one screen message, which is edited; it moves below whatever the user writes.

    An update may be handled again after a crash: an edit is then repeated without effect, and a message that is sent
    twice does no harm.
    """

    def __init__(self, *, caller: Caller, store: Database) -> None:
        self._caller = caller
        self._store = store

    async def show(self, ctx: UpdateContext, message: OutgoingMessage, file: ScreenFile | None = None) -> None:
        """Make the chat's screen message show this; send a new one where the old one cannot be edited.

        A text message can become one with a file; one with a file cannot become a text, and is replaced.
        """
        target = await self._target(ctx)
        if file is not None and fits_caption(message):
            if await self._show_file(ctx, target, message, file):
                return
            target = await self._target(ctx)
        if target is not None and await self.edit(ctx.chat, target, message):
            if ctx.draft.message != target:
                await self._move(ctx, target)
            return
        await self._move(ctx, await self.send(ctx, message))

    async def _show_file(
        self, ctx: UpdateContext, target: int | None, message: OutgoingMessage, file: ScreenFile
    ) -> bool:
        """Show a message with a file; return False if Telegram refuses the file, so that the text is shown alone."""
        bot = bot_id(self._caller.bot.token)
        known = await self._store.kv_get(file.key, bot) if file.key else None
        reference = known.value if known else file.reference
        try:
            content = None if reference or file.read is None else await asyncio.to_thread(file.read)
            media = file.media(reference, content)
            shown = await self._put_media(ctx, target, message, media)
        except (LevelRefused, OSError):
            if known:
                await self._store.kv_delete(file.key, bot)
            return False
        if content is not None and file.key and (uploaded := file_reference(shown)):
            await self._store.kv_put(file.key, uploaded, bot)
        return True

    async def _put_media(
        self, ctx: UpdateContext, target: int | None, message: OutgoingMessage, media: Media
    ) -> Message | SentMessage | bool | None:
        """Edit the screen message so that it shows the file, or send it; return the message if Telegram states it."""
        shown: Message | SentMessage | bool | None = None
        if target is not None:
            try:
                shown = await self._edit_media(ctx.chat, target, message, media)
            except MessageNotModified:
                pass  # it shows exactly this
            except PlaceholderGone:
                target = None
        if target is None:
            shown = sent = await self._send_media(ctx, message, media)
            target = sent.message_id
        if ctx.draft.message != target:
            await self._move(ctx, target)
        return shown

    async def _edit_media(
        self, chat: int, message_id: int, message: OutgoingMessage, media: Media
    ) -> Message | SentMessage | bool:
        if not media.uploads:
            return await self._caller.call(
                self._caller.direct.edit_message_media,
                chat=chat,
                priority=Priority.SCREEN,
                message_id=message_id,
                media=media.to_json(caption=message.text, parse_mode=HTML),
                reply_markup=keyboard_json(message),
            )
        return await self._caller.call(
            self._caller.bot.edit_message_media,
            chat=chat,
            priority=Priority.SCREEN,
            message_id=message_id,
            media=media.to_edit(caption=message.text, parse_mode=ParseMode.HTML),
            reply_markup=keyboard(message),
            read_timeout=UPLOAD_SECONDS,
        )

    async def _send_media(self, ctx: UpdateContext, message: OutgoingMessage, media: Media) -> Message:
        sent: Message = await self._caller.call(
            getattr(self._caller.bot, f"send_{media.kind.value}"),
            chat=ctx.chat,
            priority=Priority.SCREEN,
            message_thread_id=ctx.thread,
            caption=message.text,
            parse_mode=ParseMode.HTML,
            reply_markup=keyboard(message),
            read_timeout=UPLOAD_SECONDS,
            **{media.kind.value: media.file, **media.options},
        )
        return sent

    async def _target(self, ctx: UpdateContext) -> int | None:
        """Return the message to edit: that of the pressed button, or the screen if the user wrote nothing below it."""
        if ctx.button_message is not None:
            if ctx.button_message == ctx.draft.message:
                return ctx.button_message
            # In a group the message may be another user's screen.
            keep = (
                ctx.group or ctx.on_notice or await self._store.is_job_message(ctx.account_id, str(ctx.button_message))
            )
            return None if keep else ctx.button_message
        screen = ctx.draft.message
        return screen if screen is not None and ctx.message is not None and screen > ctx.message else None

    async def take_back(self, ctx: UpdateContext, message_id: int) -> None:
        """Make a message the screen again: it was to become a result, but the order was refused."""
        await self._move(ctx, message_id)

    async def _move(self, ctx: UpdateContext, message_id: int) -> None:
        """Record which message is the screen now, and remove the one before.

        If the draft has changed meanwhile, another instance has handled the update: both messages may show more by now.
        """
        old, version = ctx.draft.message, ctx.draft.version
        ctx.draft = replace(ctx.draft, message=message_id)
        recorded = await self._store.set_draft_message(ctx.account_id, ctx.chat, message_id, version=version)
        if recorded and old is not None and old != message_id:
            await self.remove(ctx.chat, old)

    async def edit(self, chat: int, message_id: int, message: OutgoingMessage) -> bool:
        """Return whether the message now shows this; False if it is gone or cannot be edited."""
        try:
            await self._caller.call(
                self._caller.direct.edit_message_text,
                chat=chat,
                priority=Priority.SCREEN,
                message_id=message_id,
                **_content(message),
            )
        except MessageNotModified:
            return True
        except (PlaceholderGone, MessageHasMedia):
            return False
        return True

    async def send(self, ctx: UpdateContext, message: OutgoingMessage, *, reply_to: int | None = None) -> int:
        """Send a new message to the chat of the update, perhaps as a reply, and return its id."""
        reply = None if reply_to is None else {"message_id": reply_to, "allow_sending_without_reply": True}
        sent = await self._caller.call(
            self._caller.direct.send_message,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            message_thread_id=ctx.thread,
            reply_parameters=reply,
            **_content(message),
        )
        return sent.message_id

    async def send_text(self, ctx: UpdateContext, text: str) -> None:
        """Send a text as a message of its own; the screen message stays."""
        await self.send(ctx, OutgoingMessage(text=text))

    async def send_document(self, ctx: UpdateContext, document: str | InputFile, caption: str) -> str | None:
        """Send a file unchanged, by Telegram's file id or by its bytes; the screen message stays.

        Returns the file id, by which it can be sent again.
        """
        sent = await self._caller.call(
            self._caller.bot.send_document,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            message_thread_id=ctx.thread,
            document=document,
            caption=caption,
            parse_mode=ParseMode.HTML,
            disable_content_type_detection=True,
            read_timeout=UPLOAD_SECONDS,
        )
        return sent.document.file_id if sent.document else None

    async def send_photo(self, ctx: UpdateContext, photo: str | bytes) -> str:
        """Send a picture, by Telegram's file id or by its bytes, and return its file id; the screen message stays."""
        sent = await self._caller.call(
            self._caller.bot.send_photo,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            message_thread_id=ctx.thread,
            photo=photo,
            read_timeout=UPLOAD_SECONDS,
        )
        return sent.photo[-1].file_id

    async def send_to(self, chat: int, message: str | OutgoingMessage) -> None:
        """Send a message to a chat that no update came from."""
        content = _content(message if isinstance(message, OutgoingMessage) else OutgoingMessage(text=message))
        await self._caller.call(self._caller.direct.send_message, chat=chat, priority=Priority.SCREEN, **content)

    async def remove(self, chat: int, message_id: int) -> None:
        """Delete an old screen; if Telegram refuses, its buttons are answered as outdated when pressed."""
        # No permit (`chat=None`): Telegram does not count deletions, and the user waits for the next screen.
        await self._try(
            self._caller.direct.delete_message, chat=None, priority=Priority.SCREEN, chat_id=chat, message_id=message_id
        )

    async def toast(
        self, ctx: UpdateContext, text: str | None = None, *, alert: bool = False, url: str | None = None
    ) -> None:
        """Answer the callback query of the update, once. Without text it only ends the spinner; `url` is opened."""
        if ctx.query_id is None:
            return
        query, ctx.query_id = ctx.query_id, None
        await self._try(
            self._caller.direct.answer_callback_query,
            chat=None,
            priority=Priority.RESULT,
            callback_query_id=query,
            text=text[:TOAST_LENGTH] if text else None,
            show_alert=alert,
            url=url,
        )

    async def end_spinner(self, query_id: str) -> None:
        """Answer a callback query of which nothing else is known."""
        await self._try(
            self._caller.direct.answer_callback_query, chat=None, priority=Priority.RESULT, callback_query_id=query_id
        )

    async def _try(self, method: Callable[..., Awaitable[Any]], **arguments: Any) -> None:
        """Call Telegram and ignore a failure that changes nothing for the user; the caller counts it."""
        try:
            await self._caller.call(method, **arguments)
        except RecipientUnreachable:
            raise
        except ChannelError:
            return


def _content(message: OutgoingMessage) -> dict[str, Any]:
    message = fitted(message)
    return {
        "text": message.text,
        "parse_mode": HTML,
        "reply_markup": keyboard_json(message),
        "link_preview_options": NO_PREVIEW,
    }
