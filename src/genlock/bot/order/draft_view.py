"""Saves the draft of a user and shows it as the chat's screen."""

from dataclasses import replace

from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order import confirm_screen, improve_screens, per_file, remembered, styles
from genlock.bot.order import draft as drafts
from genlock.bot.order import screens as order
from genlock.bot.order.draft import Draft, Sale, Step
from genlock.bot.order.extras import is_card
from genlock.bot.order.voice_list import is_voice
from genlock.bot.rules import BotRules
from genlock.bot.samples import Samples
from genlock.bot.screen_context import ScreenContext, choice_label
from genlock.bot.screen_files import ScreenFile
from genlock.bot.storefront import menu_screens as menus
from genlock.bot.storefront import screens as front
from genlock.bot.storefront.popularity import Popularity
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field
from genlock.domain.promo import FreeRuns
from genlock.i18n.translator import Html, Translator
from genlock.ports import Database, OutgoingMessage

#: steps whose screen shows a price that the user agrees to
_PRICED = (Step.CONFIRM, Step.IMPROVE)
_SCREENS = {
    Step.ASK: order.ask,
    Step.EDIT: order.ask,
    Step.OPTIONS: order.options,
    Step.STYLE: styles.screen,
    Step.IMPROVE: improve_screens.confirm,
}
NO_FREE_RUNS = FreeRuns(today=0, gifts=0)


class DraftChanged(Exception):
    """Another instance saved the draft meanwhile: the update must be handled from the start."""


class DraftView:
    def __init__(
        self,
        *,
        view: ChatView,
        store: Database,
        storefront: Storefront,
        rules: BotRules,
        popularity: Popularity,
        samples: Samples,
    ) -> None:
        self._view = view
        self._samples = samples
        self._popularity = popularity
        self._store = store
        self._storefront = storefront
        self._rules = rules

    async def save(self, ctx: UpdateContext, draft: Draft) -> None:
        """Save the draft that this update has led to. Raises DraftChanged."""
        await self._write(ctx, replace(await self._priced(ctx, draft), sale=None, partial_text=ctx.partial_text))

    async def begin_sale(self, ctx: UpdateContext, sale: Sale) -> None:
        """Save that the draft is about to be sold, so that its message is no longer the screen. Raises DraftChanged."""
        await self._write(ctx, replace(ctx.draft, message=None, sale=sale))

    async def _write(self, ctx: UpdateContext, draft: Draft) -> None:
        draft = replace(draft, update=ctx.update, place=ctx.place)
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
        model = self._storefront.by_id(draft.model) if draft.step in _PRICED and draft.price is None else None
        if model is None:
            return draft
        if draft.step is Step.IMPROVE:
            found = improve_screens.quote(draft, model, await self.screen_context(ctx))
            return replace(draft, price=found[1].price) if found else draft
        free = await self._free_runs(ctx) if model.free else NO_FREE_RUNS
        try:
            quotes = self._storefront.quotes(model, per_file.orders_of(draft, model), free_left=free.left)
        except InvalidInput:
            return draft
        first, *others = (quote.price for quote in quotes)
        return replace(draft, price=first, other_prices=tuple(others))

    async def with_last_settings(self, ctx: UpdateContext, draft: Draft) -> Draft:
        """Return a draft that has just been started with the settings that its model was last ordered with."""
        model = self._storefront.by_id(draft.model) if draft.in_progress else None
        if model is None:
            return draft
        last = await self._store.model_settings(ctx.account_id, model.id)
        return remembered.begin_with(draft, model, remembered.read(last)) if last else draft

    async def screen_context(self, ctx: UpdateContext) -> ScreenContext:
        """Read what screens show besides the draft: the wallet, favourites and the free runs."""
        await self._popularity.refresh()
        wallet, favourites = await self._store.wallet_and_favourites(ctx.account_id)
        free = await self._free_runs(ctx) if self._storefront.has_free_models else NO_FREE_RUNS
        draft = ctx.draft
        starred = draft.step in (Step.HOME, Step.ORDERED) or is_card(draft)
        voices = is_voice(self._field(draft))
        return ScreenContext(
            translator=ctx.translator,
            storefront=self._storefront,
            wallet=wallet,
            free=free,
            group=ctx.group,
            favourites=favourites if starred else (),
            voices_with_sample=await self._samples.voices() if voices else frozenset(),
            first_order=not ctx.profile.last_model,
        )

    def _field(self, draft: Draft) -> Field | None:
        """Return the field that the draft asks for."""
        model = self._storefront.by_id(draft.model) if draft.model else None
        return model.field(draft.field) if model and draft.step in (Step.ASK, Step.EDIT) else None

    async def _free_runs(self, ctx: UpdateContext) -> FreeRuns:
        return await self._store.free_runs(ctx.account_id, self._rules.free_per_day)

    async def show(self, ctx: UpdateContext, *, note: Html | None = None) -> None:
        """Show the draft; `note` is a line above it."""
        message = render(ctx.draft, await self.screen_context(ctx), note=note)
        await self._view.show(ctx, message, await self._file(ctx.draft, ctx.translator))

    async def _file(self, draft: Draft, t: Translator) -> ScreenFile | None:
        """Return the file that the screen of a draft shows: the styles, a voice, the model's sample."""
        model = self._storefront.by_id(draft.model) if draft.model else None
        if model is None:
            return None
        if draft.step is Step.STYLE:
            return styles.sheet(styles.styles_for(self._storefront.catalog, model))
        field = self._field(draft)
        if field is not None and is_voice(field) and draft.played:
            return await self._samples.of_voice(draft.played, choice_label(field, draft.played, t))
        return await self._samples.of_model(model) if is_card(draft) and not draft.problem else None


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
        return confirm_screen.confirm(draft, model, screen, note=note)
    return _SCREENS[draft.step](draft, model, screen)
