"""Pages outside the order wizard: wallet, history, help, language. Opened by a command or a button."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import ButtonData, Row, button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, Handler, UpdateContext
from genlock.bot.money import screens as wallet_screens
from genlock.bot.money.gifts import Gifts, invitation
from genlock.bot.money.invoices import Invoices
from genlock.bot.order.draft import Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders
from genlock.bot.order.per_file import orders_of
from genlock.bot.screen_context import quote_each
from genlock.bot.storefront import screens as front
from genlock.bot.storefront.languages import language_rows, languages_text
from genlock.channels.telegram.address import Address
from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidInput
from genlock.domain.job import Job
from genlock.i18n.translator import Html
from genlock.ports import Button, Database, OutgoingMessage

LEDGER_ENTRIES_READ = 60
RUNNING_READ = 20
#: orders that are read for one page of the history if some of them are left out
HISTORY_WINDOW = 200


def elsewhere(job: Job, chat: int) -> bool:
    """Whether the order was made in another chat, or by a program of the user."""
    return job.channel != CHANNEL or Address.parse(job.address).chat != chat


def _is_listed(job: Job) -> bool:
    return (not job.erased or bool(job.parts)) and not job.hidden


class Pages:
    def __init__(
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        orders: Orders,
        invoices: Invoices,
        gifts: Gifts,
        bundle: BotBundle,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._orders = orders
        self._invoices = invoices
        self._gifts = gifts
        self._bundle = bundle
        #: pages by the payload of /start, as links to the bot have it
        self.start_pages: Mapping[str, Callable[[UpdateContext], Awaitable[None]]] = {
            "balance": self.balance,
            "topup": self.topup,
            "history": self.history,
            "promo": lambda ctx: self.promo(ctx, ""),
            "invite": self.invite,
        }
        self.button_handlers: Mapping[str, Handler] = {
            "balance": lambda ctx, _: self.balance(ctx),
            "topup": lambda ctx, _: self.topup(ctx),
            "buy": lambda ctx, data: self._invoices.send(ctx, data.number()),
            "history": lambda ctx, data: self.history(ctx, ctx.order_id(data)),
            "order": self._order,
            "help": lambda ctx, _: self.help(ctx),
            "language": lambda ctx, _: self.language(ctx),
            "speak": lambda ctx, data: self.set_language(ctx, data.word()),
            "promo": lambda ctx, _: self.promo(ctx, ""),
            "invite": lambda ctx, _: self.invite(ctx),
            "here": lambda ctx, _: self._back_to_draft(ctx),
        }

    async def _show(self, ctx: UpdateContext, message: OutgoingMessage) -> None:
        """Show a page. An order in progress stays in the draft; a model list or a promo question is left."""
        await self._view.toast(ctx)
        if ctx.draft.step in (Step.LIST, Step.PROMO):
            await self._drafts.save(ctx, ctx.draft.keeping_input())
        await self._view.show(ctx, message)

    async def is_group(self, ctx: UpdateContext, page: str) -> bool:
        """In a group, link to the same page in the private chat instead; return whether it was a group."""
        if not ctx.group:
            return False
        t, url = ctx.translator, f"{self._bundle.link}?start={page}"
        if ctx.button_message is None:
            link = Button(text=t.plain("button.open_private"), url=url)
            await self._view.send(ctx, OutgoingMessage(text=t.html("misc.group_private"), buttons=((link,),)))
        await self._view.toast(ctx, url=url)
        return True

    async def balance(self, ctx: UpdateContext) -> None:
        if await self.is_group(ctx, "balance"):
            return
        ledger_entries = await self._store.ledger_entries(ctx.account_id, LEDGER_ENTRIES_READ)
        await self._show(ctx, wallet_screens.balance(await self._drafts.screen_context(ctx), ledger_entries))

    async def topup(self, ctx: UpdateContext) -> None:
        if await self.is_group(ctx, "topup"):
            return
        rules = self._bundle.rules
        await self._show(
            ctx, wallet_screens.topup(await self._drafts.screen_context(ctx), rules.packages, support=rules.support)
        )

    async def topup_for(self, ctx: UpdateContext, model: Model) -> None:
        """Show the packages while an order waits for credits."""
        if await self.is_group(ctx, "topup"):
            return
        await self._view.toast(ctx)
        screen, rules = await self._drafts.screen_context(ctx), self._bundle.rules
        try:
            costs = quote_each(orders_of(ctx.draft, model), model, screen)
            missing = sum(cost.price for cost in costs) - screen.wallet.available
        except InvalidInput:
            missing = 0
        await self._view.show(ctx, wallet_screens.topup(screen, rules.packages, support=rules.support, missing=missing))

    async def _back_to_draft(self, ctx: UpdateContext) -> None:
        """Go back to the draft."""
        await self._view.toast(ctx)
        await self._drafts.show(ctx)

    async def history(self, ctx: UpdateContext, before: int = -1) -> None:
        if await self.is_group(ctx, "history"):
            return
        newest = before < 0
        page, older = await self._history_page(ctx.account_id, None if newest else before)
        await self._show(
            ctx, wallet_screens.history(await self._drafts.screen_context(ctx), page, newest=newest, older=older)
        )

    async def _history_page(self, account_id: int, before: int | None) -> tuple[list[Job], int | None]:
        """Return a page of orders below an id, and the id below which the next one begins; None after the last.

        What was erased or removed at the user's wish is left out. After many such orders in a row a page may be short.
        """
        size, read = wallet_screens.HISTORY_A_PAGE, wallet_screens.HISTORY_A_PAGE + 1
        jobs = await self._store.jobs(account_id=account_id, before=before, limit=read)
        if len(jobs) == read and sum(map(_is_listed, jobs)) < len(jobs):
            read = HISTORY_WINDOW
            jobs = await self._store.jobs(account_id=account_id, before=before, limit=read)
        listed = [job for job in jobs if _is_listed(job)]
        if len(listed) > size:
            return listed[:size], listed[size - 1].id
        return listed, jobs[-1].id if len(jobs) == read else None

    async def running(self, ctx: UpdateContext) -> bool:
        """Offer to cancel running orders; return False if there are none. In a group, only those ordered there."""
        jobs = await self._store.open_jobs(ctx.account_id, RUNNING_READ)
        running = [job for job in jobs if not (ctx.group and elsewhere(job, ctx.chat))]
        if running:
            await self._show(ctx, wallet_screens.cancellable(await self._drafts.screen_context(ctx), running))
        return bool(running)

    async def _order(self, ctx: UpdateContext, data: ButtonData) -> None:
        job = await self._orders.find_own(ctx, ctx.order_id(data))
        if job is not None:
            await self._show(ctx, wallet_screens.order(await self._drafts.screen_context(ctx), job))

    async def help(self, ctx: UpdateContext, *, note: Html | None = None) -> None:
        t = ctx.translator
        text = t.html("help.group", bot=self._bundle.username) if ctx.group else t.html("help.text")
        api = [t.html("api.help")] if self._bundle.rules.api_url and not ctx.group else []
        await self.send_text(ctx, Html("\n".join([*([note, ""] if note else []), text, *api])))

    async def show_text(self, ctx: UpdateContext, text: Html, *rows: Row) -> None:
        """Show a page of text."""
        screen = await self._drafts.screen_context(ctx)
        await self._show(ctx, front.page(screen, text, in_progress=ctx.draft.in_progress, rows=rows))

    async def send_text(self, ctx: UpdateContext, text: Html, *rows: Row) -> None:
        """Answer a command with a page of its own that stays in the chat; after a button, show it as the screen."""
        if ctx.button_message is not None:
            await self.show_text(ctx, text, *rows)
            return
        await self.send_page(ctx, text, *rows)

    async def send_page(self, ctx: UpdateContext, text: Html, *rows: Row) -> None:
        """Send a page of its own that stays in the chat; the screen message stays, too."""
        screen = await self._drafts.screen_context(ctx)
        page = front.page(screen, text, in_progress=ctx.draft.in_progress, rows=rows, below=True)
        await self._view.send(ctx, page)

    async def terms(self, ctx: UpdateContext) -> None:
        await self.send_text(ctx, ctx.translator.html("terms.text"))

    async def paysupport(self, ctx: UpdateContext) -> None:
        t = ctx.translator
        support = self._bundle.rules.support or t.plain("paysupport.support_default")
        await self.send_text(ctx, t.html("paysupport.text", support=support, user=ctx.profile.external_id))

    async def language(self, ctx: UpdateContext) -> None:
        await self.show_text(ctx, languages_text(ctx.translator), *language_rows(ctx.translator))

    async def set_language(self, ctx: UpdateContext, language: str) -> None:
        """Change the user's language."""
        if language in ctx.texts.languages:
            await self._store.set_language(ctx.account_id, language)
            ctx.profile = replace(ctx.profile, language=language)
        await self._view.toast(ctx, ctx.translator.plain("language.chosen"))
        await self._drafts.show(ctx, note=ctx.translator.html("language.chosen"))

    async def promo(self, ctx: UpdateContext, code: str) -> None:
        if await self.is_group(ctx, "promo"):
            return
        await self._view.toast(ctx)
        if code and (answer := await self._gifts.promo(ctx, code)) is not None:
            await self._drafts.save(ctx, ctx.draft.cleared())
            await self._drafts.show(ctx, note=answer)
            return
        note = ctx.translator.html("promo.unknown") if code else None
        await self._drafts.save(ctx, replace(ctx.draft.cleared(), step=Step.PROMO))
        await self._drafts.show(ctx, note=note)

    async def invite(self, ctx: UpdateContext) -> None:
        if await self.is_group(ctx, "invite"):
            return
        rules, link = self._bundle.rules, f"{self._bundle.link}?start={invitation(ctx.account_id, ctx.texts.numbers)}"
        text, share = wallet_screens.invite(
            ctx.translator, link, inviter=rules.reward_inviter, invited=rules.reward_invited
        )
        back: tuple[Row, ...] = ((button(ctx.translator.plain("button.back"), "balance"),),)
        await self.send_text(ctx, text, share, *(back if ctx.button_message is not None else ()))
