"""Invoices in Telegram Stars: what is sent, and the check before a payment."""

from dataclasses import dataclass

from telegram import LabeledPrice, PreCheckoutQuery

from genlock.bot.bundle import BotBundle
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.channels.telegram.caller import Priority
from genlock.channels.telegram.errors import QueryTooOld
from genlock.domain.money import THOUSANDTHS

STARS = "XTR"
PAYLOAD = "credits"


@dataclass(frozen=True, kw_only=True, slots=True)
class Invoice:
    """The payload of an invoice: written by us, returned by Telegram unchanged."""

    stars: int
    credits: int

    def __str__(self) -> str:
        return f"{PAYLOAD}:{self.stars}:{self.credits}"

    @property
    def amount(self) -> int:
        """What it credits, in thousandths of a credit."""
        return self.credits * THOUSANDTHS

    @classmethod
    def read(cls, payload: str) -> "Invoice | None":
        parts = payload.split(":")
        if len(parts) != 3 or parts[0] != PAYLOAD or not all(part.isdecimal() for part in parts[1:]):  # noqa: PLR2004
            return None
        invoice = cls(stars=int(parts[1]), credits=int(parts[2]))
        return invoice if invoice.stars and invoice.credits else None


class Invoices:
    def __init__(self, *, bundle: BotBundle, view: ChatView) -> None:
        self._bundle = bundle
        self._caller = bundle.caller
        self._view = view

    async def send(self, ctx: UpdateContext, stars: int) -> None:
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
