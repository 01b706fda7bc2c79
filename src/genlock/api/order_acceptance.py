"""Accepts orders of API clients: each request key gives one job."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from genlock.api.file_inputs import FileInputs
from genlock.api.operation import Call
from genlock.api.parts import ApiParts
from genlock.api.problems import (
    Fault,
    Problem,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_on_offer,
    too_many,
    unauthorized,
)
from genlock.channels.api.address import ApiAddress
from genlock.channels.api.channel import NAME as CHANNEL
from genlock.domain.correlation_ids import new_correlation_id
from genlock.domain.errors import InvalidInput
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS, write_amount
from genlock.engine.sell import NotSold, NotSoldReason, Order

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
#: for the seller: how long a client should wait when all of its running orders are taken
RUNNING_SECONDS = 5.0
#: what a refused input says in numbers
LIMITS = ("min", "max", "step", "given")
#: what was read before the body is read again if it is older: a body may take long to arrive, a file to be fetched
STATE_SECONDS = 1.0
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, kw_only=True)
class ClientOrder:
    """What a request asks for."""

    model: str
    input: Mapping[str, Any]
    #: tells a repeated request from another one
    request_hash: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    #: in credits
    max_price: float | None = None
    #: whether the request may be the repetition of another one, and has no idempotency key
    may_be_repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Accepted:
    job: Job
    #: whether the job was there before
    replayed: bool


class OrderAcceptance:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._files = FileInputs(parts)

    async def accept(self, call: Call, order: ClientOrder, request_key: str) -> Accepted:
        """Return the job of a request key, a new one if there is none. Raises Problem."""
        parts = self._parts
        values, seconds = await self._files.resolve(call.account_id, order.model, order.input, request_key)
        address = ApiAddress(
            request_hash=order.request_hash, metadata=order.metadata, may_be_repeated=order.may_be_repeated
        )
        is_recent = asyncio.get_running_loop().time() - call.received_at < STATE_SECONDS
        if not is_recent:
            await self._check_key(call)
        correlation_id = new_correlation_id()
        job = await parts.seller.sell(
            Order(
                account_id=call.account_id,
                model=order.model,
                values=values,
                seconds=seconds,
                key=request_key,
                channel=CHANNEL,
                address=str(address),
                agreed_price=None if order.max_price is None else round(order.max_price * THOUSANDTHS),
                placeholder="0",
                correlation_id=correlation_id,
                api_key_id=call.key.id,
            ),
            state=call.order_state if is_recent else None,
        )
        if isinstance(job, NotSold):
            raise not_sold(job, order.model)
        check_same_request(job, order.request_hash)
        return Accepted(job=job, replayed=job.correlation_id != correlation_id)

    async def _check_key(self, call: Call) -> None:
        """Raise Problem if the key or the account ended while the body arrived: an erasure may have passed already."""
        key = await self._parts.store.api_key(call.key.id)
        if key is None or key.revoked_at is not None:
            raise unauthorized("this API key was revoked while the order arrived; nothing was ordered")
        if key.banned:
            raise forbidden("this account was blocked while the order arrived; nothing was ordered")


def client_request_key(key: str) -> str:
    """Return the request key of a client's idempotency key."""
    return f"{CHANNEL}:{key}"


def find_key(request: Request) -> str | None:
    """Return the idempotency key of a request, with or without the quotes of a structured field; None if it has none.

    A key that is invalid, or not the only one, counts as none.
    """
    given = request.headers.getlist(KEY_HEADER)
    key = given[0].strip() if len(given) == 1 else ""
    if len(key) >= 2 and key[0] == key[-1] == '"':  # noqa: PLR2004 - both quotes
        key = key[1:-1]
    return key if _KEY.fullmatch(key) is not None else None


def read_key(call: Call) -> str:
    """Return the idempotency key of a request. Raises Problem."""
    if KEY_HEADER not in call.request.headers:
        raise bad_request(
            "idempotency_key_missing",
            f"send {KEY_HEADER} with a key of your own, such as a UUID: repeating the request with it is then safe",
        )
    if (key := find_key(call.request)) is None:
        raise bad_request("idempotency_key_invalid", f"{KEY_HEADER} must be 1 to 255 visible ASCII characters, once")
    return key


def check_same_request(job: Job, request_hash: str) -> None:
    """Raise Problem 422 if the idempotency key was used for another request."""
    if job.channel != CHANNEL or ApiAddress.parse(job.address).request_hash != request_hash:
        fault = Fault(pointer=KEY_HEADER, detail="was used for another request; nothing was ordered, use a new key")
        raise invalid([fault], "idempotency_key_reused")


def input_fault(error: InvalidInput) -> Fault:
    limits = {name: error.allowed[name] for name in LIMITS if error.allowed.get(name) is not None}
    return Fault(pointer=f"/input/{error.field}"[:200], detail=error.message, code=error.problem, limits=limits)


def not_sold(refused: NotSold, model_id: str) -> Problem:  # noqa: PLR0911 - one answer per reason
    price, available = refused.price / THOUSANDTHS, refused.available / THOUSANDTHS
    costs, left = write_amount(refused.price), write_amount(refused.available)
    match refused.reason:
        case NotSoldReason.UNKNOWN_MODEL | NotSoldReason.PROVIDER_NOT_CONFIGURED:
            return not_on_offer(model_id)
        case NotSoldReason.INVALID_INPUT:
            assert refused.error is not None
            return invalid([input_fault(refused.error)], "invalid_input")
        case NotSoldReason.DEARER:
            return conflict(
                "dearer", f"the order costs {costs} credits, above max_price; nothing was held", price=price
            )
        case NotSoldReason.INSUFFICIENT_BALANCE:
            detail = f"the order costs {costs} credits, {left} are available; nothing was held, top up first"
            return _payment_required("no_credits", detail, price, available)
        case NotSoldReason.SPEND_LIMIT:
            detail = f"the order costs {costs} credits, the key has {left} left for today (UTC); nothing was held"
            return _payment_required("spend_limit", detail, price, available)
        case NotSoldReason.TOO_MANY_RUNNING:
            detail = f"{refused.count} orders of this account are running; nothing was held, wait until one has ended"
            return too_many("too_many_running", detail, RUNNING_SECONDS)
        case _:
            return too_many(
                "too_many_orders",
                "this account orders too often; nothing was held",
                refused.wait_seconds or RUNNING_SECONDS,
            )


def _payment_required(code: str, detail: str, price: float, available: float) -> Problem:
    return Problem(status=402, code=code, detail=detail, members={"price": price, "available": available})
