"""Pages beside the way of an order: money, past orders, help. Each is opened by a command or a button."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import ButtonData, Row, base36
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, UpdateContext
from genlock.bot.money import screens as hold_state
from genlock.bot.money.gifts import Gifts
from genlock.bot.money.payments import Payments
from genlock.bot.order.draft import At
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders
from genlock.bot.rules import BotRules
from genlock.bot.screen_context import quote
from genlock.bot.storefront import screens as front
from genlock.bot.storefront.languages import language_rows, languages_text
from genlock.channels.telegram.address import Address
from genlock.channels.telegram.messages import Button, OutgoingMessage
from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidInput
from genlock.domain.job import Job
from genlock.i18n.translator import Html
from genlock.ports import Database

Handler = Callable[[UpdateContext, ButtonData], Awaitable[None]]
MOVEMENTS_READ = 60
RUNNING_LOOKED_AT = 20


def elsewhere(job: Job, chat: int) -> bool:
    """Whether the order was made in another chat."""
    return job.channel == CHANNEL and Address.parse(job.address).chat != chat


class Pages:
    def __init__(
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        orders: Orders,
        payments: Payments,
        gifts: Gifts,
        identity: BotBundle,
        rules: BotRules,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._orders = orders
        self._payments = payments
        self._gifts = gifts
        self._identity = identity
        self._rules = rules
        #: by the words behind /start, as links to a page have them
        self.linked: Mapping[str, Callable[[UpdateContext], Awaitable[None]]] = {
            "balance": self.balance,
            "topup": self.topup,
            "history": self.history,
            "promo": lambda ctx: self.promo(ctx, ""),
            "invite": self.invite,
        }
        self.presses: Mapping[str, Handler] = {
            "balance": lambda ctx, _: self.balance(ctx),
            "topup": lambda ctx, _: self.topup(ctx),
            "buy": lambda ctx, press: self._payments.send_invoice(ctx, press.number()),
            "history": lambda ctx, press: self.history(ctx, press.number()),
            "order": self._order,
            "help": lambda ctx, _: self.help(ctx),
            "language": lambda ctx, _: self.language(ctx),
            "speak": lambda ctx, press: self.speak(ctx, press.word()),
            "promo": lambda ctx, _: self.promo(ctx, ""),
            "invite": lambda ctx, _: self.invite(ctx),
            "here": lambda ctx, _: self._here(ctx),
        }

    async def _page(self, ctx: UpdateContext, said: OutgoingMessage) -> None:
        """Show a page; a begun order waits behind it where one has been begun."""
        await self._view.toast(ctx)
        if ctx.draft.at in (At.LIST, At.PROMO):
            await self._drafts.save(ctx, ctx.draft.carrying())
        await self._view.show(ctx, said)

    async def _private(self, ctx: UpdateContext, page: str) -> bool:
        """Money and past orders are nobody else's business: the way leads to the same page in the private chat."""
        if not ctx.group:
            return False
        t, url = ctx.translator, f"{self._identity.link}?start={page}"
        if ctx.pressed is None:
            link = Button(text=t.plain("button.open_private"), url=url)
            await self._view.send(ctx, OutgoingMessage(text=t.html("misc.group_private"), buttons=((link,),)))
        await self._view.toast(ctx, url=url)
        return True

    async def balance(self, ctx: UpdateContext) -> None:
        if await self._private(ctx, "balance"):
            return
        ledger_entries = await self._store.ledger_entries(ctx.person, MOVEMENTS_READ)
        await self._page(ctx, hold_state.balance(await self._drafts.screen_context(ctx), ledger_entries))

    async def topup(self, ctx: UpdateContext) -> None:
        if await self._private(ctx, "topup"):
            return
        rules = self._rules
        await self._page(
            ctx, hold_state.topup(await self._drafts.screen_context(ctx), rules.packages, support=rules.support)
        )

    async def topup_for(self, ctx: UpdateContext, model: Model) -> None:
        """Packages, while an order waits for its money."""
        if await self._private(ctx, "topup"):
            return
        await self._view.toast(ctx)
        screen, rules = await self._drafts.screen_context(ctx), self._rules
        try:
            missing = quote(ctx.draft, model, screen).price - screen.wallet.available
        except InvalidInput:
            missing = 0
        await self._view.show(ctx, hold_state.topup(screen, rules.packages, support=rules.support, missing=missing))

    async def _here(self, ctx: UpdateContext) -> None:
        """Back to what was begun."""
        await self._view.toast(ctx)
        await self._drafts.show(ctx)

    async def history(self, ctx: UpdateContext, before: int = -1) -> None:
        if await self._private(ctx, "history"):
            return
        newest = before < 0
        jobs = await self._store.jobs(
            account_id=ctx.person, before=None if newest else before, limit=hold_state.HISTORY_A_PAGE + 1
        )
        shown, more = jobs[: hold_state.HISTORY_A_PAGE], len(jobs) > hold_state.HISTORY_A_PAGE
        await self._page(
            ctx, hold_state.history(await self._drafts.screen_context(ctx), shown, newest=newest, more=more)
        )

    async def running(self, ctx: UpdateContext) -> bool:
        """Offer to cancel what is in the works; False if nothing is. In a group, only what was ordered there."""
        jobs = await self._store.jobs(account_id=ctx.person, limit=RUNNING_LOOKED_AT)
        running = [job for job in jobs if not job.ended and not (ctx.group and elsewhere(job, ctx.chat))]
        if running:
            await self._page(ctx, hold_state.cancellable(await self._drafts.screen_context(ctx), running))
        return bool(running)

    async def _order(self, ctx: UpdateContext, press: ButtonData) -> None:
        job = await self._orders.mine(ctx, press.number())
        if job is not None:
            await self._page(ctx, hold_state.order(await self._drafts.screen_context(ctx), job))

    async def help(self, ctx: UpdateContext, *, note: Html | None = None) -> None:
        t = ctx.translator
        text = t.html("help.group", bot=self._identity.username) if ctx.group else t.html("help.text")
        lines = [*([note, ""] if note else []), text]
        await self.read(ctx, Html("\n".join(lines)))

    async def read(self, ctx: UpdateContext, text: Html, *rows: Row) -> None:
        """Something to read."""
        screen = await self._drafts.screen_context(ctx)
        await self._page(ctx, front.page(screen, text, begun=ctx.draft.begun, rows=rows))

    async def terms(self, ctx: UpdateContext) -> None:
        await self.read(ctx, ctx.translator.html("terms.text"))

    async def paysupport(self, ctx: UpdateContext) -> None:
        t = ctx.translator
        support = self._rules.support or t.plain("paysupport.support_default")
        await self.read(ctx, t.html("paysupport.text", support=support, person=str(ctx.person)))

    async def language(self, ctx: UpdateContext) -> None:
        await self.read(ctx, languages_text(ctx.translator), *language_rows(ctx.translator))

    async def speak(self, ctx: UpdateContext, language: str) -> None:
        """Another language, from now on."""
        if language in ctx.texts.languages:
            await self._store.set_language(ctx.person, language)
            ctx.profile = replace(ctx.profile, language=language)
        await self._view.toast(ctx, ctx.translator.plain("language.chosen"))
        await self._drafts.show(ctx, note=ctx.translator.html("language.chosen"))

    async def promo(self, ctx: UpdateContext, code: str) -> None:
        if await self._private(ctx, "promo"):
            return
        await self._view.toast(ctx)
        if code and (told := await self._gifts.promo(ctx, code)) is not None:
            await self._drafts.save(ctx, ctx.draft.emptied())
            await self._drafts.show(ctx, note=told)
            return
        note = ctx.translator.html("promo.unknown") if code else None
        await self._drafts.save(ctx, replace(ctx.draft.emptied(), at=At.PROMO))
        await self._drafts.show(ctx, note=note)

    async def invite(self, ctx: UpdateContext) -> None:
        if await self._private(ctx, "invite"):
            return
        rules, link = self._rules, f"{self._identity.link}?start=r{base36(ctx.person)}"
        said = hold_state.invite(ctx.translator, link, inviter=rules.reward_inviter, invited=rules.reward_invited)
        await self._page(ctx, said)
