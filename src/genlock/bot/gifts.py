"""Gifts: welcome credit, rewards for invitations, promo codes. The ledger's keys make each happen once."""

from genlock.bot.buttons import from_base36
from genlock.bot.desk import Desk
from genlock.bot.guard import Guard
from genlock.bot.tongue import Html, tongue
from genlock.bot.visit import Visit
from genlock.domain.chat import PromoVerdict
from genlock.domain.errors import ChannelError, KeyReused, NoSuchPerson
from genlock.domain.money import Kind

REWARDS_AT_ONCE = 100
CODE_LENGTH_MAX = 40
INVITATION = "r"


def inviter(payload: str) -> int | None:
    """Who invited, by the words behind /start."""
    return from_base36(payload[1:]) if payload.startswith(INVITATION) else None


class Gifts:
    def __init__(self, desk: Desk, guard: Guard) -> None:
        self._desk = desk
        self._guard = guard
        self._store = desk.store

    async def welcome(self, person: int) -> None:
        """Credit for whoever is new; once, whatever the amount was then."""
        if self._desk.rules.welcome:
            await self._grant(person, self._desk.rules.welcome, f"welcome:{person}", "welcome")

    async def _grant(self, person: int, amount: int, key: str, reason: str) -> bool:
        try:
            return await self._store.transfer(person, Kind.GRANT, amount, key, reason)
        except KeyReused:  # it was given when the amount was another
            return False

    async def promo(self, visit: Visit, code: str) -> Html | None:
        """Use a promo code; None if there is none to use by this name. A repeated update finds the same use."""
        t, request = visit.tongue, f"update:{visit.update}"
        # A code that a try before this one has used up still needs its credit, however many were tried since.
        begun = not visit.first and await self._store.promo_used(visit.person, request)
        if not begun and (wait := await self._guard.code(visit)) is not None:
            return wait
        code = code.strip().upper()[:CODE_LENGTH_MAX]
        use = await self._store.use_promo(code, visit.person, request)
        match use.verdict:
            case PromoVerdict.UNKNOWN | PromoVerdict.OVER:
                return None  # in the same words: whoever guesses does not learn which codes there were
            case PromoVerdict.USED:
                return t.say("promo.used")
        if use.amount:
            key = f"promo:{code}:{visit.person}:{use.number}"
            await self._grant(visit.person, use.amount, key, f"promo code {code}")
            return t.say("promo.done_credits", credits=t.credits(use.amount))
        return t.say("promo.done_runs", runs=t.tag("unit.runs", n=use.runs))

    async def reward(self) -> int:
        """Reward invitations whose guest has topped up and bought a first result. Safe to run anywhere, any time."""
        rules = self._desk.rules
        if not rules.reward_inviter and not rules.reward_invited:
            return 0
        due = await self._store.rewards_due(REWARDS_AT_ONCE)
        for guest, host in due:
            shares = (
                (host, rules.reward_inviter, "inviter"),
                (guest, rules.reward_invited, "invited"),
            )
            for person, amount, side in shares:
                if amount:
                    await self._grant(person, amount, f"referral:{guest}:{side}", f"invitation of {guest}")
            if await self._store.set_rewarded(guest):
                for person, amount, side in shares:
                    if amount:
                        await self._tell(person, side, amount)
        return len(due)

    async def _tell(self, person: int, side: str, amount: int) -> None:
        """At most once; the balance shows it anyway."""
        try:
            profile = await self._store.profile(person)
        except NoSuchPerson:
            return
        t = tongue(profile.language)
        text = t.say(f"invite.rewarded_{side}", credits=t.credits(amount))
        try:
            await self._desk.tell(int(profile.outside_id), text)
        except ChannelError:
            return  # counted by the caller
