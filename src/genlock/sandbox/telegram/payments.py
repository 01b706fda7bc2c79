"""Telegram Stars: invoices, pre-checkout queries, payments, refunds and the list of transactions."""

import asyncio
import re
import secrets
from typing import Any

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.chats import Message, User
from genlock.sandbox.telegram.markup import read_markup
from genlock.sandbox.telegram.messages import Method, chat_for_sending, post_message, reply_and_thread
from genlock.sandbox.telegram.profile import QUERY_EXPIRED
from genlock.sandbox.telegram.stars import STARS, Charge, Invoice, Payment
from genlock.sandbox.telegram.state import TelegramState

CHECKOUT_SECONDS = 10
STARS_MAX = 100_000
CURRENCY = re.compile("[A-Z]{3}")
LINK = "https://t.me/$"


async def send_invoice(state: TelegramState, arguments: CallArguments) -> Any:
    markup = read_markup(arguments)
    chat = chat_for_sending(state, arguments, "invoice")
    reply_and_thread(state, chat, arguments)
    invoice = _invoice(arguments)
    message = post_message(state, chat, arguments, {"invoice": invoice.as_json()}, markup=markup)
    state.stars_ledger.invoices[_key(message)] = invoice
    return state.show(message)


async def create_link(state: TelegramState, arguments: CallArguments) -> str:
    link = LINK + secrets.token_urlsafe(12)
    state.stars_ledger.invoices[link] = _invoice(arguments)
    return link


def _invoice(arguments: CallArguments) -> Invoice:
    for name in ("title", "description", "payload", "currency", "prices"):
        arguments.required(name)
    prices = arguments.objects("prices", "prices")
    if not prices:
        raise bad_request("there must be at least one price")
    if not all(price.get("label") for price in prices):
        raise bad_request("can't parse labeled price: LabeledPrice label must be non-empty")
    lengths = {"title": (arguments.text("title"), 32), "description": (arguments.text("description"), 255)}
    for name, (text, limit) in lengths.items():
        if len(text) > limit:
            raise bad_request(f"INVOICE_{name.upper()}_INVALID")
    if len(arguments.text("payload").encode()) > 128:
        raise bad_request("INVOICE_PAYLOAD_INVALID")
    return Invoice(
        title=arguments.text("title"),
        description=arguments.text("description"),
        payload=arguments.text("payload"),
        amount=_total(arguments, prices),
        currency=arguments.text("currency"),
        start_parameter=arguments.text("start_parameter"),
    )


def _total(arguments: CallArguments, prices: list[dict[str, Any]]) -> int:
    """Return the sum of the prices. An invoice in Stars has one; another currency needs a payment provider."""
    amount = sum(CallArguments(price).number("amount") for price in prices)
    if arguments.text("currency") == STARS:
        if len(prices) != 1 or not 1 <= amount <= STARS_MAX:
            raise bad_request("STARS_INVOICE_INVALID")
    elif not arguments.text("provider_token"):
        raise bad_request("PAYMENT_PROVIDER_INVALID")
    elif not CURRENCY.fullmatch(arguments.text("currency")):
        raise bad_request("CURRENCY_INVALID")
    elif amount <= 0:
        raise bad_request("CURRENCY_TOTAL_AMOUNT_INVALID")
    return amount


def _key(message: Message) -> str:
    return f"{message.chat}/{message.id}"


async def pay(state: TelegramState, user: User, what: Message | str) -> Payment:
    """Pay an invoice as a user. The bot gets a pre-checkout query and has ten seconds to accept it."""
    key = _key(what) if isinstance(what, Message) else what
    invoice = state.stars_ledger.invoices[key]
    if invoice.currency != STARS:
        return Payment(reason="only Stars can be paid here")
    if key in state.stars_ledger.paid:
        return Payment(reason="the invoice is paid")
    if user.stars < invoice.amount:
        return Payment(reason="not enough Stars")
    agreed, reason = await _ask(state, user, invoice)
    if not agreed:
        state.events.add("payment", person=user.id, ok=False, reason=reason)
        return Payment(reason=reason)
    if isinstance(what, Message):
        state.stars_ledger.paid.add(key)
        state.events.add("edit", **state.view(what))
    return _charge(state, user, invoice, what.chat if isinstance(what, Message) else user.id)


