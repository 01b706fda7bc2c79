"""Stars: bills, the question before a payment, the payment, refunds, and what Telegram's own list says of them."""

from dataclasses import dataclass

from telegram import LabeledPrice, PreCheckoutQuery, StarTransaction, SuccessfulPayment, TransactionPartnerUser

from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order.draft import At
from genlock.bot.order.ordering import CHANNEL
from genlock.channels.telegram.caller import Priority
from genlock.channels.telegram.errors import QueryTooOld
from genlock.domain.errors import (
    ActionNotAllowed,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InsufficientBalance,
    Refusal,
)
from genlock.domain.money import THOUSANDTHS, EntryKind
from genlock.domain.payment import Payment, PaymentState
from genlock.i18n.translator import guess_language, translator

STARS = "XTR"
#: how far Telegram's list has been read, with the bot's number behind it
POSITION = "chat:stars"
#: refunds that have begun and not ended
REFUND = "chat:refund:"
REFUND_SECONDS = 60.0
PAGE = 100
MOVEMENTS_READ = 500
PAYLOAD = "credits"


class NoRefund(ActionNotAllowed):
    """Stars are not given back; why, is the operators' text of this name."""

    def __init__(self, message: str, name: str, **facts: object) -> None:
        super().__init__(message)
        self.name = name
        self.facts = facts


@dataclass(frozen=True, kw_only=True, slots=True)
class Invoice:
    """What an invoice's payload says: only we write it, Telegram brings it back as it was."""

    stars: int
    credits: int

    def __str__(self) -> str:
        return f"{PAYLOAD}:{self.stars}:{self.credits}"

    @classmethod
    def read(cls, payload: str) -> "Invoice | None":
        parts = payload.split(":")
        if len(parts) != 3 or parts[0] != PAYLOAD or not all(part.isdecimal() for part in parts[1:]):  # noqa: PLR2004
            return None
        bill = cls(stars=int(parts[1]), credits=int(parts[2]))
        return bill if bill.stars and bill.credits else None


