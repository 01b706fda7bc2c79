"""Limits per user for cancelling, promo codes and uploads; limits for orders are in engine/sell.py."""

from genlock.bot.context import UpdateContext
from genlock.bot.order.draft import Problem
from genlock.bot.rules import BotRules
from genlock.i18n.translator import Html
from genlock.ports import Database

HOUR = 3600.0
CODES_PER_HOUR = 10


class Quotas:
    def __init__(self, store: Database, rules: BotRules) -> None:
        self._store = store
        self._rules = rules

    async def cancel(self, ctx: UpdateContext) -> str | None:
        """Return why the user may not cancel an order that was already submitted; None if allowed."""
        done = await self._store.late_cancels(ctx.account_id)
        return (
            None if done < self._rules.late_cancels_per_day else ctx.translator.plain("order.too_late_cancel", n=done)
        )

    async def code(self, ctx: UpdateContext) -> Html | None:
        """Return why the user may not try another promo code now. Every try counts, so that codes cannot be guessed."""
        pause = HOUR / CODES_PER_HOUR
        # Permits may be taken ahead of time, up to this many: a burst is allowed, then one per pause.
        [wait] = await self._store.take_permits([f"code:{ctx.account_id}"], pause, 1, -(CODES_PER_HOUR - 1) * pause)
        return ctx.translator.html("limit.codes", time=ctx.translator.duration(wait)) if wait > 0 else None

    async def upload(self, ctx: UpdateContext) -> Problem | None:
        """Return why the user may not send another file now; None if allowed."""
        sent, wait = await self._store.recent_uploads(ctx.account_id)
        return None if sent < self._rules.uploads_per_hour else Problem(name="uploads", allowed={"wait": wait})
