"""Limits per person, kept in the store and told with the time to wait."""

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

    async def order(self, ctx: UpdateContext) -> Html | None:
        """Why the person may not order now; None if they may."""
        rules, t = self._rules, ctx.translator
        done = await self._store.activity(ctx.person)
        if done.running >= rules.running_max:
            return t.html("limit.running", n=done.running)
        if done.minute >= rules.per_minute:
            return t.html("limit.minute", time=t.lasting(done.minute_wait))
        if done.hour >= rules.per_hour:
            return t.html("limit.hour", time=t.lasting(done.hour_wait))
        return None

    async def cancel(self, ctx: UpdateContext) -> str | None:
        """Why the person may not cancel an order that the provider has already."""
        done = await self._store.late_cancels(ctx.person)
        return (
            None if done < self._rules.late_cancels_per_day else ctx.translator.plain("order.too_late_cancel", n=done)
        )

    async def code(self, ctx: UpdateContext) -> Html | None:
        """Why the person may not try another promo code now; every try counts, so codes cannot be guessed."""
        pause = HOUR / CODES_PER_HOUR
        # Turns may be taken ahead of time, so many of them: the row then says when all of them will be there again.
        [wait] = await self._store.take_permits([f"code:{ctx.person}"], pause, 1, -(CODES_PER_HOUR - 1) * pause)
        return ctx.translator.html("limit.codes", time=ctx.translator.lasting(wait)) if wait > 0 else None

    async def upload(self, ctx: UpdateContext) -> Problem | None:
        """Why the person may not send another file now."""
        sent, wait = await self._store.recent_uploads(ctx.person)
        return None if sent < self._rules.uploads_per_hour else Problem(name="uploads", allowed={"wait": wait})
