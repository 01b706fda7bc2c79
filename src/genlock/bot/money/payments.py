"""Payments in Telegram Stars: credited once per charge, compared with Telegram's own list of transactions."""

from dataclasses import replace
from datetime import UTC

from telegram import RefundedPayment, StarTransaction, SuccessfulPayment, TransactionPartnerUser

from genlock.bot.bundle import BotBundle, SendQueued
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, UpdateContext
from genlock.bot.money.invoices import STARS, Invoice
from genlock.bot.order.draft import Step
from genlock.bot.order.draft_view import DraftView
from genlock.channels.telegram.address import Address
from genlock.channels.telegram.caller import Priority
from genlock.domain.errors import AccountNotFound, ChannelError
from genlock.domain.money import EntryKind, Wallet
from genlock.domain.queued_message import QueuedMessage
from genlock.engine.cancellation import uninterrupted
from genlock.engine.reconciliation import PaymentDifference, PaymentDifferenceKind, ReconciliationRecord, Run
from genlock.engine.refunds import RESUME_SECONDS, Refunds
from genlock.engine.tell import make_message
from genlock.i18n.loader import DEFAULT
from genlock.i18n.translator import Html, Translator
from genlock.ports import Database

#: kv entry of the bot: how many of Telegram's transactions have been read
POSITION = "chat:stars"
PAGE = 100


