"""Saves the draft of a user and shows it as the chat's screen."""

from dataclasses import replace

from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order import draft as drafts
from genlock.bot.order import per_file
from genlock.bot.order import screens as order
from genlock.bot.order.draft import Draft, Step
from genlock.bot.rules import BotRules
from genlock.bot.screen_context import ScreenContext
from genlock.bot.storefront import menu_screens as menus
from genlock.bot.storefront import screens as front
from genlock.bot.storefront.popularity import Popularity
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import InvalidInput
from genlock.domain.promo import FreeRuns
from genlock.i18n.translator import Html
from genlock.ports import Database, OutgoingMessage

NO_FREE_RUNS = FreeRuns(today=0, gifts=0)


class DraftChanged(Exception):
    """Another instance saved the draft meanwhile: the update must be handled from the start."""


class DraftView:
    def __init__(
        self, *, view: ChatView, store: Database, storefront: Storefront, rules: BotRules, popularity: Popularity
    ) -> None:
        self._view = view
        self._popularity = popularity
        self._store = store
        self._storefront = storefront
        self._rules = rules

    async def save(self, ctx: UpdateContext, draft: Draft) -> None:
        """Save the draft that this update has led to. Raises DraftChanged."""
        draft = replace(await self._priced(ctx, draft), update=ctx.update, partial_text=ctx.partial_text)
        saved = SavedDraft(
            version=ctx.draft.version,
            message=draft.message,
            body=drafts.dump(draft),
            uploads=drafts.file_urls(draft),
        )
        version = await self._store.save_draft(ctx.account_id, ctx.chat, saved)
        if version is None:
            raise DraftChanged
        ctx.draft = replace(draft, version=version)

    async def _priced(self, ctx: UpdateContext, draft: Draft) -> Draft:
        """Record the price that the confirmation is about to show: the user agrees to it."""
        model = self._storefront.by_id(draft.model) if draft.step is Step.CONFIRM and draft.price is None else None
        if model is None:
            return draft
        free = await self._free_runs(ctx) if model.free else NO_FREE_RUNS
        try:
            quotes = self._storefront.quotes(model, per_file.orders_of(draft, model), free_left=free.left)
        except InvalidInput:
            return draft
        first, *others = (quote.price for quote in quotes)
        return replace(draft, price=first, other_prices=tuple(others))

    async def screen_context(self, ctx: UpdateContext) -> ScreenContext:
        """Read what screens show besides the draft: the wallet and the free runs."""
        await self._popularity.refresh()
        wallet = await self._store.wallet(ctx.account_id)
        free = await self._free_runs(ctx) if self._storefront.has_free_models else NO_FREE_RUNS
        return ScreenContext(
            translator=ctx.translator,
            storefront=self._storefront,
            wallet=wallet,
            free=free,
            group=ctx.group,
            first_order=not ctx.profile.last_model,
        )

    async def _free_runs(self, ctx: UpdateContext) -> FreeRuns:
        return await self._store.free_runs(ctx.account_id, self._rules.free_per_day)

    async def show(self, ctx: UpdateContext, *, note: Html | None = None) -> None:
        """Show the draft; `note` is a line above it."""
        await self._view.show(ctx, render(ctx.draft, await self.screen_context(ctx), note=note))


def render(draft: Draft, screen: ScreenContext, *, note: Html | None = None) -> OutgoingMessage:
    """Return the screen of a draft: the only place that chooses a screen by the draft's step."""
    model = screen.storefront.by_id(draft.model) if draft.model else None
    if draft.step is Step.LIST:
        wish = screen.storefront.catalog.wish(draft.wish) if draft.popular and not draft.query else None
        return menus.short_list(draft, wish, screen) if wish else front.model_list(draft, screen)
    if draft.step is Step.PROMO:
        return front.promo(screen, note=note)
    if model is None or draft.step in (Step.HOME, Step.ORDERED):
        return front.file_menu(draft, screen, note=note) if draft.sent else menus.menu(draft, screen, note=note)
    if draft.step is Step.CONFIRM:
        return order.confirm(draft, model, screen, note=note)
    return (order.options if draft.step is Step.OPTIONS else order.ask)(draft, model, screen)
