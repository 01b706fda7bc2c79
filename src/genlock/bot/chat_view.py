"""The bot's hands in a chat: one message that changes, kept with the draft it shows."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from telegram import LinkPreviewOptions
from telegram.constants import ParseMode

from genlock.bot.context import UpdateContext
from genlock.bot.order import draft as drafts
from genlock.bot.order import screens as order
from genlock.bot.order.draft import At, Draft
from genlock.bot.rules import BotRules
from genlock.bot.screen_context import ScreenContext, quote
from genlock.bot.storefront import screens as front
from genlock.bot.storefront.storefront import Storefront
from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import MessageHasMedia, MessageNotModified
from genlock.channels.telegram.messages import OutgoingMessage
from genlock.channels.telegram.text import fitted, keyboard
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import ChannelError, InvalidInput, PlaceholderGone, RecipientUnreachable
from genlock.i18n.translator import Html
from genlock.ports import Database

TOAST_LENGTH = 200
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class DraftChanged(Exception):
    """Another instance has changed the draft meanwhile: this handler must begin anew."""


class ChatView:
    """Shows, says and keeps. Whatever may be repeated is an edit; what may not is harmless twice."""

    def __init__(self, *, caller: Caller, store: Database, storefront: Storefront, rules: BotRules) -> None:
        self.caller = caller
        self.store = store
        self.storefront = storefront
        self.rules = rules
        #: the bot's own name, once it is known
        self.username = ""

    async def introduce(self) -> None:
        """Ask Telegram who we are, once."""
        if not self.username:
            me = await self.caller.call(self.caller.bot.get_me, chat=None, priority=Priority.SCREEN)
            self.username = (me.username or "").lower()

    @property
    def link(self) -> str:
        """The bot's own address."""
        return f"https://t.me/{self.username}"

    # the draft

    async def keep(self, ctx: UpdateContext, draft: Draft) -> None:
        """Write the draft that this update has led to."""
        draft = replace(await self._priced(ctx, draft), update=ctx.update, part=ctx.part)
        saved = SavedDraft(
            version=ctx.draft.version,
            message=draft.message,
            body=drafts.dump(draft),
            uploads=drafts.file_addresses(draft),
        )
        version = await self.store.save_draft(ctx.person, ctx.chat, saved)
        if version is None:
            raise DraftChanged
        ctx.draft = replace(draft, version=version)

    async def _priced(self, ctx: UpdateContext, draft: Draft) -> Draft:
        """What is about to be confirmed remembers the price that will be shown."""
        model = self.storefront.by_id(draft.model) if draft.at is At.CONFIRM and draft.price is None else None
        if model is None:
            return draft
        try:
            return replace(draft, price=quote(draft, model, await self.screen_context(ctx)).price)
        except InvalidInput:
            return draft

    async def screen_context(self, ctx: UpdateContext, *, order: str = "") -> ScreenContext:
        """What there is to spend; the free run that this order has taken already is still its own."""
        wallet = await self.store.wallet(ctx.person)
        free = await self.store.free_runs(ctx.person, self.rules.free_per_day, but=order)
        return ScreenContext(
            translator=ctx.translator, storefront=self.storefront, wallet=wallet, free=free, group=ctx.group
        )

    # screens

    async def screen(self, ctx: UpdateContext, *, note: Html | None = None) -> OutgoingMessage:
        """What the draft looks like."""
        screen, draft = await self.screen_context(ctx), ctx.draft
        model = self.storefront.by_id(draft.model) if draft.model else None
        if draft.at is At.LIST:
            return front.shelf(draft, screen)
        if draft.at is At.PROMO:
            return front.promo(screen, note=note)
        if model is None or draft.at in (At.HOME, At.ORDERED):
            return front.what_with(draft, screen, note=note) if draft.sent else front.menu(draft, screen, note=note)
        if draft.at is At.CONFIRM:
            return order.confirm(draft, model, screen, note=note)
        return (order.options if draft.at is At.OPTIONS else order.ask)(draft, model, screen)

    async def show_draft(self, ctx: UpdateContext, *, note: Html | None = None) -> None:
        await self.show(ctx, await self.screen(ctx, note=note))

    async def show(self, ctx: UpdateContext, said: OutgoingMessage) -> None:
        """Make the one message of this chat show it; it moves below what the person wrote last."""
        target = await self._target(ctx)
        if target is not None and await self.edit(ctx.chat, target, said):
            if ctx.draft.message != target:
                await self._move(ctx, target)
            return
        message = await self.send(ctx, said)
        await self._move(ctx, message)

    async def _target(self, ctx: UpdateContext) -> int | None:
        """The message to edit: the pressed one, or the one shown if nothing was written below it."""
        if ctx.pressed is not None:
            if ctx.pressed == ctx.draft.message:
                return ctx.pressed
            # In a group it may be somebody else's.
            kept = ctx.group or ctx.notice or await self.store.is_of_order(ctx.person, str(ctx.pressed))
            return None if kept else ctx.pressed
        shown = ctx.draft.message
        return shown if shown is not None and ctx.message is not None and shown > ctx.message else None

    async def _move(self, ctx: UpdateContext, message: int) -> None:
        old = ctx.draft.message
        await self.store.show_draft(ctx.person, ctx.chat, message)
        ctx.draft = replace(ctx.draft, message=message)
        if old is not None and old != message:
            await self.remove(ctx.chat, old)

    # calls

    async def edit(self, chat: int, message: int, said: OutgoingMessage) -> bool:
        """Whether the message shows it now; False if there is no such message to edit."""
        try:
            await self.caller.call(
                self.caller.bot.edit_message_text,
                chat=chat,
                priority=Priority.SCREEN,
                message_id=message,
                **_content(said),
            )
        except MessageNotModified:
            return True
        except (PlaceholderGone, MessageHasMedia):
            return False
        return True

    async def send(self, ctx: UpdateContext, said: OutgoingMessage) -> int:
        """A message of its own, below everything."""
        sent = await self.caller.call(
            self.caller.bot.send_message,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            message_thread_id=ctx.thread,
            **_content(said),
        )
        return sent.message_id

    async def say(self, ctx: UpdateContext, text: str) -> None:
        """A word beside the screen."""
        await self.send(ctx, OutgoingMessage(text=text))

    async def tell(self, chat: int, said: str | OutgoingMessage) -> None:
        """A word to somebody who has not just written."""
        content = _content(said if isinstance(said, OutgoingMessage) else OutgoingMessage(text=said))
        await self.caller.call(self.caller.bot.send_message, chat=chat, priority=Priority.SCREEN, **content)

    async def write(self, ctx: UpdateContext, action: str, subject: object, detail: str = "") -> None:
        """An operator did something: once per update in the book."""
        await self.store.add_audit(
            bot=str(self.caller.bot.id),
            key=f"update:{ctx.update}",
            actor=ctx.profile.external_id,
            action=action,
            subject=str(subject),
            detail=detail[:500],
        )

    async def remove(self, chat: int, message: int) -> None:
        """Take away a screen that has moved; where that cannot be, its buttons are told to be old when pressed."""
        # Without a turn: taking away is not among what Telegram counts, and the person waits for the next screen.
        await self._try(
            self.caller.bot.delete_message, chat=None, priority=Priority.SCREEN, chat_id=chat, message_id=message
        )

    async def toast(
        self, ctx: UpdateContext, text: str | None = None, *, alert: bool = False, url: str | None = None
    ) -> None:
        """Answer a press, once; without words it only stops the spinner. An address is one of ours, and is opened."""
        if ctx.query is None:
            return
        query, ctx.query = ctx.query, None
        await self._try(
            self.caller.bot.answer_callback_query,
            chat=None,
            priority=Priority.RESULT,
            callback_query_id=query,
            text=text[:TOAST_LENGTH] if text else None,
            show_alert=alert,
            url=url,
        )

    async def _try(self, method: Callable[..., Awaitable[Any]], **arguments: Any) -> None:
        """A call whose failure changes nothing for the person."""
        try:
            await self.caller.call(method, **arguments)
        except RecipientUnreachable:
            raise
        except ChannelError:
            return  # counted by the caller


def _content(said: OutgoingMessage) -> dict[str, Any]:
    said = fitted(said)
    return {
        "text": said.text,
        "parse_mode": ParseMode.HTML,
        "reply_markup": keyboard(said),
        "link_preview_options": NO_PREVIEW,
    }
