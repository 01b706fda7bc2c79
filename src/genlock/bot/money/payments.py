"""Telegram Stars: invoices, the check before a payment, payments, refunds, and Telegram's own list of transactions."""

from dataclasses import dataclass

from telegram import LabeledPrice, PreCheckoutQuery, StarTransaction, SuccessfulPayment, TransactionPartnerUser

from genlock.bot.bundle import BotBundle, Tell
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, UpdateContext
from genlock.bot.order.draft import Step
from genlock.bot.order.draft_view import DraftView
from genlock.channels.telegram.address import Address
from genlock.channels.telegram.caller import Priority
from genlock.channels.telegram.errors import AlreadyRefunded, QueryTooOld
from genlock.domain.errors import (
    AccountNotFound,
    ActionNotAllowed,
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    InsufficientBalance,
    Refusal,
)
from genlock.domain.money import THOUSANDTHS, EntryKind
from genlock.domain.payment import Payment, PaymentState
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Html
from genlock.ports import Database

STARS = "XTR"
#: kv entry of the bot: how many of Telegram's transactions have been read
POSITION = "chat:stars"
#: kv entries of the bot, one per refund that has begun and not ended; the value is the operator
REFUND = "chat:refund:"
REFUND_SECONDS = 60.0
PAGE = 100
ENTRIES_READ = 500
PAYLOAD = "credits"


class NoRefund(ActionNotAllowed):
    """Stars are not refunded; `text` is the key of the operators' text that says why, with its values."""

    def __init__(self, message: str, text: str, **values: object) -> None:
        super().__init__(message)
        self.text = text
        self.values = values


@dataclass(frozen=True, kw_only=True, slots=True)
class Invoice:
    """The payload of an invoice: written by us, returned by Telegram unchanged."""

    stars: int
    credits: int

    def __str__(self) -> str:
        return f"{PAYLOAD}:{self.stars}:{self.credits}"

    @classmethod
    def read(cls, payload: str) -> "Invoice | None":
        parts = payload.split(":")
        if len(parts) != 3 or parts[0] != PAYLOAD or not all(part.isdecimal() for part in parts[1:]):  # noqa: PLR2004
            return None
        invoice = cls(stars=int(parts[1]), credits=int(parts[2]))
        return invoice if invoice.stars and invoice.credits else None


