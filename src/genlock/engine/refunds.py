"""Refunds of payments: by operators, in chat and dashboard, and those that the payment service makes without us."""

from enum import StrEnum

from genlock.domain.errors import (
    AccountNotFound,
    ActionNotAllowed,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    Refusal,
)
from genlock.domain.money import write_amount
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.place import NEWEST
from genlock.engine.cancellation import uninterrupted
from genlock.engine.tell import SendQueued, make_message
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Texts, Translator
from genlock.ports import Database
from genlock.ports.payment_service import PaymentService

#: kv entries of the bot, one per refund that has begun and not ended; the value is the operator
REFUND = "chat:refund:"
#: kv entries of the bot, one per refund that has ended and whose user is to be told; the value is the operator, "" if
#: the payment service made it. The store writes them in the commit that ends the refund
REFUNDED = "chat:refunded:"
#: a refund whose answer has not come for this long is asked for again
RESUME_SECONDS = 60.0
DETAIL_LENGTH_MAX = 500
#: open refunds that one round looks at, the newest first
OPEN_MAX = 200
#: in the audit log, for a refund that has lost its mark; the reason of its ledger entry names the operator
UNKNOWN_OPERATOR = "operator"


class NoRefundReason(StrEnum):
    """Why a payment is not refunded; operators read the text `refund_REASON`."""

    NO_PAYMENT = "no_payment"  #: this bot has no such payment
    DONE_BEFORE = "done_before"
    CREDITS_SPENT = "credits_spent"  #: of `amount` credits, only `available` are there
    REFUSED = "refused"  #: by the payment service, which says `reason`


class NoRefund(ActionNotAllowed):
    def __init__(self, message: str, why: NoRefundReason, **values: object) -> None:
        super().__init__(message)
        self.why = why
        #: the values of the text
        self.values = values


