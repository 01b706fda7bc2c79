"""The bot's hands in a chat: one message that changes, kept with the draft it shows."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from telegram import LinkPreviewOptions
from telegram.constants import ParseMode

from genlock.bot import draft as drafts
from genlock.bot.draft import At, Draft
from genlock.bot.look import Look, quote
from genlock.bot.rules import ShopRules
from genlock.bot.screens import front, order
from genlock.bot.shop import Shop
from genlock.bot.tongue import Html
from genlock.bot.visit import Visit
from genlock.domain.chat import SavedDraft
from genlock.domain.errors import ChannelError, ChatClosed, InputRefused, PlaceholderGone
from genlock.ports import WholeStore
from genlock.telegram.calls import Caller, Priority
from genlock.telegram.errors import HasMedia, Unchanged
from genlock.telegram.text import fitted, keyboard
from genlock.telegram.words import Said

TOAST_LENGTH = 200
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class DraftChanged(Exception):
    """Another instance has changed the draft meanwhile: this handler must begin anew."""


class Desk:
    """Shows, says and keeps. Whatever may be repeated is an edit; what may not is harmless twice."""

    def __init__(self, *, caller: Caller, store: WholeStore, shop: Shop, rules: ShopRules) -> None:
        self.caller = caller
        self.store = store
        self.shop = shop
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

    async def keep(self, visit: Visit, draft: Draft) -> None:
        """Write the draft that this update has led to."""
        draft = replace(await self._priced(visit, draft), update=visit.update, part=visit.part)
        saved = SavedDraft(version=visit.draft.version, message=draft.message, body=drafts.dump(draft))
        version = await self.store.save_draft(visit.person, visit.chat, saved)
        if version is None:
            raise DraftChanged
        visit.draft = replace(draft, version=version)

    async def _priced(self, visit: Visit, draft: Draft) -> Draft:
        """What is about to be confirmed remembers the price that will be shown."""
        model = self.shop.by_id(draft.model) if draft.at is At.CONFIRM and draft.price is None else None
        if model is None:
            return draft
        try:
            return replace(draft, price=quote(draft, model, await self.look(visit)).price)
        except InputRefused:
            return draft

    async def look(self, visit: Visit, *, order: str = "") -> Look:
        """What there is to spend; the free run that this order has taken already is still its own."""
        wallet = await self.store.wallet(visit.person)
        free = await self.store.free_runs(visit.person, self.rules.free_per_day, but=order)
        return Look(tongue=visit.tongue, shop=self.shop, wallet=wallet, free=free, group=visit.group)

    # screens

    async def screen(self, visit: Visit, *, note: Html | None = None) -> Said:
        """What the draft looks like."""
        look, draft = await self.look(visit), visit.draft
        model = self.shop.by_id(draft.model) if draft.model else None
        if draft.at is At.LIST:
            return front.shelf(draft, look)
        if draft.at is At.PROMO:
            return front.promo(look, note=note)
        if model is None or draft.at in (At.HOME, At.ORDERED):
            return front.what_with(draft, look, note=note) if draft.sent else front.menu(draft, look, note=note)
        if draft.at is At.CONFIRM:
            return order.confirm(draft, model, look, note=note)
        return (order.options if draft.at is At.OPTIONS else order.ask)(draft, model, look)

    async def show_draft(self, visit: Visit, *, note: Html | None = None) -> None:
        await self.show(visit, await self.screen(visit, note=note))

    async def show(self, visit: Visit, said: Said) -> None:
        """Make the one message of this chat show it; it moves below what the person wrote last."""
        target = await self._target(visit)
        if target is not None and await self.edit(visit.chat, target, said):
            if visit.draft.message != target:
                await self._move(visit, target)
            return
        message = await self.send(visit, said)
        await self._move(visit, message)

    async def _target(self, visit: Visit) -> int | None:
        """The message to edit: the pressed one, or the one shown if nothing was written below it."""
        if visit.pressed is not None:
            if visit.pressed == visit.draft.message:
                return visit.pressed
            # In a group it may be somebody else's.
            kept = visit.group or visit.notice or await self.store.is_of_order(visit.person, str(visit.pressed))
            return None if kept else visit.pressed
        shown = visit.draft.message
        return shown if shown is not None and visit.message is not None and shown > visit.message else None

    async def _move(self, visit: Visit, message: int) -> None:
        old = visit.draft.message
        await self.store.show_draft(visit.person, visit.chat, message)
        visit.draft = replace(visit.draft, message=message)
        if old is not None and old != message:
            await self.remove(visit.chat, old)

    # calls

    async def edit(self, chat: int, message: int, said: Said) -> bool:
        """Whether the message shows it now; False if there is no such message to edit."""
        try:
            await self.caller.call(
                self.caller.bot.edit_message_text,
                chat=chat,
                priority=Priority.SCREEN,
                message_id=message,
                **_content(said),
            )
        except Unchanged:
            return True
        except (PlaceholderGone, HasMedia):
            return False
        return True

    async def send(self, visit: Visit, said: Said) -> int:
        """A message of its own, below everything."""
        sent = await self.caller.call(
            self.caller.bot.send_message,
            chat=visit.chat,
            priority=Priority.SCREEN,
            message_thread_id=visit.thread,
            **_content(said),
        )
        return sent.message_id

    async def say(self, visit: Visit, text: str) -> None:
        """A word beside the screen."""
        await self.send(visit, Said(text=text))

    async def tell(self, chat: int, said: str | Said) -> None:
        """A word to somebody who has not just written."""
        content = _content(said if isinstance(said, Said) else Said(text=said))
        await self.caller.call(self.caller.bot.send_message, chat=chat, priority=Priority.SCREEN, **content)

    async def write(self, visit: Visit, action: str, subject: object, detail: str = "") -> None:
        """An operator did something: once per update in the book."""
        await self.store.add_audit(
            key=f"update:{visit.update}",
            actor=visit.profile.outside_id,
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
        self, visit: Visit, text: str | None = None, *, alert: bool = False, url: str | None = None
    ) -> None:
        """Answer a press, once; without words it only stops the spinner. An address is one of ours, and is opened."""
        if visit.query is None:
            return
        query, visit.query = visit.query, None
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
        except ChatClosed:
            raise
        except ChannelError:
            return  # counted by the caller


def _content(said: Said) -> dict[str, Any]:
    said = fitted(said)
    return {
        "text": said.text,
        "parse_mode": ParseMode.HTML,
        "reply_markup": keyboard(said),
        "link_preview_options": NO_PREVIEW,
    }