class Payments:
    def __init__(
        self,
        *,
        bundle: BotBundle,
        store: Database,
        view: ChatView,
        drafts: DraftView,
        refunds: Refunds,
        send_queued: SendQueued,
    ) -> None:
        self._bundle = bundle
        self._caller = bundle.caller
        self._store = store
        self._view = view
        self._drafts = drafts
        self._refunds = refunds
        self._send_queued = send_queued
        self.reconciliation = ReconciliationRecord(store, bundle.id)

    async def paid(self, ctx: UpdateContext, payment: SuccessfulPayment) -> None:
        """Credit a payment, thank the user, and go back to the order that waited for it."""
        charge = payment.telegram_payment_charge_id
        invoice = _sold(payment.invoice_payload, payment.total_amount) if payment.currency == STARS else None
        if invoice is None:
            await self._report_unexpected(charge, payment.invoice_payload)
            t, support = ctx.translator, self._bundle.rules.support
            support = support or t.plain("paysupport.support_default")
            await self._view.send_text(ctx, t.html("topup.strange", support=support, charge=charge))
            return
        account_id = ctx.profile.account_id
        credited = await self._credit(account_id, charge, invoice)
        if credited or not ctx.first:  # otherwise the reconciliation was first, and has thanked the user
            await self._view.send_text(ctx, await self._thanks(account_id, ctx.translator, charge, invoice))
        # The receipt stays. Below it comes the order that waited, or the menu; the page of packages goes away.
        ready = ctx.translator.html("topup.ready") if ctx.draft.step is Step.CONFIRM else None
        await self._drafts.show(ctx, note=ready)

    async def refunded(self, user: int, payment: RefundedPayment) -> None:
        """Book a refund that a service message in the user's chat reports: one of ours, or one made without us."""
        invoice = _sold(payment.invoice_payload, payment.total_amount) if payment.currency == STARS else None
        charge = payment.telegram_payment_charge_id
        await self._credit_before_refund(user, charge, invoice)
        await self._refunds.book_external(charge)

    async def _credit_before_refund(self, user: int, charge: str, invoice: Invoice | None) -> None:
        """Book a payment whose refund is known first: its message, when it comes, finds the charge credited."""
        if invoice is not None and await self._store.payment(charge) is None:
            account_id = await self._store.ensure_account(CHANNEL, self._bundle.id, str(user))
            await self._credit(account_id, charge, invoice)

    async def _thanks(self, account_id: int, t: Translator, charge: str, invoice: Invoice) -> Html:
        wallet = await self._store.wallet(account_id)
        repaid = await self._store.ledger_entry(f"repay:{_key(charge)}")
        return _thanks(t, charge, invoice, wallet, repaid.amount if repaid else 0)

    async def _credit(
        self, account_id: int, charge: str, invoice: Invoice, message: QueuedMessage | None = None
    ) -> bool:
        """Credit a charge once. The ledger is written first, so that no stored payment is without its credits."""
        key, reason = _key(charge), f"{invoice.stars} stars"
        credited = await self._store.transfer(account_id, EntryKind.TOPUP, invoice.amount, key, reason, message=message)
        await self._store.add_payment(charge, account_id, invoice.stars, invoice.amount)
        return credited

    async def _report_unexpected(self, charge: str, payload: str) -> None:
        """Record a payment that no invoice of ours asked for."""
        await self._store.add_audit(
            bot=self._bundle.id,
            key=f"strange:{charge}",
            actor="telegram",
            action="strange payment",
            subject=charge,
            detail=f"payload {payload[:100]!r}",
        )

    # Telegram's own list of transactions

    async def reconcile(self) -> int:
        """Read new transactions in Telegram's list and book those we missed; returns how many that were."""
        await self._refunds.resume(RESUME_SECONDS)
        run = Run()
        try:
            booked = await self._read_new(run)
        except ChannelError as error:
            await self.reconciliation.write(run, f"{type(error).__name__}: {error}")
            raise
        await self.reconciliation.write(run)
        return booked

    async def _read_new(self, run: Run) -> int:
        entry = await self._store.kv_get(POSITION, self._bundle.id)
        run.position = int(entry.value) if entry else 0
        booked = 0
        while True:
            found = await self._caller.call(
                self._caller.bot.get_star_transactions,
                chat=None,
                priority=Priority.SCREEN,
                offset=run.position,
                limit=PAGE,
            )
            for transaction in found.transactions:
                booked += await uninterrupted(self._reconcile_one(transaction, run))
            run.read += len(found.transactions)
            run.position += len(found.transactions)
            if run.differences:  # before the position: what follows may fail
                await self.reconciliation.write(run)
            await self._store.kv_put(POSITION, str(run.position), self._bundle.id)
            if len(found.transactions) < PAGE:
                return booked

    async def _reconcile_one(self, transaction: StarTransaction, run: Run) -> int:
        if isinstance(transaction.source, TransactionPartnerUser):
            return await self._reconcile_payment(transaction, transaction.source, run)
        if isinstance(transaction.receiver, TransactionPartnerUser):
            return await self._reconcile_refund(transaction, transaction.receiver, run)
        return 0

    async def _reconcile_payment(self, transaction: StarTransaction, payer: TransactionPartnerUser, run: Run) -> int:
        invoice = _sold(payer.invoice_payload or "", transaction.amount)
        if invoice is None:
            run.differences.append(_difference(PaymentDifferenceKind.UNKNOWN_PAYMENT, transaction, payer))
            return 0
        booked = await self._book_missed(transaction, payer.user.id, invoice)
        if booked:
            run.differences.append(_difference(PaymentDifferenceKind.MISSED_PAYMENT, transaction, payer))
        return booked

    async def _reconcile_refund(self, transaction: StarTransaction, payee: TransactionPartnerUser, run: Run) -> int:
        invoice = _sold(payee.invoice_payload or "", transaction.amount)
        await self._credit_before_refund(payee.user.id, transaction.id, invoice)
        booked = await self._refunds.book_external(transaction.id)
        payment = await self._store.payment(transaction.id)
        if payment is None:
            run.differences.append(_difference(PaymentDifferenceKind.UNKNOWN_REFUND, transaction, payee))
        elif booked and payment.external_refund_at is not None:
            run.differences.append(_difference(PaymentDifferenceKind.EXTERNAL_REFUND, transaction, payee))
        return int(booked)

    async def _book_missed(self, transaction: StarTransaction, user: int, invoice: Invoice) -> int:
        if await self._store.payment(transaction.id) is not None:
            return 0
        account_id = await self._store.ensure_account(CHANNEL, self._bundle.id, str(user))
        language = await self._language(account_id)
        if not (await self._store.account(account_id)).address:  # the update that would have brought it was lost, too
            await self._store.set_account_address(account_id, str(Address(chat=user, language=language)))
        message = make_message(account_id, await self._expected_thanks(account_id, language, transaction.id, invoice))
        if not await self._credit(account_id, transaction.id, invoice, message):
            return 0
        await self._send_queued(message)
        return 1

    async def _expected_thanks(self, account_id: int, language: str, charge: str, invoice: Invoice) -> Html:
        """Return what the user reads when the payment is credited: the message is queued in the same commit."""
        wallet = await self._store.wallet(account_id)
        repaid = min(wallet.debt, invoice.amount)
        available = wallet.available + invoice.amount - repaid
        wallet = replace(wallet, available=available, debt=wallet.debt - repaid)
        return _thanks(self._bundle.texts.translator(language), charge, invoice, wallet, repaid)

    async def _language(self, account_id: int) -> str:
        try:
            return (await self._store.profile(account_id)).language
        except AccountNotFound:  # the payment is the first update of this user
            return DEFAULT


def _sold(payload: str, stars: int) -> Invoice | None:
    """Return the invoice that was paid with this many stars; None if it is not one of ours."""
    invoice = Invoice.read(payload)
    return invoice if invoice is not None and invoice.stars == stars else None


def _thanks(t: Translator, charge: str, invoice: Invoice, wallet: Wallet, repaid: int) -> Html:
    """Return the text about a payment whose credits are in the wallet, and have repaid so much of a debt."""
    balance = t.credits(wallet.available)
    text = t.html("topup.paid", credits=t.credits(invoice.amount), balance=balance, charge=charge)
    if not repaid:
        return text
    note = "topup.repaid_part" if wallet.debt else "topup.repaid"
    return Html(f"{text}\n\n{t.html(note, credits=t.credits(repaid), debt=t.credits(wallet.debt))}")


def _difference(
    kind: PaymentDifferenceKind, transaction: StarTransaction, partner: TransactionPartnerUser
) -> PaymentDifference:
    at, user = transaction.date.astimezone(UTC), str(partner.user.id)
    return PaymentDifference(kind=kind, charge=transaction.id, user=user, paid_amount=transaction.amount, at=at)


def _key(charge: str) -> str:
    """Return the idempotency key of a charge in the ledger."""
    return f"stars:{charge}"