class Refunds:
    """Refunds of one bot's payments."""

    def __init__(
        self, *, bot: str, store: Database, texts: Texts, send_queued: SendQueued, service: PaymentService
    ) -> None:
        self._bot = bot
        self._store = store
        self._texts = texts
        self._send_queued = send_queued
        self._service = service

    @property
    def _action(self) -> str:
        return f"refund of {self._service.currency}"

    def _amount(self, payment: Payment) -> str:
        return f"{payment.paid_amount} {self._service.symbol}"

    # by operators

    async def refund(self, charge: str, by: str) -> Payment:
        """Debit the credits, which must still be there, then refund the payment.

        After a lost answer the payment stays `refunding`; the same call, or `resume`, continues it.
        """
        payment = await self._store.payment(charge)
        if payment is None or await self._is_of_another_bot(payment):
            raise NoRefund(f"there is no payment {charge}", NoRefundReason.NO_PAYMENT)
        if payment.state is PaymentState.REFUNDED:
            raise NoRefund(f"payment {charge} has been refunded already", NoRefundReason.DONE_BEFORE)
        external_id = (await self._store.profile(payment.account_id)).external_id
        await self._mark(charge, by)  # the mark keeps the time of the first attempt
        payment = await self._begin(payment, by)
        await self._mark(charge, by)  # an instance that looked before the refund began has removed the mark
        try:
            await self._service.refund(payment, external_id)
        except (ChannelBusy, ChannelOutcomeUnknown):
            raise
        except ChannelError as error:
            await self._undo(payment, error)
        await self._store.finish_refund(charge)
        await self._unmark(charge)
        return payment

    async def _is_of_another_bot(self, payment: Payment) -> bool:
        return (await self._store.account(payment.account_id)).bot != self._bot

    async def _begin(self, payment: Payment, by: str) -> Payment:
        """Debit the credits for a new refund attempt, or return the open one, whose credits are debited."""
        charge = payment.charge
        begun = await self._store.begin_refund(charge, f"{self._action} by {by}")
        if begun is not None:
            return begun
        now = await self._store.payment(charge)
        if now is not None and now.state is PaymentState.REFUNDING:
            return now
        await self._unmark(charge)
        if now is None or now.state is PaymentState.REFUNDED:
            raise NoRefund(f"payment {charge} has been refunded already", NoRefundReason.DONE_BEFORE)
        available = (await self._store.wallet(now.account_id)).available
        raise NoRefund(
            f"the credits are not there: {write_amount(available)} of {write_amount(now.amount)}",
            NoRefundReason.CREDITS_SPENT,
            available=available,
            amount=now.amount,
        )

    async def _undo(self, payment: Payment, error: ChannelError) -> None:
        """Return the credits of a refused refund. Raises NoRefund, unless the payment was refunded meanwhile."""
        await self._store.undo_refund(payment.charge, payment.refunds, f"refund refused by {self._service.name}")
        now = await self._store.payment(payment.charge)
        if now is not None and now.state is PaymentState.REFUNDED:
            return
        if now is None or now.state is not PaymentState.REFUNDING:  # otherwise another attempt began, with this mark
            await self._unmark(payment.charge)
        message = f"{self._service.name} refused the refund: {error}"
        raise NoRefund(message, NoRefundReason.REFUSED, reason=str(error)) from error

    async def _mark(self, charge: str, by: str) -> None:
        await self._store.kv_put_if_absent(f"{REFUND}{charge}", by, self._bot)

    async def _unmark(self, charge: str) -> None:
        await self._store.kv_delete(f"{REFUND}{charge}", self._bot)

    async def resume(self, older_than: float) -> None:
        """Repeat the calls of refunds whose answer was lost, in the name of the operator who began them.

        Tell the users of refunds that ended just before a crash, and write their audit lines.
        """
        await self._mark_open()
        for entry in await self._store.kv_list(REFUND, self._bot):
            if entry.age >= older_than:
                await uninterrupted(self._resume(entry.key.removeprefix(REFUND), entry.value))
        for entry in await self._store.kv_list(REFUNDED, self._bot):
            payment = await self._store.payment(entry.key.removeprefix(REFUNDED))
            if payment is not None and entry.age >= older_than:
                await uninterrupted(self._report(payment))

    async def _mark_open(self) -> None:
        """Mark the refunds that have lost their mark: it was removed just when they began, and both sides crashed."""
        for payment in await self._store.payments_in_state(
            PaymentState.REFUNDING, before=NEWEST, since=None, limit=OPEN_MAX
        ):
            if not await self._is_of_another_bot(payment):
                await self._mark(payment.charge, UNKNOWN_OPERATOR)

    async def _resume(self, charge: str, by: str) -> None:
        if (payment := await self._open(charge)) is None:
            await self._unmark(charge)  # it ended, or never began
            if await self._open(charge) is not None:  # or it has just begun
                await self._mark(charge, by)
            return
        try:
            payment = await self.refund(charge, by)
        except (Refusal, ChannelError) as error:
            if not isinstance(error, NoRefund) or error.why is not NoRefundReason.DONE_BEFORE:
                await self._audit_own(payment, str(error), by)  # otherwise another instance was faster
        else:
            await self._report(payment)

    async def _open(self, charge: str) -> Payment | None:
        payment = await self._store.payment(charge)
        return payment if payment is not None and payment.state is PaymentState.REFUNDING else None

    async def open_refunds(self) -> list[tuple[Payment, str, float]]:
        """Return the unconfirmed refunds: the payment, the user's name, the age in seconds; oldest first."""
        found = [
            (payment, (await self._store.profile(payment.account_id)).name, entry.age)
            for entry in await self._store.kv_list(REFUND, self._bot)
            if (payment := await self._open(entry.key.removeprefix(REFUND))) is not None
        ]
        return sorted(found, key=lambda refund: -refund[2])

    async def tell_refunded(self, payment: Payment) -> bool:
        """Tell the user about a refund that has ended, once (the payment service may, too).

        False if the user was not reached; True if another instance tells the user.
        """
        message = make_message(payment.account_id, await self._text(payment))
        if not await self._store.kv_replace_by_message(f"{REFUNDED}{payment.charge}", message, self._bot):
            return True
        return await self._send_queued(message)

    async def _text(self, payment: Payment) -> str:
        t = await self._translator(payment.account_id)
        if payment.external_refund_at is None:
            return t.html("topup.refunded", stars=payment.paid_amount, credits=t.credits(payment.amount))
        return t.html(
            "topup.refunded_owing" if payment.owed else "topup.refunded_outside",
            stars=payment.paid_amount,
            credits=t.credits(payment.amount - payment.owed),
            debt=t.credits(payment.owed),
        )

    async def _report(self, payment: Payment) -> None:
        """Write the audit line of a refund that has ended, and tell the user, unless that was done before."""
        mark = await self._store.kv_get(f"{REFUNDED}{payment.charge}", self._bot)
        if mark is None:
            return
        if payment.external_refund_at is not None:
            await self._audit_external(payment)
        elif mark.value:
            await self._audit_own(payment, self._amount(payment), mark.value)
        await self.tell_refunded(payment)

    # by the payment service, without us

    async def book_external(self, charge: str) -> bool:
        """Book a refund that the payment service reports: one of ours, or one made without us.

        A refund made without us takes the credits that are there; the rest becomes a debt. Returns False if the refund
        was booked before.
        """
        booked = await self._store.book_external_refund(charge, f"refunded by {self._service.name}")
        payment = booked or await self._store.payment(charge)
        # One that was booked before is reported, too: the instance may have crashed before it did.
        if payment is not None and (booked is not None or payment.external_refund_at is not None):
            await self._report(payment)
        return booked is not None

    async def _translator(self, account_id: int) -> Translator:
        try:
            language = (await self._store.profile(account_id)).language
        except AccountNotFound:  # the payment is the first update of this user
            language = DEFAULT
        return self._texts.translator(language)

    async def _audit_own(self, payment: Payment, outcome: str, by: str) -> None:
        key = f"refund:{payment.charge}:{payment.refunds}:{outcome[:40]}"
        await self._audit(key, self._action, payment.charge, outcome, actor=by)

    async def _audit_external(self, payment: Payment) -> None:
        taken, owed = (write_amount(amount) for amount in (payment.amount - payment.owed, payment.owed))
        detail = f"{self._amount(payment)}, account {payment.account_id}: {taken} credits deducted, {owed} owed"
        await self._audit(f"refunded:{payment.charge}", f"refund by {self._service.name}", payment.charge, detail)

    async def _audit(self, key: str, action: str, subject: str, detail: str, *, actor: str = "") -> None:
        """Write an audit line. Without an actor, the payment service did it."""
        await self._store.add_audit(
            bot=self._bot,
            key=key,
            actor=actor or self._service.name.lower(),
            action=action,
            subject=subject,
            detail=detail[:DETAIL_LENGTH_MAX],
        )
