"""Refunds of payments: by operators, in chat and dashboard, and those that the channel makes without us."""

from collections.abc import Awaitable, Callable

from genlock.domain.errors import (
    AccountNotFound,
    ActionNotAllowed,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    Refusal,
)
from genlock.domain.money import THOUSANDTHS
from genlock.domain.payment import Payment, PaymentState
from genlock.engine.tell import Tell
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Texts, Translator
from genlock.ports import Database

#: kv entries of the bot, one per refund that has begun and not ended; the value is the operator
REFUND = "chat:refund:"
REFUND_SECONDS = 60.0
DETAIL_LENGTH_MAX = 500
#: asks the channel to refund a payment of the user with this id; returns also if it was refunded before
RefundCall = Callable[[Payment, int], Awaitable[None]]


class NoRefund(ActionNotAllowed):
    """Stars are not refunded; `text` is the key of the operators' text that says why, with its values."""

    def __init__(self, message: str, text: str, **values: object) -> None:
        super().__init__(message)
        self.text = text
        self.values = values


class Refunds:
    """Refunds of one bot's payments."""

    def __init__(self, *, bot: str, store: Database, texts: Texts, tell: Tell, refund_call: RefundCall) -> None:
        self._bot = bot
        self._store = store
        self._texts = texts
        self._tell = tell
        self._refund_call = refund_call

    # by operators

    async def refund(self, charge: str, by: str) -> Payment:
        """Debit the credits, which must still be there, then refund the stars. A lost answer leads to another call."""
        payment = await self._store.payment(charge)
        if payment is None or await self._is_of_another_bot(payment):
            raise NoRefund(f"there is no payment {charge}", "no_payment")
        if payment.state is PaymentState.REFUNDED:
            raise NoRefund(f"payment {charge} has been refunded already", "stars_before")
        user = int((await self._store.profile(payment.account_id)).external_id)  # raises if Telegram has no such user
        await self._mark(charge, by)  # the mark keeps the time of the first attempt
        payment = await self._begin(payment, by)
        await self._mark(charge, by)  # an instance that looked before the refund began has removed the mark
        try:
            await self._refund_call(payment, user)
        except (ChannelBusy, ChannelOutcomeUnknown):
            raise  # it stays `refunding`: the same command, or the next reconciliation, continues it
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
        begun = await self._store.begin_refund(charge, f"refund of stars by {by}")
        if begun is not None:
            return begun
        now = await self._store.payment(charge)
        if now is not None and now.state is PaymentState.REFUNDING:
            return now
        await self._unmark(charge)
        if now is None or now.state is PaymentState.REFUNDED:
            raise NoRefund(f"payment {charge} has been refunded already", "stars_before")
        available = (await self._store.wallet(now.account_id)).available
        raise NoRefund(
            f"the credits are not there: {available / THOUSANDTHS:g} of {now.amount / THOUSANDTHS:g}",
            "stars_spent",
            available=available,
            amount=now.amount,
        )

    async def _undo(self, payment: Payment, error: ChannelError) -> None:
        """Return the credits because Telegram refused the refund. Raises NoRefund, unless it was refunded meanwhile."""
        await self._store.undo_refund(payment.charge, payment.refunds, "refund refused by Telegram")
        now = await self._store.payment(payment.charge)
        if now is not None and now.state is PaymentState.REFUNDED:
            return
        if now is None or now.state is not PaymentState.REFUNDING:  # otherwise another attempt began, with this mark
            await self._unmark(payment.charge)
        raise NoRefund(f"Telegram refused the refund: {error}", "stars_refused", reason=str(error)) from error

    async def _mark(self, charge: str, by: str) -> None:
        await self._store.kv_put_if_absent(f"{REFUND}{charge}", by, self._bot)

    async def _unmark(self, charge: str) -> None:
        await self._store.kv_delete(f"{REFUND}{charge}", self._bot)

    async def resume(self, older_than: float) -> None:
        """Ask Telegram again for refunds whose answer was lost, in the name of the operator who began them."""
        for entry in await self._store.kv_list(REFUND, self._bot):
            charge = entry.key.removeprefix(REFUND)
            if entry.age < older_than:
                continue
            if (payment := await self._open(charge)) is None:
                await self._unmark(charge)  # it ended, or never began
                if await self._open(charge) is not None:  # or it began at this very moment
                    await self._mark(charge, entry.value)
                continue
            try:
                payment = await self.refund(charge, entry.value)
            except (Refusal, ChannelError) as error:
                outcome = str(error)
            else:
                outcome = f"{payment.stars} ⭐"
                await self.tell_refunded(payment)
            key = f"refund:{charge}:{payment.refunds}:{outcome[:40]}"
            await self._audit(key, "refund of stars", charge, outcome, actor=entry.value)

    async def _open(self, charge: str) -> Payment | None:
        payment = await self._store.payment(charge)
        return payment if payment is not None and payment.state is PaymentState.REFUNDING else None

    async def open_refunds(self) -> list[tuple[Payment, str, float]]:
        """Refunds that Telegram has not confirmed: the payment, the user's name, the age in seconds; oldest first."""
        found = [
            (payment, (await self._store.profile(payment.account_id)).name, entry.age)
            for entry in await self._store.kv_list(REFUND, self._bot)
            if (payment := await self._open(entry.key.removeprefix(REFUND))) is not None
        ]
        return sorted(found, key=lambda refund: -refund[2])

    async def tell_refunded(self, payment: Payment) -> bool:
        """Tell the user that their stars are back (Telegram tells them, too); False if they were not reached."""
        t = await self._translator(payment.account_id)
        text = t.html("topup.refunded", stars=payment.stars, credits=t.credits(payment.amount))
        return await self._tell(payment.account_id, text)

    # by Telegram, without us

    async def book_external(self, charge: str, *, first: bool = True) -> bool:
        """Book a refund that Telegram reports: one of ours, or one made without us. Returns False if it was booked.

        A refund made without us takes the credits that are there; the rest becomes a debt. `first` is False when an
        attempt before may have crashed between the booking and the message to the user.
        """
        booked = await self._store.book_external_refund(charge, "refunded by Telegram")
        payment = booked or (None if first else await self._store.payment(charge))
        if payment is not None and payment.external_refund_at is not None:
            await self._report_external(payment)
        elif booked is not None:
            await self._confirm(booked)
        return booked is not None

    async def _report_external(self, payment: Payment) -> None:
        taken, owed = (amount / THOUSANDTHS for amount in (payment.amount - payment.owed, payment.owed))
        detail = f"{payment.stars} ⭐, account {payment.account_id}: {taken:g} credits deducted, {owed:g} owed"
        await self._audit(f"refunded:{payment.charge}", "refund by Telegram", payment.charge, detail)
        t = await self._translator(payment.account_id)
        text = t.html(
            "topup.refunded_owing" if payment.owed else "topup.refunded_outside",
            stars=payment.stars,
            credits=t.credits(payment.amount - payment.owed),
            debt=t.credits(payment.owed),
        )
        await self._tell(payment.account_id, text)

    async def _confirm(self, payment: Payment) -> None:
        """Close a refund of ours that Telegram has confirmed before our call returned, or after it was lost."""
        mark = await self._store.kv_get(f"{REFUND}{payment.charge}", self._bot)
        if mark is not None:
            outcome = f"{payment.stars} ⭐"
            key = f"refund:{payment.charge}:{payment.refunds}:{outcome}"
            await self._audit(key, "refund of stars", payment.charge, outcome, actor=mark.value)
            await self._unmark(payment.charge)

    async def _translator(self, account_id: int) -> Translator:
        try:
            language = (await self._store.profile(account_id)).language
        except AccountNotFound:  # the payment is the first update of this user
            language = DEFAULT
        return self._texts.translator(language)

    async def _audit(self, key: str, action: str, subject: str, detail: str, *, actor: str = "telegram") -> None:
        await self._store.add_audit(
            bot=self._bot, key=key, actor=actor, action=action, subject=subject, detail=detail[:DETAIL_LENGTH_MAX]
        )
