"""Handles the buttons of presets on cards and confirmations: a surprise, a star, a better prompt, a reset."""

from collections.abc import Awaitable, Callable, Mapping
from random import Random

from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order import questions, remembered, wizard
from genlock.bot.order.card import category_of
from genlock.bot.order.draft import Draft, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.extras import ideas_for
from genlock.bot.order.improve import Improvements
from genlock.bot.storefront.favourites import Favourites
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Model
from genlock.i18n.catalog_texts import in_language
from genlock.ports import Database

Handler = Callable[[UpdateContext, ButtonData, Model], Awaitable[None]]


class Presets:
    """The buttons belong to one version of a draft: handled again, they are answered as outdated."""

    def __init__(
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        improvements: Improvements,
        favourites: Favourites,
        rng: Random,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
        self._improvements = improvements
        self._favourites = favourites
        self._rng = rng
        self.draft_handlers: Mapping[str, Handler] = {
            "improve_go": self._improve,
            "star": self._star,
            "surprise": self._surprise,
            "reset": self._reset,
        }

    async def _improve(self, ctx: UpdateContext, _: ButtonData, model: Model) -> None:
        if ctx.draft.step is Step.IMPROVE:
            await self._improvements.order(ctx, model)
        else:
            await self._save_and_show(ctx, ctx.draft)

    async def _star(self, ctx: UpdateContext, data: ButtonData, model: Model) -> None:
        await self._favourites.star(ctx, model, on=data.word() == "1")

    async def _surprise(self, ctx: UpdateContext, _: ButtonData, model: Model) -> None:
        """Answer the question for a prompt with one of the catalog's ideas."""
        draft, main = ctx.draft, questions.main_text(model)
        ideas = ideas_for(self._storefront.catalog, category_of(draft, model))
        if ideas and main is not None and draft.field == main.name:
            idea = in_language(self._rng.choice(ideas).text, ctx.translator)
            draft = wizard.answer(draft, model, idea)
        await self._save_and_show(ctx, draft)

    async def _reset(self, ctx: UpdateContext, _: ButtonData, model: Model) -> None:
        """Delete the last settings of the model, and give the order the model's own defaults."""
        await self._store.delete_model_settings(ctx.account_id, model.id)
        await self._save_and_show(ctx, remembered.reset(ctx.draft, model))

    async def _save_and_show(self, ctx: UpdateContext, draft: Draft) -> None:
        await self._drafts.save(ctx, draft)
        await self._view.toast(ctx)
        await self._drafts.show(ctx)
