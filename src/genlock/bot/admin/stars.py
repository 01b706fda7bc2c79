"""`/admin payments`, `stars`, `refunds`: payments in Telegram Stars and their refunds."""

from collections.abc import Mapping, Sequence

from genlock.bot.admin import screens
from genlock.bot.admin.accounts import AccountCommands
from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.command import AdminCommand, Declined, argument
from genlock.bot.context import UpdateContext
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown
from genlock.domain.payment import Payment
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
            "payments": AdminCommand(run=self._list, usage="person"),
            "stars": AdminCommand(run=self._stars, usage="stars"),
            "askstars": AdminCommand(run=self._ask, usage="stars"),
            "givestars": AdminCommand(run=self._give, usage="stars"),
            "refunds": AdminCommand(run=self._list_refunds),
        }

    async def _list(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return await self._payments_of(ctx, await self._accounts.profile(argument(args)))

    async def _payments_of(self, ctx: UpdateContext, profile: Profile, note: Html | None = None) -> OutgoingMessage:
        found = await self._store.payments(profile.account_id, LISTED)
        return screens.with_note(note, screens.payments(ctx.translator, found, profile))

    async def _stars(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        return screens.message(ctx.translator, await self._refund(ctx, argument(args)))

    async def _ask(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        profile, payment = await self._payment(args)
        wallet = await self._store.wallet(profile.account_id)
        return screens.refund_question(ctx.translator, payment, profile, wallet)

    async def _give(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        profile, payment = await self._payment(args)
        return await self._payments_of(ctx, profile, await self._refund(ctx, payment.charge))

    async def _payment(self, args: Sequence[str]) -> tuple[Profile, Payment]:
        """Return the payment that a button means, by its user and the digest of its receipt. Raises Declined."""
        profile, digest = await self._accounts.profile(argument(args)), argument(args, 1)
        for payment in await self._store.payments(profile.account_id, PAYMENTS_READ):
            if screens.receipt_digest(payment.charge) == digest:
                return profile, payment
        raise Declined("no_payment")

    async def _refund(self, ctx: UpdateContext, charge: str) -> Html:
        """Refund the stars of a payment, if its credits are still there."""
        t = ctx.translator
        try:
            payment = await self._refunds.refund(charge, ctx.profile.external_id)
        except (ChannelBusy, ChannelOutcomeUnknown):
            return t.html("admin.stars_open")
        await self._audit.write(ctx, "refund of stars", charge, f"{payment.stars} ⭐")
        reached = screens.reached(t, reached=await self._refunds.tell_refunded(payment))
        return t.html("admin.stars_refunded", stars=payment.stars, credits=t.credits(payment.amount), reached=reached)

    async def _list_refunds(self, ctx: UpdateContext, args: Sequence[str]) -> OutgoingMessage:
        """List the refunds that Telegram has not confirmed; with `now`, ask Telegram first."""
        if args:
            await self._refunds.resume(0.0)
        return screens.refunds(ctx.translator, (await self._refunds.open_refunds())[:LISTED])
