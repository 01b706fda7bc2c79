"""Payments in Stars, through two client libraries written for the real server."""

import asyncio
from typing import Any

import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from tests.sandbox.client_libraries import ApiFailure, Client


async def pay(client: Client, ann: SimulatedUser, invoice: dict[str, Any], **answer: Any) -> Any:
    paying = asyncio.create_task(ann.pay(invoice["message_id"]))
    (asked,) = await client.call("getUpdates", timeout=5)
    query = asked["pre_checkout_query"]
    assert (query["currency"], query["total_amount"], query["invoice_payload"]) == ("XTR", 50, "order-1")
    await client.call("answerPreCheckoutQuery", pre_checkout_query_id=query["id"], **answer)
    paid = await paying
    await client.call("getUpdates", offset=asked["update_id"] + 1)
    return paid


def invoice_given() -> dict[str, Any]:
    return {
        "title": "50 credits",
        "description": "For pictures",
        "payload": "order-1",
        "currency": "XTR",
        "prices": [{"label": "50 credits", "amount": 50}],
    }


async def test_stars_are_paid_listed_and_refunded(client: Client, ann: SimulatedUser) -> None:
    invoice = await client.call("sendInvoice", chat_id=ann.id, **invoice_given())
    assert invoice["invoice"]["total_amount"] == 50
    payment = await pay(client, ann, invoice, ok=True)
    assert payment.ok
    assert ann.user.stars == 9950
    (paid,) = await client.call("getUpdates")
    done = paid["message"]["successful_payment"]
    assert (done["telegram_payment_charge_id"], done["invoice_payload"]) == (payment.charge_id, "order-1")
    assert (await client.call("getMyStarBalance"))["amount"] == 50
    assert (await ann.pay(invoice["message_id"])).reason == "the invoice is paid"

    refund = {"user_id": ann.id, "telegram_payment_charge_id": payment.charge_id}
    assert await client.call("refundStarPayment", **refund) is True
    with pytest.raises(ApiFailure, match="charge_already_refunded"):
        await client.call("refundStarPayment", **refund)
    assert ann.user.stars == 10_000
    rows = (await client.call("getStarTransactions"))["transactions"]
    assert [(row["id"], row["amount"], "source" in row) for row in rows] == [
        (payment.charge_id, 50, True),
        (payment.charge_id, 50, False),
    ]
    assert rows[0]["source"]["invoice_payload"] == "order-1"
    assert (await client.call("getStarTransactions", offset=1, limit=1))["transactions"] == rows[1:]


async def test_a_payment_fails_if_the_bot_refuses_or_answers_too_late(client: Client, ann: SimulatedUser) -> None:
    invoice = await client.call("sendInvoice", chat_id=ann.id, **invoice_given())
    refused = await pay(client, ann, invoice, ok=False, error_message="Sold out")
    assert (refused.ok, refused.reason) == (False, "Sold out")
    late = await ann.pay(invoice["message_id"])
    assert (late.ok, late.reason) == (False, "the bot did not answer in time")
    (asked,) = await client.call("getUpdates")
    with pytest.raises(ApiFailure, match="query is too old"):
        await client.call("answerPreCheckoutQuery", pre_checkout_query_id=asked["pre_checkout_query"]["id"], ok=True)
    assert ann.user.stars == 10_000


async def test_an_invoice_link_can_be_paid(client: Client, ann: SimulatedUser) -> None:
    link = await client.call("createInvoiceLink", **invoice_given())
    paying = asyncio.create_task(ann.pay(link))
    (asked,) = await client.call("getUpdates", timeout=5)
    await client.call("answerPreCheckoutQuery", pre_checkout_query_id=asked["pre_checkout_query"]["id"], ok=True)

    assert (await paying).ok


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"title": ""}, 'parameter "title" is required'),
        ({"payload": ""}, 'parameter "payload" is required'),
        ({"prices": [{"label": "", "amount": 1}]}, "labeledprice label must be non-empty"),
        ({"prices": [{"label": "a", "amount": 1}, {"label": "b", "amount": 1}]}, "stars_invoice_invalid"),
    ],
)
async def test_a_bad_invoice_is_refused(
    client: Client, ann: SimulatedUser, changed: dict[str, object], error: str
) -> None:
    with pytest.raises(ApiFailure, match=error):
        await client.call("sendInvoice", chat_id=ann.id, **invoice_given() | changed)


async def test_a_refused_payment_needs_a_reason(client: Client, ann: SimulatedUser) -> None:
    invoice = await client.call("sendInvoice", chat_id=ann.id, **invoice_given())
    paying = asyncio.create_task(ann.pay(invoice["message_id"]))
    (asked,) = await client.call("getUpdates", timeout=5)
    number = asked["pre_checkout_query"]["id"]
    with pytest.raises(ApiFailure, match='parameter "error_message" is required'):
        await client.call("answerPreCheckoutQuery", pre_checkout_query_id=number, ok=False)
    await client.call("answerPreCheckoutQuery", pre_checkout_query_id=number, ok=True)
    assert (await paying).ok
