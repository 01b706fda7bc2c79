"""Favourite models: the star on a card, and the list in the menu."""

from collections.abc import Mapping

from genlock.bot.buttons import Row, button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.handlers.pages import Pages
from genlock.bot.order.draft_view import DraftView
from genlock.bot.screen_context import ICONS
from genlock.bot.storefront.screens import ALL, row
from genlock.bot.storefront.storefront import Storefront, code_of
from genlock.domain.catalog import Model
from genlock.ports import Database


class Favourites:
    """A button says whether to add or to remove the favourite, so that a press may be handled twice."""

    def __init__(
        self, *, view: ChatView, drafts: DraftView, store: Database, storefront: Storefront, pages: Pages
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
        self._pages = pages
        self.button_handlers: Mapping[str, Handler] = {"favs": lambda ctx, _: self.show(ctx)}

    async def star(self, ctx: UpdateContext, model: Model, *, on: bool) -> None:
        """Make a model a favourite or no longer one, and show its card again."""
        t = ctx.translator
        if not on:
            await self._store.remove_favourite(ctx.account_id, model.id)
            await self._view.toast(ctx, t.plain("favourite.removed"))
        elif await self._store.add_favourite(ctx.account_id, model.id):
            await self._view.toast(ctx, t.plain("favourite.added"))
        else:
            await self._view.toast(ctx, t.plain("favourite.full"), alert=True)
        await self._drafts.show(ctx)

    async def show(self, ctx: UpdateContext) -> None:
        """Show the favourites that are on sale."""
        t, screen = ctx.translator, await self._drafts.screen_context(ctx)
        starred = [self._storefront.by_id(model) for model in await self._store.favourites(ctx.account_id)]
        models = [model for model in starred if model is not None]
        rows: list[Row] = [
            (button(f"{ICONS[model.category]} {row(screen, model)}", "model", code_of(model.id), model.category.value),)
            for model in models
        ]
        if not models:
            rows.append((button(t.plain("button.models"), "cat", ALL, 0),))
        await self._pages.show_text(ctx, t.html("favourite.title" if models else "favourite.none"), *rows)
