"""Stars: invoices, the question before the money moves, payments, refunds and the list of them all."""

import asyncio
import secrets
from typing import Any

from genlock.sandbox.telegram.markup import read_markup
from genlock.sandbox.telegram.messages import Method, open_chat, where
from genlock.sandbox.telegram.profile import TOO_OLD
from genlock.sandbox.telegram.till import STARS, Charge, Invoice, Payment
from genlock.sandbox.telegram.wire import Given, bad_request
from genlock.sandbox.telegram.world import Message, User, World

CHECKOUT_SECONDS = 10
LINK = "https://t.me/$"


async def send_invoice(world: World, given: Given) -> Any:
    invoice, markup = _invoice(given), read_markup(given)
    chat = open_chat(world, given, "text")
    silent = given.flag("disable_notification")
    content = {"invoice": invoice.told()}
    message = world.post(chat, world.bot_id, content, silent=silent, markup=markup, **where(chat, given))
    world.till.invoices[_key(message)] = invoice
    return world.show(message)


async def create_link(world: World, given: Given) -> str:
    link = LINK + secrets.token_urlsafe(12)
    world.till.invoices[link] = _invoice(given)
    return link


def _invoice(given: Given) -> Invoice:
    prices = given.objects("prices", "prices")
    lengths = {"title": (given.text("title"), 32), "description": (given.text("description"), 255)}
    for name, (text, limit) in lengths.items():
        if not 1 <= len(text) <= limit:
            raise bad_request(f"INVOICE_{name.upper()}_INVALID")
    if not 1 <= len(given.text("payload").encode()) <= 128:
        raise bad_request("INVOICE_PAYLOAD_INVALID")
    if given.text("currency") != STARS:
        raise bad_request("PAYMENT_PROVIDER_INVALID" if given.text("provider_token") else "CURRENCY_INVALID")
    amount = Given(prices[0]).number("amount") if len(prices) == 1 else 0
    if not 1 <= amount <= 100_000:
        raise bad_request("STARS_INVOICE_INVALID")
    return Invoice(
        title=given.text("title"),
        description=given.text("description"),
        payload=given.text("payload"),
        amount=amount,
    )


def _key(message: Message) -> str:
    return f"{message.chat}/{message.id}"


async def pay(world: World, user: User, what: Message | str) -> Payment:
    """As a person does: the bot is asked first, and has ten seconds to agree."""
    key = _key(what) if isinstance(what, Message) else what
    invoice = world.till.invoices[key]
    if key in world.till.paid:
        return Payment(reason="the invoice is paid")
    if user.stars < invoice.amount:
        return Payment(reason="not enough Stars")
    agreed, reason = await _ask(world, user, invoice)
    if not agreed:
        world.events.add("payment", person=user.id, ok=False, reason=reason)
        return Payment(reason=reason)
    if isinstance(what, Message):
        world.till.paid.add(key)
        world.events.add("edit", **world.view(what))
    return _charge(world, user, invoice, what.chat if isinstance(what, Message) else user.id)


async def _ask(world: World, user: User, invoice: Invoice) -> tuple[bool, str]:
    number = str(world.rng.randrange(10**17, 10**18))
    question: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
    world.till.asked[number] = question
    query = {"id": number, "from": user.told(), "currency": STARS, "total_amount": invoice.amount}
    query["invoice_payload"] = invoice.payload
    world.updates.add("pre_checkout_query", query, f"checkout {user.id}")
    try:
        async with asyncio.timeout(CHECKOUT_SECONDS / world.speed):
            return await question
    except TimeoutError:
        return False, "the bot did not answer in time"
    finally:
        del world.till.asked[number]


def _charge(world: World, user: User, invoice: Invoice, place: int) -> Payment:
    charge = Charge(
        id="stx" + secrets.token_urlsafe(48),
        person=user.id,
        payload=invoice.payload,
        amount=invoice.amount,
        at=world.now(),
    )
    world.till.charges.append(charge)
    user.stars -= invoice.amount
    _tell(world, charge, "successful_payment", place)
    world.events.add("payment", person=user.id, ok=True, charge=charge.id, amount=charge.amount, stars=user.stars)
    return Payment(charge_id=charge.id)


def _tell(world: World, charge: Charge, kind: str, place: int) -> None:
    told = {"currency": STARS, "total_amount": charge.amount, "invoice_payload": charge.payload}
    told |= {"telegram_payment_charge_id": charge.id, "provider_payment_charge_id": f"{charge.person}_{charge.at}"}
    message = world.post(world.chats[place], charge.person, {kind: told}, silent=True)
    world.updates.add("message", world.show(message), f"chat {message.chat}")


async def answer_checkout(world: World, given: Given) -> bool:
    question = world.till.asked.get(given.text("pre_checkout_query_id"))
    if question is None or question.done():
        raise bad_request(TOO_OLD)
    agreed, reason = given.flag("ok"), given.text("error_message")
    if not agreed and not reason:
        raise bad_request("error message must be non-empty")
    question.set_result((agreed, reason))
    return True


async def refund(world: World, given: Given) -> bool:
    number, person = given.text("telegram_payment_charge_id"), given.number("user_id")
    found = [one for one in world.till.charges if one.id == number and one.person == person]
    if not found:
        raise bad_request("CHARGE_NOT_FOUND")
    charge = found[0]
    if charge.refunded_at is not None:
        raise bad_request("CHARGE_ALREADY_REFUNDED")
    charge.refunded_at = world.now()
    world.users[person].stars += charge.amount
    world.events.add("stars", person=person, stars=world.users[person].stars)
    _tell(world, charge, "refunded_payment", person)
    return True


async def transactions(world: World, given: Given) -> Any:
    """Oldest first; a refund has the id of what it refunds."""
    rows = [(charge.at, "source", charge) for charge in world.till.charges]
    rows += [(charge.refunded_at, "receiver", charge) for charge in world.till.charges if charge.refunded_at]
    rows.sort(key=lambda row: row[0])
    start, count = max(given.number("offset"), 0), min(max(given.number("limit", 100), 1), 100)
    return {"transactions": [_transaction(world, *row) for row in rows[start : start + count]]}


def _transaction(world: World, at: int, side: str, charge: Charge) -> dict[str, Any]:
    partner = {"type": "user", "transaction_type": "invoice_payment", "user": world.show_user(charge.person)}
    partner["invoice_payload"] = charge.payload
    return {"id": charge.id, "amount": charge.amount, "date": at, side: partner}


async def balance(world: World, _: Given) -> Any:
    return {"amount": world.till.balance}


async def edit_subscription(world: World, given: Given) -> bool:
    raise bad_request("CHARGE_NOT_FOUND" if given.number("user_id") in world.users else "USER_ID_INVALID")


METHODS: dict[str, Method] = {
    "sendInvoice": send_invoice,
    "createInvoiceLink": create_link,
    "answerPreCheckoutQuery": answer_checkout,
    "refundStarPayment": refund,
    "getStarTransactions": transactions,
    "getMyStarBalance": balance,
    "editUserStarSubscription": edit_subscription,
}
