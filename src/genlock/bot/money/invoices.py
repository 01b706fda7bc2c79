"""Invoices in Telegram Stars: what is sent, and the check before a payment."""

import asyncio
from dataclasses import dataclass

from telegram import LabeledPrice, PreCheckoutQuery

from genlock.bot.access import Access
from genlock.bot.bundle import BotBundle
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, UpdateContext
from genlock.channels.telegram.caller import Priority
from genlock.channels.telegram.errors import QueryTooOld
from genlock.domain.errors import AccountNotFound, StoreError
from genlock.domain.money import THOUSANDTHS
from genlock.domain.profile import Profile
from genlock.ports import Database

STARS = "XTR"
PAYLOAD = "credits"
HOUR = 3600
#: Telegram waits ten seconds for the answer. If the store takes longer than this, the payment is refused: the user can
#: pay later, but a payment by a banned user or at an old price would be taken. After three seconds in which the store
#: has not answered a heartbeat, the instance may not call Telegram any more.
STORE_SECONDS = 2.0
#: longer numbers are not ours, and Python would take long to read them
DIGITS_MAX = 18


@dataclass(frozen=True, kw_only=True, slots=True)
class Invoice:
    """The payload of an invoice: written by us, returned by Telegram unchanged."""

    stars: int
    credits: int
    #: when it was sent, in seconds since 1970, and to whom; 0 in invoices of older versions
    issued: int = 0
    user: int = 0

    def __str__(self) -> str:
        return f"{PAYLOAD}:{self.stars}:{self.credits}:{self.issued}:{self.user}"

    @property
    def amount(self) -> int:
        """What it credits, in thousandths of a credit."""
        return self.credits * THOUSANDTHS

    @classmethod
    def read(cls, payload: str) -> "Invoice | None":
        name, *numbers = payload.split(":")
        if name != PAYLOAD or len(numbers) not in (2, 4) or not all(map(_is_number, numbers)):
            return None
        stars, credits_, issued, user = (*map(int, numbers), 0, 0)[:4]
        return cls(stars=stars, credits=credits_, issued=issued, user=user) if stars and credits_ else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX


class Invoices:
    def __init__(self, *, bundle: BotBundle, store: Database, view: ChatView, access: Access) -> None:
        self._bundle = bundle
        self._caller = bundle.caller
        self._store = store
        self._view = view
        self._access = access

    async def send(self, ctx: UpdateContext, stars: int) -> None:
        """Send the invoice of a package. A repeated one is harmless: each can be paid once at most."""
        t, view = ctx.translator, self._view
        package = next((candidate for candidate in self._bundle.rules.packages if candidate.stars == stars), None)
        if package is None or ctx.group:
            await view.toast(ctx, t.plain("topup.wrong"), alert=True)
            return
        await view.toast(ctx)
        label = t.credits(package.credits * THOUSANDTHS)
        issued, user = int((await self._store.read_clock()).timestamp()), int(ctx.profile.external_id)
        await self._caller.call(
            self._caller.bot.send_invoice,
            chat=ctx.chat,
            priority=Priority.SCREEN,
            title=t.plain("topup.invoice_title", credits=label),
            description=t.plain("topup.invoice_text"),
            payload=str(Invoice(stars=package.stars, credits=package.credits, issued=issued, user=user)),
            provider_token="",
            currency=STARS,
            prices=[LabeledPrice(label, package.stars)],
            start_parameter="topup",  # a forwarded invoice gets a link to the bot instead of a button that pays it
        )

    async def check(self, query: PreCheckoutQuery) -> None:
        """Accept or refuse a payment before it is made. Telegram waits ten seconds at most."""
        refusal = await self._refusal(query)
        try:
            await self._caller.call(
                self._caller.bot.answer_pre_checkout_query,
                chat=None,
                priority=Priority.RESULT,
                pre_checkout_query_id=query.id,
                ok=refusal is None,
                error_message=refusal,
            )
        except QueryTooOld:
            return  # Telegram has given the stars back

    async def _refusal(self, query: PreCheckoutQuery) -> str | None:
        """Return why the payment is refused, in the user's language; None if it is accepted."""
        invoice, t = Invoice.read(query.invoice_payload), self._bundle.translator_for(query.from_user.language_code)
        if invoice is None or query.currency != STARS or query.total_amount != invoice.stars:
            return t.plain("topup.expired")
        try:
            async with asyncio.timeout(STORE_SECONDS):
                profile = await self._profile(query.from_user.id)
                if profile is not None:
                    t = self._bundle.texts.translator(profile.language)
                denial = await self._access.denial(query.from_user.id, profile, t)
                now = int((await self._store.read_clock()).timestamp())
        except (TimeoutError, StoreError):
            return t.plain("topup.unchecked")
        if denial is not None:
            return t.plain(f"topup.{denial.reason}", **denial.values)
        return t.plain("topup.expired") if not self._is_payable(invoice, query.from_user.id, now) else None

    def _is_payable(self, invoice: Invoice, payer: int, now: int) -> bool:
        """Whether the invoice was made for the payer, is young enough, and its package is still sold at this price."""
        rules = self._bundle.rules
        return (
            invoice.user == payer
            and now - invoice.issued <= rules.invoice_hours * HOUR
            and any((package.stars, package.credits) == (invoice.stars, invoice.credits) for package in rules.packages)
        )

    async def _profile(self, user: int) -> Profile | None:
        try:
            return await self._store.profile(await self._store.ensure_account(CHANNEL, self._bundle.id, str(user)))
        except AccountNotFound:
            return None
