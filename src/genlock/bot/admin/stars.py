"""`/admin payments`, `stars`, `refunds`: payments in Telegram Stars and their refunds."""

from collections.abc import Mapping, Sequence

from genlock.bot.admin import questions, screens
from genlock.bot.admin.accounts import AccountCommands
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.command import AdminCommand, Declined, Question, argument
from genlock.bot.context import UpdateContext
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.profile import Profile
from genlock.engine.refunds import Refunds
from genlock.i18n.translator import Html
from genlock.ports import Database, OutgoingMessage

LISTED = 10
PAYMENTS_READ = 100


class StarsCommands:
    def __init__(self, *, store: Database, refunds: Refunds, accounts: AccountCommands, audit: AuditLog) -> None:
        self._store = store
        self._refunds = refunds
        self._accounts = accounts
        self._audit = audit

    @property
    def commands(self) -> Mapping[str, AdminCommand]:
        return {
            "payments": AdminCommand(run=self._list, usage="user"),
            "stars": AdminCommand(run=self._stars, usage="stars", ask=self._ask),
            "refunds": AdminCommand(run=self._list_refunds),
        }

    async def _list(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return await self._payments_of(ctx, await self._accounts.profile(argument(args)))

    async def _payments_of(self, ctx: UpdateContext, profile: Profile, note: Html | None = None) -> OutgoingMessage:
        found = await self._store.payments(profile.account_id, LISTED)
        return screens.with_note(note, screens.payments(ctx.translator, found, profile))

    async def _stars(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        profile, payment = await self._payment(args)
        return await self._payments_of(ctx, profile, await self._refund(ctx, payment.charge))

    async def _ask(self, ctx: UpdateContext, args: Sequence[str]) -> Question:
        profile, payment = await self._payment(args)
        if payment.state is PaymentState.REFUNDED:
            raise Declined("refund_done_before")
        wallet = await self._store.wallet(profile.account_id)
        return questions.stars(ctx.translator, payment, profile, wallet)

    async def _payment(self, args: Sequence[str]) -> tuple[Profile, Payment]:
        """Return the payment of `RECEIPT`, or of `USER DIGEST` in a button. Raises Declined."""
        if len(args) == 1:
            return await self._payment_by_receipt(args[0])
        profile, digest = await self._accounts.profile(argument(args)), argument(args, 1)
        for payment in await self._store.payments(profile.account_id, PAYMENTS_READ):
            if screens.receipt_digest(payment.charge) == digest:
                return profile, payment
        raise Declined("refund_no_payment")

    async def _payment_by_receipt(self, charge: str) -> tuple[Profile, Payment]:
        payment = await self._store.payment(charge)
        try:
            profile = await self._accounts.profile(str(payment.account_id)) if payment else None
        except Declined:  # a payment to another bot
            profile = None
        if payment is None or profile is None:
            raise Declined("refund_no_payment")
        return profile, payment

    async def _refund(self, ctx: UpdateContext, charge: str) -> Html:
        """Refund the stars of a payment, if its credits are still there."""
        t = ctx.translator
        try:
            payment = await self._refunds.refund(charge, ctx.profile.external_id)
        except (ChannelBusy, ChannelOutcomeUnknown):
            return t.html("admin.stars_open")
        await self._audit.write(ctx, "refund of stars", charge, f"{payment.paid_amount} ⭐")
        reached = screens.reached(t, reached=await self._refunds.tell_refunded(payment))
        return t.html(
            "admin.stars_refunded", stars=payment.paid_amount, credits=t.credits(payment.amount), reached=reached
        )

    async def _list_refunds(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        """List the refunds that Telegram has not confirmed; with `now`, ask Telegram first."""
        if args:
            await self._refunds.resume(0.0)
        return screens.refunds(ctx.translator, (await self._refunds.open_refunds())[:LISTED])
