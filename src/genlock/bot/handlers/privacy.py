"""`/privacy`: what is stored about the user and for how long, and its erasure after a confirmation."""

from collections.abc import Mapping

from genlock.bot.bundle import BotBundle, SendQueued
from genlock.bot.buttons import button
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.handlers.pages import Pages
from genlock.engine.cancellation import uninterrupted
from genlock.engine.erasure import Erasure
from genlock.ports import Database

#: accounts of API clients belong to no bot
API_CLIENTS = ""


class Privacy:
    def __init__(self, *, bundle: BotBundle, store: Database, pages: Pages, send_queued: SendQueued) -> None:
        self._bundle = bundle
        self._store = store
        self._pages = pages
        self._erasure = Erasure(store, bundle.texts, send_queued)
        self.button_handlers: Mapping[str, Handler] = {
            "privacy": lambda ctx, _: self.show(ctx),
            "erase": lambda ctx, _: self._ask(ctx),
            "erasenow": lambda ctx, _: self._request(ctx),
        }

    async def show(self, ctx: UpdateContext) -> None:
        if await self._pages.is_group(ctx, "privacy"):
            return
        t, days = ctx.translator, self._bundle.rules.input_days
        kept = t.html("privacy.kept_days", time=t.plain("unit.days", n=days)) if days else t.html("privacy.kept")
        text = t.html("privacy.text", kept=kept)
        if await self._erasure.is_requested(ctx.account_id, self._bundle.id):
            await self._pages.show_text(ctx, t.html("privacy.requested"))
            return
        await self._pages.send_text(ctx, text, (button(t.plain("button.erase"), "erase"),))

    async def _ask(self, ctx: UpdateContext) -> None:
        if await self._pages.is_group(ctx, "privacy"):
            return
        t, wallet = ctx.translator, await self._store.wallet(ctx.account_id)
        text = t.html("privacy.ask", balance=t.credits(wallet.available + wallet.held))
        rows = ((button(t.plain("button.erase_yes"), "erasenow"),), (button(t.plain("button.back"), "privacy"),))
        await self._pages.show_text(ctx, text, *rows)

    async def _request(self, ctx: UpdateContext) -> None:
        if await self._pages.is_group(ctx, "privacy"):
            return
        await self._erasure.request(ctx.account_id, "user", f"update:{ctx.update}")
        await self._pages.show_text(ctx, ctx.translator.html("privacy.requested"))

    async def run(self) -> int:
        """Carry out the erasures that are due, and tell the users. A periodic task of the leader."""
        erased = 0
        for bot in (self._bundle.id, API_CLIENTS):
            erased += len(await uninterrupted(self._erasure.run(bot)))
        await self._erasure.erase_old_inputs(self._bundle.rules.input_days)
        return erased
