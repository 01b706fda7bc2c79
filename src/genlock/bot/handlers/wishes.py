"""Handles wishes: entries of the menu, texts that no step asked for, searches, and the examples of the first screen."""

from collections.abc import Mapping
from dataclasses import replace

from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.order import per_file, wizard
from genlock.bot.order.draft import Draft, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.next_step_drafts import captioned
from genlock.bot.order.suggestions import Target, suggest, target_of
from genlock.bot.screen_context import model_label
from genlock.bot.storefront.menu_screens import EVERY
from genlock.bot.storefront.screens import ALL, taking
from genlock.bot.storefront.storefront import BEGINS_WITH, Storefront
from genlock.domain.catalog import Category, Model
from genlock.domain.wish import Wish

#: a text of this many words in a model list is a sentence, not a name
SENTENCE_WORDS = 3


class Wishes:
    def __init__(self, *, view: ChatView, drafts: DraftView, storefront: Storefront) -> None:
        self._view = view
        self._drafts = drafts
        self._storefront = storefront
        self.button_handlers: Mapping[str, Handler] = {"wish": self._open, "cat": self._category, "try": self._example}

    # the menu

    async def _open(self, ctx: UpdateContext, data: ButtonData) -> None:
        wish = self._storefront.catalog.wish(data.word())
        await self._show_list(ctx, wish, "", every=data.word(1) == EVERY)

    async def _category(self, ctx: UpdateContext, data: ButtonData) -> None:
        category, every = data.word(), data.word(2) == EVERY
        if category == ALL:
            listed = replace(ctx.draft.keeping_input(), step=Step.LIST, page=max(data.number(1), 0))
            await self._save_and_show(ctx, listed)
            return
        wish = self._storefront.catalog.wish_of(category)
        if wish is None and category in set(Category):
            await self._save_and_show(ctx, replace(ctx.draft.keeping_input(), step=Step.LIST, category=category))
            return
        await self._show_list(ctx, wish, category, every=every)

    async def _show_list(self, ctx: UpdateContext, wish: Wish | None, category: str, *, every: bool) -> None:
        """Show the models of a wish or a category; a single one is opened at once."""
        kept = ctx.draft.keeping_input()
        models = taking(kept, self._storefront.wish_models(wish, category)) if wish else []
        if wish is None or not models:
            await self._save_and_show(ctx, kept)
            return
        if len(models) == 1:
            opened = open_model(kept, models[0], wish, category)
            await self._save_and_show(ctx, await self._drafts.with_last_settings(ctx, opened))
            return
        await self._save_and_show(
            ctx, replace(kept, step=Step.LIST, wish=wish.name, category=category, popular=not every)
        )

    async def _example(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Show the confirmation of an example: with a model that the user can pay, if there is one."""
        t, wish = ctx.translator, self._storefront.catalog.wish(data.word())
        key = f"try.prompt_{data.word()}"
        target = target_of(self._storefront, t.plain(key), wish) if wish and key in t else None
        draft = None
        if target is not None:
            budget = (await self._drafts.screen_context(ctx)).wallet.available
            draft = suggest(self._storefront, ctx.draft.cleared(), target, budget=budget)
        await self._save_and_show(ctx, draft or ctx.draft.cleared())

    # texts

    async def offer(self, ctx: UpdateContext, text: str, wish: Wish | None = None) -> None:
        """Answer a text that no step asked for: with an order, the models that it names, or an entry of the menu."""
        carried = replace(ctx.draft.keeping_input(), text=text)
        if carried.sent:
            await self._save_and_show(ctx, captioned(carried, self._storefront, wish.categories[0] if wish else ""))
            return
        draft = self._named(ctx, text) if wish is None else None
        if draft is None:
            draft = self._wished(ctx, target_of(self._storefront, text, wish, ctx.profile.last_model))
        await self._show_offer(ctx, draft or replace(carried, step=Step.LIST))

    def _named(self, ctx: UpdateContext, text: str) -> Draft | None:
        """Return the order of the model that a text begins with, or the list of the models that it names."""
        index, clear = self._storefront.index, ctx.draft.cleared()
        if (found := index.named_before(text)) is not None:
            model, rest = found
            wish = self._storefront.catalog.wish_of(model.category)
            started = wizard.start_with_defaults(replace(clear, text=rest), model, model.category.value)
            return replace(started, path=(), wish=wish.name if wish else "")
        if self._storefront.intents.read(text) is None and index.named(text):
            return replace(clear, step=Step.LIST, query=text)
        return None

    def _wished(self, ctx: UpdateContext, target: Target) -> Draft | None:
        """Return the order that is wanted; the short list if the text only names the wish."""
        if not target.text and target.category not in BEGINS_WITH and not target.models and target.wish.name:
            category = target.category if target.category != target.wish.categories[0] else ""
            listed = replace(ctx.draft.cleared(), wish=target.wish.name, category=category)
            return replace(listed, step=Step.LIST, popular=True)
        return suggest(self._storefront, ctx.draft, target, ctx.profile.last_model)

    async def _show_offer(self, ctx: UpdateContext, draft: Draft) -> None:
        draft = await self._drafts.with_last_settings(ctx, draft)
        await self._drafts.save(ctx, draft)
        t, model = ctx.translator, self._storefront.by_id(draft.model)
        suggested = draft.step is Step.CONFIRM and model is not None
        note = t.html("confirm.suggestion", title=model_label(model, t)) if suggested and model else None
        await self._drafts.show(ctx, note=note)

    async def search(self, ctx: UpdateContext, text: str) -> None:
        """Search the model list. A sentence is a wish; in a short list every text is one, unless it is a name."""
        draft, front = ctx.draft, self._storefront
        category = Category(draft.category) if draft.category in set(Category) else None
        wish = front.catalog.wish(draft.wish)
        short = draft.popular and not draft.query
        found = front.index.find(text, topics=False) if short else front.search(text, category)
        is_name = len(text.split()) < SENTENCE_WORDS or (found and not short)
        if found if short else is_name:
            await self._save_and_show(ctx, replace(draft, query=text, page=0))
            return
        await self.offer(ctx, text, wish or (front.catalog.wish_of(category) if category else None))

    async def make(self, ctx: UpdateContext) -> None:
        """Make what was searched for: the text of a search is a wish after all."""
        draft, catalog = ctx.draft, self._storefront.catalog
        wish = catalog.wish(draft.wish) or (catalog.wish_of(draft.category) if draft.category else None)
        await self._view.toast(ctx)
        target = target_of(self._storefront, draft.query, wish, ctx.profile.last_model)
        target = replace(target, text=target.text or draft.query)
        made = suggest(self._storefront, draft, target, ctx.profile.last_model)
        await self._show_offer(ctx, made or draft)

    async def switch(self, ctx: UpdateContext, waiting: Draft, name: str) -> None:
        """Suggest an order of another wish for the same text."""
        await self._view.toast(ctx)
        wish = self._storefront.catalog.wish(name)
        target = target_of(self._storefront, waiting.text, wish) if wish else None
        target = replace(target, text=target.text or waiting.text) if target else None
        made = suggest(self._storefront, waiting, target, ctx.profile.last_model) if target else None
        await self._show_offer(ctx, made or waiting)

    async def _save_and_show(self, ctx: UpdateContext, draft: Draft) -> None:
        await self._drafts.save(ctx, draft)
        await self._view.toast(ctx)
        await self._drafts.show(ctx)


def open_model(draft: Draft, model: Model, wish: Wish, category: str) -> Draft:
    """Begin an order with what waits for a model."""
    found_in = (candidate for candidate in wish.categories if candidate in (model.category, *model.also))
    started = per_file.start(
        draft, model, category or next(found_in, model.category.value), defaults=not wish.asks_settings
    )
    return replace(started, wish=wish.name)