async def _ask(state: TelegramState, user: User, invoice: Invoice) -> tuple[bool, str]:
    number = str(state.rng.randrange(10**17, 10**18))
    question: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
    state.stars_ledger.asked[number] = question
    query = {"id": number, "from": user.as_json(), "currency": STARS, "total_amount": invoice.amount}
    query["invoice_payload"] = invoice.payload
    state.updates.add("pre_checkout_query", query, f"checkout {user.id}")
    try:
        async with asyncio.timeout(CHECKOUT_SECONDS / state.speed):
            return await question
    except TimeoutError:
        return False, "the bot did not answer in time"
    finally:
        del state.stars_ledger.asked[number]


def _charge(state: TelegramState, user: User, invoice: Invoice, place: int) -> Payment:
    charge = Charge(
        id="stx" + secrets.token_urlsafe(48),
        user_id=user.id,
        payload=invoice.payload,
        amount=invoice.amount,
        at=state.now(),
    )
    state.stars_ledger.charges.append(charge)
    user.stars -= invoice.amount
    _post_service_message(state, charge, "successful_payment", place)
    state.events.add("payment", person=user.id, ok=True, charge=charge.id, amount=charge.amount, stars=user.stars)
    return Payment(charge_id=charge.id)


def _post_service_message(state: TelegramState, charge: Charge, kind: str, place: int) -> None:
    fields = {"currency": STARS, "total_amount": charge.amount, "invoice_payload": charge.payload}
    fields |= {"telegram_payment_charge_id": charge.id, "provider_payment_charge_id": f"{charge.user_id}_{charge.at}"}
    message = state.post(state.chats[place], charge.user_id, {kind: fields}, silent=True)
    state.add_update(message)


async def answer_checkout(state: TelegramState, arguments: CallArguments) -> bool:
    question = state.stars_ledger.asked.get(arguments.text("pre_checkout_query_id"))
    if question is None or question.done():
        raise bad_request(QUERY_EXPIRED)
    agreed = arguments.flag("ok")
    question.set_result((agreed, "" if agreed else arguments.required("error_message")))
    return True


async def refund(state: TelegramState, arguments: CallArguments) -> bool:
    user_id = arguments.number("user_id")
    if user_id <= 0:
        raise bad_request("invalid user_id specified")
    number = arguments.required("telegram_payment_charge_id")
    if user_id not in state.users:
        raise bad_request("user not found")
    found = [
        candidate for candidate in state.stars_ledger.charges if candidate.id == number and candidate.user_id == user_id
    ]
    if not found:
        raise bad_request("CHARGE_NOT_FOUND")
    charge = found[0]
    if charge.refunded_at is not None:
        raise bad_request("CHARGE_ALREADY_REFUNDED")
    charge.refunded_at = state.now()
    state.users[user_id].stars += charge.amount
    state.events.add("stars", person=user_id, stars=state.users[user_id].stars)
    _post_service_message(state, charge, "refunded_payment", user_id)
    return True


async def transactions(state: TelegramState, arguments: CallArguments) -> Any:
    """Transactions, oldest first; a refund has the id of the payment it refunds."""
    rows = [(charge.at, "source", charge) for charge in state.stars_ledger.charges]
    rows += [(charge.refunded_at, "receiver", charge) for charge in state.stars_ledger.charges if charge.refunded_at]
    rows.sort(key=lambda row: row[0])
    start, count = max(arguments.number("offset"), 0), min(max(arguments.number("limit", 100), 1), 100)
    return {"transactions": [_transaction(state, *row) for row in rows[start : start + count]]}


def _transaction(state: TelegramState, at: int, side: str, charge: Charge) -> dict[str, Any]:
    partner = {"type": "user", "transaction_type": "invoice_payment", "user": state.show_user(charge.user_id)}
    partner["invoice_payload"] = charge.payload
    return {"id": charge.id, "amount": charge.amount, "date": at, side: partner}


async def balance(state: TelegramState, _: CallArguments) -> Any:
    return {"amount": state.stars_ledger.balance}


async def edit_subscription(state: TelegramState, arguments: CallArguments) -> bool:
    raise bad_request("CHARGE_NOT_FOUND" if arguments.number("user_id") in state.users else "USER_ID_INVALID")


METHODS: dict[str, Method] = {
    "sendInvoice": send_invoice,
    "createInvoiceLink": create_link,
    "answerPreCheckoutQuery": answer_checkout,
    "refundStarPayment": refund,
    "getStarTransactions": transactions,
    "getMyStarBalance": balance,
    "editUserStarSubscription": edit_subscription,
}
