"""Gifts: welcome credit, rewards for invitations, promo codes. Idempotency keys in the ledger make each happen once."""

from genlock.bot.bundle import BotBundle, SendQueued
from genlock.bot.buttons import base36, from_base36
from genlock.bot.context import UpdateContext
from genlock.bot.quotas import Quotas
from genlock.domain.errors import AccountNotFound, IdempotencyKeyReused
from genlock.domain.money import EntryKind
from genlock.domain.profile import Profile
from genlock.domain.promo import PromoVerdict
from genlock.domain.public_number import PublicNumbers
from genlock.domain.queued_message import QueuedMessage
from genlock.engine.cancellation import uninterrupted
from genlock.engine.tell import make_message
from genlock.i18n.translator import Html
from genlock.ports import Database

#: invited users whom one statement looks at, and how many such steps one round makes
INVITED_AT_ONCE = 300
REWARD_STEPS = 20
CODE_LENGTH_MAX = 40
INVITATION = "r"
#: longer than an update is retried
NEW_SECONDS = 86_400.0


def invitation(account_id: int, numbers: PublicNumbers) -> str:
    """Return the payload of /start in the invitation link of an account."""
    return f"{INVITATION}{numbers.account(account_id)}" if numbers.key else f"{INVITATION}{base36(account_id)}"


def inviter(payload: str, numbers: PublicNumbers) -> int | None:
    """Return the account that invited, from the payload of /start; also from links of earlier versions."""
    if not payload.startswith(INVITATION):
        return None
    number = payload.removeprefix(INVITATION)
    # Links of earlier versions have the id in lower case; the numbers of now begin with a capital letter.
    return numbers.account_id(number) if number[:1].isupper() else from_base36(number)


class Gifts:
    def __init__(self, *, bundle: BotBundle, store: Database, quotas: Quotas, send_queued: SendQueued) -> None:
        self._bundle = bundle
        self._store = store
        self._quotas = quotas
        self._send_queued = send_queued
        #: the invited user where the next round continues
        self._invited_after = 0

    async def is_new(self, profile: Profile) -> bool:
        """Whether an attempt at the update that is handled now may have created the profile."""
        return (await self._store.read_clock() - profile.created_at).total_seconds() < NEW_SECONDS

    async def welcome(self, account_id: int) -> None:
        """Credit a new account, once, even if the amount in the settings changes afterwards."""
        if amount := self._bundle.rules.welcome:
            await self._grant(account_id, amount, f"welcome:{account_id}", "welcome")

    async def _grant(
        self, account_id: int, amount: int, key: str, reason: str, message: QueuedMessage | None = None
    ) -> bool:
        try:
            return await self._store.transfer(account_id, EntryKind.GRANT, amount, key, reason, message=message)
        except IdempotencyKeyReused:  # it was given while the settings had another amount
            return False

    async def promo(self, ctx: UpdateContext, code: str) -> Html | None:
        """Use a promo code; None if there is no usable one of this name. A repeated update finds the same use."""
        t, request, account_id = ctx.translator, f"update:{ctx.update}", ctx.profile.account_id
        # An earlier try may have used the code and crashed before the credit: the limit must not block its repetition.
        begun = not ctx.first and await self._store.is_promo_used(account_id, request)
        if not begun and (wait := await self._quotas.code(ctx)) is not None:
            return wait
        code = code.strip().upper()[:CODE_LENGTH_MAX]
        use = await self._store.use_promo(code, account_id, request)
        match use.verdict:
            case PromoVerdict.UNKNOWN | PromoVerdict.OVER:
                return None  # the same answer for both, so that guessing does not reveal which codes exist
            case PromoVerdict.USED:
                return t.html("promo.used")
        if use.amount:
            key = f"promo:{code}:{account_id}:{use.number}"
            await self._grant(account_id, use.amount, key, f"promo code {code}")
            return t.html("promo.done_credits", credits=t.credits(use.amount))
        return t.html("promo.done_runs", runs=t.plain("unit.runs", n=use.runs))

    async def reward(self) -> int:
        """Reward invitations whose invited user has paid and bought a first result. Safe on several instances."""
        rules = self._bundle.rules
        if not rules.reward_inviter and not rules.reward_invited:
            return 0
        rewarded = 0
        for _ in range(REWARD_STEPS):
            due, self._invited_after = await self._store.rewards_due(
                self._bundle.id, self._invited_after, INVITED_AT_ONCE
            )
            for invited, inviter_id in due:
                await uninterrupted(self._reward_one(invited, inviter_id))
            rewarded += len(due)
            if not self._invited_after:
                break
        return rewarded

    async def _reward_one(self, invited: int, inviter_id: int) -> None:
        rules = self._bundle.rules
        shares = ((inviter_id, rules.reward_inviter, "inviter"), (invited, rules.reward_invited, "invited"))
        queued = []
        for account_id, amount, side in (share for share in shares if share[1]):
            message = await self._reward_message(account_id, side, amount)
            key, reason = f"referral:{invited}:{side}", f"invitation of {invited}"
            if await self._grant(account_id, amount, key, reason, message) and message is not None:
                queued.append(message)
        await self._store.mark_rewarded(invited)
        for message in queued:
            await self._send_queued(message)

    async def _reward_message(self, account_id: int, side: str, amount: int) -> QueuedMessage | None:
        try:
            language = (await self._store.profile(account_id)).language
        except AccountNotFound:
            return None
        t = self._bundle.texts.translator(language)
        return make_message(account_id, t.html(f"invite.rewarded_{side}", credits=t.credits(amount)))
