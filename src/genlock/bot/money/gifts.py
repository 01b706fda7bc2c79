"""Gifts: welcome credit, rewards for invitations, promo codes. The ledger's keys make each happen once."""

from genlock.bot.buttons import from_base36
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.quotas import Quotas
from genlock.domain.errors import AccountNotFound, ChannelError, IdempotencyKeyReused
from genlock.domain.money import EntryKind
from genlock.domain.promo import PromoVerdict
from genlock.i18n.translator import Html, translator

REWARDS_AT_ONCE = 100
CODE_LENGTH_MAX = 40
INVITATION = "r"


def inviter(payload: str) -> int | None:
    """Who invited, by the words behind /start."""
    return from_base36(payload[1:]) if payload.startswith(INVITATION) else None


class Gifts:
    def __init__(self, view: ChatView, quotas: Quotas) -> None:
        self._view = view
        self._quotas = quotas
        self._store = view.store

    async def welcome(self, person: int) -> None:
        """Credit for whoever is new; once, whatever the amount was then."""
        if self._view.rules.welcome:
            await self._grant(person, self._view.rules.welcome, f"welcome:{person}", "welcome")

    async def _grant(self, person: int, amount: int, key: str, reason: str) -> bool:
        try:
            return await self._store.transfer(person, EntryKind.GRANT, amount, key, reason)
        except IdempotencyKeyReused:  # it was given when the amount was another
            return False

    async def promo(self, ctx: UpdateContext, code: str) -> Html | None:
        """Use a promo code; None if there is none to use by this name. A repeated update finds the same use."""
        t, request = ctx.translator, f"update:{ctx.update}"
        # A code that a try before this one has used up still needs its credit, however many were tried since.
        begun = not ctx.first and await self._store.is_promo_used(ctx.person, request)
        if not begun and (wait := await self._quotas.code(ctx)) is not None:
            return wait
        code = code.strip().upper()[:CODE_LENGTH_MAX]
        use = await self._store.use_promo(code, ctx.person, request)
        match use.verdict:
            case PromoVerdict.UNKNOWN | PromoVerdict.OVER:
                return None  # in the same words: whoever guesses does not learn which codes there were
            case PromoVerdict.USED:
                return t.html("promo.used")
        if use.amount:
            key = f"promo:{code}:{ctx.person}:{use.number}"
            await self._grant(ctx.person, use.amount, key, f"promo code {code}")
            return t.html("promo.done_credits", credits=t.credits(use.amount))
        return t.html("promo.done_runs", runs=t.plain("unit.runs", n=use.runs))

    async def reward(self) -> int:
        """Reward invitations whose guest has topped up and bought a first result. Safe to run anywhere, any time."""
        rules = self._view.rules
        if not rules.reward_inviter and not rules.reward_invited:
            return 0
        due = await self._store.rewards_due(str(self._view.caller.bot.id), REWARDS_AT_ONCE)
        for guest, host in due:
            shares = (
                (host, rules.reward_inviter, "inviter"),
                (guest, rules.reward_invited, "invited"),
            )
            for person, amount, side in shares:
                if amount:
                    await self._grant(person, amount, f"referral:{guest}:{side}", f"invitation of {guest}")
            if await self._store.mark_rewarded(guest):
                for person, amount, side in shares:
                    if amount:
                        await self._tell(person, side, amount)
        return len(due)

    async def _tell(self, person: int, side: str, amount: int) -> None:
        """At most once; the balance shows it anyway."""
        try:
            profile = await self._store.profile(person)
        except AccountNotFound:
            return
        t = translator(profile.language)
        text = t.html(f"invite.rewarded_{side}", credits=t.credits(amount))
        try:
            await self._view.tell(int(profile.external_id), text)
        except ChannelError:
            return  # counted by the caller
