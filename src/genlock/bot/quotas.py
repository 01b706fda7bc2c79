"""Limits per user for cancelling, promo codes and uploads; limits for orders are in engine/sell.py."""

from datetime import UTC, datetime

from genlock.bot.context import UpdateContext
from genlock.bot.order.draft import Problem
from genlock.bot.rules import BotRules
from genlock.i18n.translator import Html
from genlock.ports import Database

HOUR = 3600.0
DAY = 86_400.0
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
        wait = await self._take(f"code:{ctx.account_id}", CODES_PER_HOUR)
        return ctx.translator.html("limit.codes", time=ctx.translator.duration(wait)) if wait > 0 else None

    async def upload(self, ctx: UpdateContext) -> Problem | None:
        """Return why the user may not send another file now; None if allowed.

        Every file counts before anything is done with it, whatever becomes of it, but not again when it is retried.
        """
        wait = await self._take(f"upload:{ctx.account_id}", self._rules.uploads_per_hour) if ctx.first else 0.0
        return Problem(name="uploads", allowed={"wait": wait}) if wait > 0 else None

    async def free_transcription(self, ctx: UpdateContext, sent: datetime) -> bool:
        """Whether the operator pays for the text of a voice message; each counts, whatever becomes of it.

        Every day (UTC) has a limit of its own, which gives one permit back a day: it never grants more than its number.
        """
        count, day = self._rules.free_transcriptions_per_day, sent.astimezone(UTC).date().isoformat()
        if count <= 0:
            return False
        key = f"transcription:{ctx.account_id}:{day}"
        [wait] = await self._store.take_permits([key], DAY, 1, -(count - 1) * DAY)
        return wait <= 0

    async def _take(self, key: str, per_hour: int) -> float:
        """Take a permit; return 0, or the seconds until there is one."""
        if per_hour <= 0:
            return HOUR
        pause = HOUR / per_hour
        # Permits may be taken ahead of time, up to this many: a burst is allowed, then one per pause.
        [wait] = await self._store.take_permits([key], pause, 1, -(per_hour - 1) * pause)
        return wait
