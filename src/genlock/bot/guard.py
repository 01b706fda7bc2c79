"""Limits per person, kept in the store and told with the time to wait."""

from genlock.bot.draft import Problem
from genlock.bot.rules import ShopRules
from genlock.bot.tongue import Html
from genlock.bot.visit import Visit
from genlock.ports import WholeStore

HOUR = 3600.0
CODES_PER_HOUR = 10


class Guard:
    def __init__(self, store: WholeStore, rules: ShopRules) -> None:
        self._store = store
        self._rules = rules

    async def order(self, visit: Visit) -> Html | None:
        """Why the person may not order now; None if they may."""
        rules, t = self._rules, visit.tongue
        done = await self._store.activity(visit.person)
        if done.running >= rules.running_max:
            return t.say("limit.running", n=done.running)
        if done.minute >= rules.per_minute:
            return t.say("limit.minute", time=t.lasting(done.minute_wait))
        if done.hour >= rules.per_hour:
            return t.say("limit.hour", time=t.lasting(done.hour_wait))
        return None

    async def cancel(self, visit: Visit) -> str | None:
        """Why the person may not cancel an order that the provider has already."""
        done = await self._store.late_cancels(visit.person)
        return None if done < self._rules.late_cancels_per_day else visit.tongue.tag("order.too_late_cancel", n=done)

    async def code(self, visit: Visit) -> Html | None:
        """Why the person may not try another promo code now; every try counts, so codes cannot be guessed."""
        pause = HOUR / CODES_PER_HOUR
        # Turns may be taken ahead of time, so many of them: the row then says when all of them will be there again.
        [wait] = await self._store.take_turns([f"code:{visit.person}"], pause, 1, -(CODES_PER_HOUR - 1) * pause)
        return visit.tongue.say("limit.codes", time=visit.tongue.lasting(wait)) if wait > 0 else None

    async def upload(self, visit: Visit) -> Problem | None:
        """Why the person may not send another file now."""
        sent, wait = await self._store.uploads_wait(visit.person)
        return None if sent < self._rules.uploads_per_hour else Problem(name="uploads", allowed={"wait": wait})