class Payments:
    def __init__(self, *, bundle: BotBundle, store: Database, view: ChatView, drafts: DraftView, tell: Tell) -> None:
        self._bundle = bundle
        self._caller = bundle.caller
        self._store = store
        self._view = view
        self._drafts = drafts
        self._tell = tell

    # buying

    async def send_invoice(self, ctx: UpdateContext, stars: int) -> None:
        """Send the invoice of a package. A repeated one is harmless: each can be paid once at most."""
        t, view = ctx.translator, self._view
        package = next((one for one in self._bundle.rules.packages if one.stars == stars), None)
        if package is None or ctx.group:
            await view.toast(ctx, t.plain("topup.wrong"), alert=True)
            return
        await view.toast(ctx)
        label = t.credits(package.credits * THOUSANDTHS)
        await self._caller.call(
            self._caller.bot.send_invoice,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            title=t.plain("topup.invoice_title", credits=label),
            description=t.plain("topup.invoice_text"),
            payload=str(Invoice(stars=package.stars, credits=package.credits)),
            provider_token="",
            currency=STARS,
            prices=[LabeledPrice(label, package.stars)],
            start_parameter="topup",
        )

    async def check(self, query: PreCheckoutQuery) -> None:
        """Accept or refuse a payment before it is made. Needs no database: Telegram waits ten seconds at most."""
        invoice = Invoice.read(query.invoice_payload)
        valid = invoice is not None and query.currency == STARS and query.total_amount == invoice.stars
        t = self._bundle.translator_for(query.from_user.language_code)
        try:
            await self._caller.call(
                self._caller.bot.answer_pre_checkout_query,
                chat=None,
                priority=Priority.RESULT,
                pre_checkout_query_id=query.id,
                ok=valid,
                error_message=None if valid else t.plain("topup.wrong"),
            )
        except QueryTooOld:
            return  # Telegram has given the stars back

    async def paid(self, ctx: UpdateContext, payment: SuccessfulPayment) -> None:
        """Credit a payment, thank the user, and go back to the order that waited for it."""
        invoice = Invoice.read(payment.invoice_payload)
        charge = payment.telegram_payment_charge_id
        if invoice is None or payment.currency != STARS:
            await self._audit(
                f"strange:{charge}", "strange payment", charge, f"payload {payment.invoice_payload[:100]!r}"
            )
            return
        account_id = ctx.profile.account_id
        fresh = await self._credit(account_id, charge, payment.total_amount, invoice)
        if fresh or not ctx.first:  # otherwise the reconciliation was first, and has thanked the user
            await self._view.send_text(ctx, await self._thanks(account_id, ctx.translator.language, charge, invoice))
        # The receipt stays. Below it comes the order that waited, or the menu; the page of packages goes away.
        ready = ctx.translator.html("topup.ready") if ctx.draft.step is Step.CONFIRM else None
        await self._drafts.show(ctx, note=ready)

    async def _thanks(self, account_id: int, language: str, charge: str, invoice: Invoice) -> Html:
        t = self._bundle.texts.translator(language)
        wallet = await self._store.wallet(account_id)
        return t.html(
            "topup.paid",
            credits=t.credits(invoice.credits * THOUSANDTHS),
            balance=t.credits(wallet.available),
            charge=charge,
        )

    async def _credit(self, account_id: int, charge: str, stars: int, invoice: Invoice) -> bool:
        """Credit a charge once. The ledger is written first, so that no stored payment is without its credits."""
        amount = invoice.credits * THOUSANDTHS
        fresh = await self._store.transfer(account_id, EntryKind.TOPUP, amount, f"stars:{charge}", f"{stars} stars")
        await self._store.add_payment(charge, account_id, stars, amount)
        return fresh

    async def _audit(self, key: str, action: str, subject: str, detail: str, *, actor: str = "telegram") -> None:
        await self._store.add_audit(
            bot=self._bundle.id, key=key, actor=actor, action=action, subject=subject, detail=detail[:500]
        )

    # Telegram's own list of transactions

    async def reconcile(self) -> int:
        """Read new transactions in Telegram's list and book those we missed; returns how many that were."""
        await self.resume_refunds(REFUND_SECONDS)
        entry = await self._store.kv_get(POSITION, self._bundle.id)
        position = int(entry.value) if entry else 0
        missed = 0
        while True:
            found = await self._caller.call(
                self._caller.bot.get_star_transactions,
                chat=None,
                priority=Priority.SCREEN,
                offset=position,
                limit=PAGE,
            )
            for transaction in found.transactions:
                missed += await self._reconcile_one(transaction)
            position += len(found.transactions)
            await self._store.kv_put(POSITION, str(position), self._bundle.id)
            if len(found.transactions) < PAGE:
                return missed

    async def _reconcile_one(self, transaction: StarTransaction) -> int:
        source, receiver = transaction.source, transaction.receiver
        if isinstance(source, TransactionPartnerUser):
            invoice = Invoice.read(source.invoice_payload or "")
            return 0 if invoice is None else await self._book_missed(transaction, source.user.id, invoice)
        if isinstance(receiver, TransactionPartnerUser):
            return await self._book_external_refund(transaction.id)
        return 0

    async def _book_missed(self, transaction: StarTransaction, user: int, invoice: Invoice) -> int:
        account_id = await self._store.ensure_account(CHANNEL, self._bundle.id, str(user))
        if not await self._credit(account_id, transaction.id, transaction.amount, invoice):
            return 0
        language = await self._language(account_id)
        if not (await self._store.account(account_id)).address:  # the update that would have brought it was lost, too
            await self._store.set_account_address(account_id, str(Address(chat=user, language=language)))
        await self._tell(account_id, await self._thanks(account_id, language, transaction.id, invoice))
        return 1

    async def _language(self, account_id: int) -> str:
        try:
            return (await self._store.profile(account_id)).language
        except AccountNotFound:  # the payment is the first update of this user
            return DEFAULT

    # refunds

    async def refund(self, charge: str, by: str) -> Payment:
        """Debit the credits, which must still be there, then refund the stars. A lost answer leads to another call."""
        payment = await self._store.payment(charge)
        if payment is None or await self._is_of_another_bot(payment):
            raise NoRefund(f"there is no payment {charge}", "no_payment")
        if payment.state is PaymentState.REFUNDED:
            raise NoRefund(f"payment {charge} has been refunded already", "stars_before")
        user = int((await self._store.profile(payment.account_id)).external_id)  # raises if Telegram has no such user
        await self._mark(charge, by)  # the mark keeps the time of the first attempt
        try:
            payment = await self._debit(payment, by)
            await self._mark(charge, by)  # an instance that looked before the refund began has removed the mark
            await self._refund_stars(payment, user)
        except (ChannelBusy, ChannelOutcomeUnknown):
            raise  # it stays `refunding`: the same command, or the next reconciliation, continues it
        except AlreadyRefunded:
            pass
        except ActionNotAllowed:
            await self._unmark(charge)
            raise
        except ChannelError as error:
            await self._undo(payment)
            raise NoRefund(f"Telegram refused the refund: {error}", "stars_refused", reason=str(error)) from error
        await self._store.change_payment_state(charge, PaymentState.REFUNDING, PaymentState.REFUNDED)
        await self._unmark(charge)
        return payment

    async def _is_of_another_bot(self, payment: Payment) -> bool:
        return (await self._store.account(payment.account_id)).bot != self._bundle.id

    async def _mark(self, charge: str, by: str) -> None:
        await self._store.kv_put_if_absent(f"{REFUND}{charge}", by, self._bundle.id)

    async def _unmark(self, charge: str) -> None:
        await self._store.kv_delete(f"{REFUND}{charge}", self._bundle.id)

    async def resume_refunds(self, older_than: float) -> None:
        """Ask Telegram again for refunds whose answer was lost, in the name of the operator who began them."""
        for entry in await self._store.kv_list(REFUND, self._bundle.id):
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

    async def open_refunds(self) -> list[tuple[Payment, str, float]]:
        """Refunds that Telegram has not confirmed: the payment, the user's name, the age in seconds; oldest first."""
        found = [
            (payment, (await self._store.profile(payment.account_id)).name, entry.age)
            for entry in await self._store.kv_list(REFUND, self._bundle.id)
            if (payment := await self._store.payment(entry.key.removeprefix(REFUND))) is not None
        ]
        return sorted(found, key=lambda one: -one[2])

    async def _open(self, charge: str) -> Payment | None:
        payment = await self._store.payment(charge)
        return payment if payment is not None and payment.state is PaymentState.REFUNDING else None

    async def tell_refunded(self, payment: Payment) -> bool:
        """Tell the user that their stars are back (Telegram tells them, too); False if they were not reached."""
        t = self._bundle.texts.translator(await self._language(payment.account_id))
        text = t.html("topup.refunded", stars=payment.stars, credits=t.credits(payment.amount))
        return await self._tell(payment.account_id, text)

    async def _debit(self, payment: Payment, by: str) -> Payment:
        """Debit the credits for a new refund attempt, or for the open one; once, by the attempt number in the key."""
        await self._store.change_payment_state(payment.charge, PaymentState.PAID, PaymentState.REFUNDING)
        now = await self._store.payment(payment.charge)
        if now is None or now.state is not PaymentState.REFUNDING:
            raise NoRefund(
                f"payment {payment.charge} has been refunded already, or another operator is refunding it",
                "stars_before",
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
        """Whether the credits of this attempt were already returned, by an instance that crashed afterwards."""
        ledger_entries = await self._store.ledger_entries(payment.account_id, ENTRIES_READ)
        return any(line.key == _undo_key(payment) for line in ledger_entries)

    async def _refund_stars(self, payment: Payment, user: int) -> None:
        await self._caller.call(
            self._caller.bot.refund_star_payment,
            chat=None,
            priority=Priority.RESULT,
            user_id=user,
            telegram_payment_charge_id=payment.charge,
        )

    async def _undo(self, payment: Payment) -> None:
        """Return the credits because Telegram refused the refund. Undoes this attempt only, and once."""
        key, reason = _undo_key(payment), "refund refused by Telegram"
        await self._store.transfer(payment.account_id, EntryKind.GRANT, payment.amount, key, reason)
        await self._store.change_payment_state(
            payment.charge, PaymentState.REFUNDING, PaymentState.PAID, payment.refunds
        )
        await self._unmark(payment.charge)

    async def _book_external_refund(self, charge: str) -> int:
        """Book a refund in Telegram's list: one of ours, or one that was made without us."""
        payment = await self._store.payment(charge)
        if payment is None or payment.state is PaymentState.REFUNDED:
            return 0
        try:
            await self._debit(payment, "telegram")
        except ActionNotAllowed as error:
            await self._audit(f"refunded:{charge}", "refund without credits", charge, str(error))
            return 0
        await self._store.change_payment_state(charge, PaymentState.REFUNDING, PaymentState.REFUNDED)
        return 1


def _undo_key(payment: Payment) -> str:
    return f"restars:{payment.charge}:{payment.refunds}"