class Payments:
    def __init__(self, view: ChatView) -> None:
        self._view = view
        self._store = view.store

    # buying

    async def bill(self, ctx: UpdateContext, stars: int) -> None:
        """A bill for a package, in a message of its own. A repeated one is harmless: it is paid once or not at all."""
        t, view = ctx.translator, self._view
        package = next((one for one in view.rules.packages if one.stars == stars), None)
        if package is None or ctx.group:
            await view.toast(ctx, t.plain("topup.wrong"), alert=True)
            return
        await view.toast(ctx)
        said = t.credits(package.credits * THOUSANDTHS)
        await view.caller.call(
            view.caller.bot.send_invoice,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            title=t.plain("topup.invoice_title", credits=said),
            description=t.plain("topup.invoice_text"),
            payload=str(Invoice(stars=package.stars, credits=package.credits)),
            provider_token="",
            currency=STARS,
            prices=[LabeledPrice(said, package.stars)],
            start_parameter="topup",
        )

    async def check(self, query: PreCheckoutQuery) -> None:
        """Before a payment: is the bill ours and right? Asks nobody, so that the answer is in time."""
        bill = Invoice.read(query.invoice_payload)
        good = bill is not None and query.currency == STARS and query.total_amount == bill.stars
        t = translator(guess_language(query.from_user.language_code))
        try:
            await self._view.caller.call(
                self._view.caller.bot.answer_pre_checkout_query,
                chat=None,
                priority=Priority.RESULT,
                pre_checkout_query_id=query.id,
                ok=good,
                error_message=None if good else t.plain("topup.wrong"),
            )
        except QueryTooOld:
            return  # Telegram has given the stars back

    async def paid(self, ctx: UpdateContext, payment: SuccessfulPayment) -> None:
        """Credit a payment, say thank you, and go back to the order that waited for it."""
        bill = Invoice.read(payment.invoice_payload)
        charge = payment.telegram_payment_charge_id
        if bill is None or payment.currency != STARS:
            await self._strange(charge, payment.invoice_payload)
            return
        fresh = await self._credit(ctx.person, charge, payment.total_amount, bill)
        if fresh or not ctx.first:  # else Telegram's list was read first, and whoever read it has said thank you
            await self._say_thanks(ctx, charge, bill)
        # Below the receipt, which stays: the order that waited, or the menu; the page of packages goes away.
        ready = ctx.translator.html("topup.ready") if ctx.draft.at is At.CONFIRM else None
        await self._view.show_draft(ctx, note=ready)

    async def _say_thanks(self, ctx: UpdateContext, charge: str, bill: Invoice) -> None:
        t = ctx.translator
        wallet = await self._store.wallet(ctx.person)
        text = t.html(
            "topup.paid",
            credits=t.credits(bill.credits * THOUSANDTHS),
            balance=t.credits(wallet.available),
            charge=charge,
        )
        await self._view.say(ctx, text)

    async def _credit(self, person: int, charge: str, stars: int, bill: Invoice) -> bool:
        """Once per charge: the ledger knows it first, so that no payment is ever without its credits."""
        amount = bill.credits * THOUSANDTHS
        fresh = await self._store.transfer(person, EntryKind.TOPUP, amount, f"stars:{charge}", f"{stars} stars")
        await self._store.add_payment(charge, person, stars, amount)
        return fresh

    async def _strange(self, charge: str, payload: str) -> None:
        await self._store.add_audit(
            bot=str(self._view.caller.bot.id),
            key=f"strange:{charge}",
            actor="telegram",
            action="strange payment",
            subject=charge,
            detail=f"payload {payload[:100]!r}",
        )

    # Telegram's own list

    async def reconcile(self) -> int:
        """Read on in Telegram's list of transactions and make good what we have missed; says how much that was."""
        await self.go_on_refunding(REFUND_SECONDS)
        mine = f"{POSITION}:{self._view.caller.bot.id}"
        fact = await self._store.kv_get(mine) or await self._store.kv_get(POSITION)
        position = int(fact.value) if fact else 0
        missed = 0
        while True:
            found = await self._view.caller.call(
                self._view.caller.bot.get_star_transactions,
                chat=None,
                priority=Priority.SCREEN,
                offset=position,
                limit=PAGE,
            )
            for transaction in found.transactions:
                missed += await self._reconcile_one(transaction)
            position += len(found.transactions)
            await self._store.kv_put(mine, str(position))
            await self._store.kv_delete(POSITION)  # from when there was one bot: it was ours
            if len(found.transactions) < PAGE:
                return missed

    async def _reconcile_one(self, transaction: StarTransaction) -> int:
        source, receiver = transaction.source, transaction.receiver
        if isinstance(source, TransactionPartnerUser):
            bill = Invoice.read(source.invoice_payload or "")
            if bill is None:
                return 0
            person = await self._store.ensure_account(CHANNEL, str(self._view.caller.bot.id), str(source.user.id))
            if not await self._credit(person, transaction.id, transaction.amount, bill):
                return 0
            await self._thank(source.user.id, person, transaction.id, bill)
            return 1
        if isinstance(receiver, TransactionPartnerUser):
            return await self._refunded_elsewhere(transaction.id)
        return 0

    async def _thank(self, outside: int, person: int, charge: str, bill: Invoice) -> None:
        profile = (await self._store.find_profiles(str(person), 1)) or None
        t = translator(profile[0].language if profile else "en")
        wallet = await self._store.wallet(person)
        text = t.html(
            "topup.paid",
            credits=t.credits(bill.credits * THOUSANDTHS),
            balance=t.credits(wallet.available),
            charge=charge,
        )
        try:
            await self._view.tell(outside, text)
        except ChannelError:
            return  # the balance shows it; counted by the caller

    # refunds

    async def refund(self, charge: str, by: str) -> Payment:
        """Give stars back. The credits are taken first and must still be there; a lost answer is asked for again."""
        payment = await self._store.payment(charge)
        if payment is None:
            raise NoRefund(f"there is no payment {charge}", "no_payment")
        if payment.state is PaymentState.REFUNDED:
            raise NoRefund(f"payment {charge} has been refunded already", "stars_before")
        profile = await self._store.profile(payment.account_id)  # whom we do not know we cannot pay
        await self._store.kv_put_if_absent(f"{REFUND}{charge}", by)  # its age is that of the first try
        try:
            payment = await self._take_back(payment, by)
            await self._store.kv_put_if_absent(f"{REFUND}{charge}", by)  # whoever saw it before it began has dropped it
            await self._give_back(payment, int(profile.external_id))
        except (ChannelBusy, ChannelOutcomeUnknown):
            raise  # it stays `refunding`: the same command goes on with it, or the next look at Telegram's list
        except ActionNotAllowed:
            await self._store.kv_delete(f"{REFUND}{charge}")
            raise
        except ChannelError as error:
            if "already" not in str(error).lower():
                await self._undo(payment)
                raise NoRefund(f"Telegram refused the refund: {error}", "stars_refused", reason=str(error)) from error
        await self._store.change_payment_state(charge, PaymentState.REFUNDING, PaymentState.REFUNDED)
        await self._store.kv_delete(f"{REFUND}{charge}")
        return payment

    async def go_on_refunding(self, older_than: float) -> None:
        """Refunds whose answer was lost are asked for again, in the name of whoever began them."""
        for fact in await self._store.kv_list(REFUND):
            charge = fact.key.removeprefix(REFUND)
            if fact.age < older_than:
                continue
            if (payment := await self._open(charge)) is None:
                await self._store.kv_delete(fact.key)  # it ended, or never began
                if await self._open(charge) is not None:  # or it began at this very moment
                    await self._store.kv_put_if_absent(fact.key, fact.value)
                continue
            try:
                payment = await self.refund(charge, fact.value)
            except (Refusal, ChannelError) as error:
                outcome = str(error)
            else:
                outcome = f"{payment.stars} ⭐"
                await self.tell_refunded(payment)
            await self._store.add_audit(
                bot=str(self._view.caller.bot.id),
                key=f"refund:{charge}:{payment.refunds}:{outcome[:40]}",
                actor=fact.value,
                action="refund of stars",
                subject=charge,
                detail=outcome[:500],
            )

    async def _open(self, charge: str) -> Payment | None:
        payment = await self._store.payment(charge)
        return payment if payment is not None and payment.state is PaymentState.REFUNDING else None

    async def tell_refunded(self, payment: Payment) -> None:
        """Tell whoever has their stars back; Telegram tells them, too."""
        profile = await self._store.profile(payment.account_id)
        t = translator(profile.language)
        text = t.html("topup.refunded", stars=payment.stars, credits=t.credits(payment.amount))
        try:
            await self._view.tell(int(profile.external_id), text)
        except ChannelError:
            return  # counted by the caller

    async def _take_back(self, payment: Payment, by: str) -> Payment:
        """Begin a try, or go on with the one that is open; its number makes its debit happen once."""
        await self._store.change_payment_state(payment.charge, PaymentState.PAID, PaymentState.REFUNDING)
        now = await self._store.payment(payment.charge)
        if now is None or now.state is not PaymentState.REFUNDING:
            raise NoRefund(
                f"payment {payment.charge} has been refunded already, or somebody else is at it", "stars_before"
            )
        key = f"unstars:{now.charge}:{now.refunds - 1}"
        try:
            fresh = await self._store.transfer(
                now.account_id, EntryKind.DEBIT, now.amount, key, f"refund of stars by {by}"
            )
        except InsufficientBalance as error:
            await self._store.change_payment_state(
                now.charge, PaymentState.REFUNDING, PaymentState.PAID, now.refunds, untaken=True
            )
            raise NoRefund(
                f"the credits are not there: {error.available / THOUSANDTHS:g} of {now.amount / THOUSANDTHS:g}",
                "stars_spent",
                available=error.available,
                amount=now.amount,
            ) from error
        if not fresh and await self._is_undone(now):
            await self._store.change_payment_state(now.charge, PaymentState.REFUNDING, PaymentState.PAID, now.refunds)
            raise NoRefund("Telegram refused this try before", "stars_refused", reason="it was refused before")
        return now

    async def _is_undone(self, payment: Payment) -> bool:
        """Whether the credits of this try are back already: whoever gave them back died before the end of it."""
        ledger_entries = await self._store.ledger_entries(payment.account_id, MOVEMENTS_READ)
        return any(line.key == _undo_key(payment) for line in ledger_entries)

    async def _give_back(self, payment: Payment, user: int) -> None:
        await self._view.caller.call(
            self._view.caller.bot.refund_star_payment,
            chat=None,
            priority=Priority.RESULT,
            user_id=user,
            telegram_payment_charge_id=payment.charge,
        )

    async def _undo(self, payment: Payment) -> None:
        """Telegram will not give the stars back: the person keeps the credits. Only this try is undone, and once."""
        key, reason = _undo_key(payment), "refund refused by Telegram"
        await self._store.transfer(payment.account_id, EntryKind.GRANT, payment.amount, key, reason)
        await self._store.change_payment_state(
            payment.charge, PaymentState.REFUNDING, PaymentState.PAID, payment.refunds
        )
        await self._store.kv_delete(f"{REFUND}{payment.charge}")

    async def _refunded_elsewhere(self, charge: str) -> int:
        """Telegram's list has a refund: ours, or one that was made without us."""
        payment = await self._store.payment(charge)
        if payment is None or payment.state is PaymentState.REFUNDED:
            return 0
        try:
            await self._take_back(payment, "telegram")
        except ActionNotAllowed as error:
            await self._store.add_audit(
                bot=str(self._view.caller.bot.id),
                key=f"refunded:{charge}",
                actor="telegram",
                action="refund without credits",
                subject=charge,
                detail=str(error),
            )
            return 0
        await self._store.change_payment_state(charge, PaymentState.REFUNDING, PaymentState.REFUNDED)
        return 1


def _undo_key(payment: Payment) -> str:
    return f"restars:{payment.charge}:{payment.refunds}"
