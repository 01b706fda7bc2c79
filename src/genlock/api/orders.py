"""`POST /v1/jobs`: an order under an idempotency key."""

import re

from starlette.responses import Response

from genlock.api.files import FileInputs
from genlock.api.job_view import status_of
from genlock.api.operation import Answered, Call, Header, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, Problem, bad_request, conflict, invalid, too_many
from genlock.api.types import FINAL, JobAnswer, NewOrder, QuoteAnswer, QuoteRequest
from genlock.api.waiting import read_wait, wait_until_final
from genlock.channels.api.address import ApiAddress
from genlock.channels.api.channel import NAME as CHANNEL
from genlock.domain.api_key import ApiScope
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS
from genlock.engine.sell import NotSold, NotSoldReason, Order

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
#: for the seller: how long a client should wait when all of its running orders are taken
RUNNING_SECONDS = 5.0
_KEY = re.compile(r"[\x21-\x7e]{1,255}")

_KEY_DOC = Header(
    name=KEY_HEADER,
    required=True,
    description="Your key for this order, such as a UUID, with or without quotes. Repeating the request with the same "
    "key returns the same job and charges nothing again. Keys are kept as long as the jobs, at least 72 hours.",
    schema={"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"},
)
_PREFER_DOC = Header(
    name="Prefer",
    description="`wait=N` waits up to N seconds, at most 60, for the end of the job before answering.",
    schema={"type": "string", "maxLength": 200},
)


class OrderRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._files = FileInputs(parts)

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="create_job",
                method="POST",
                path="/v1/jobs",
                summary="Order a generation",
                description="The price is held at once and charged when the result is there. A failure costs nothing.",
                handle=self.create,
                scope=ApiScope.ORDER,
                body=NewOrder,
                headers=(_KEY_DOC, _PREFER_DOC),
                answers={202: Answered(description="The order was accepted, now or before.", kind=JobAnswer)},
                problems=(400, 402, 404, 409, 413, 415, 422),
            ),
            Operation(
                name="create_quote",
                method="POST",
                path="/v1/quote",
                summary="Ask for the price of an input",
                handle=self.quote,
                scope=ApiScope.READ,
                body=QuoteRequest,
                tag="models",
                answers={200: Answered(description="The price now; nothing is held.", kind=QuoteAnswer)},
                problems=(400, 404, 409, 413, 415, 422),
            ),
        ]

    async def create(self, call: Call) -> Response:
        parts, body = self._parts, call.body
        assert isinstance(body, NewOrder)
        key, wait = read_key(call), read_wait(call.request)
        request_key = f"{CHANNEL}:{key}"
        values, seconds = await self._files.resolve(call.account_id, body.model, body.input, request_key)
        correlation_id = parts.new_id()
        order = Order(
            account_id=call.account_id,
            model=body.model,
            values=values,
            seconds=seconds,
            key=request_key,
            channel=CHANNEL,
            address=str(ApiAddress(request_hash=call.request_hash, metadata=body.metadata)),
            agreed_price=None if body.max_price is None else round(body.max_price * THOUSANDTHS),
            placeholder="0",
            correlation_id=correlation_id,
            api_key_id=call.key.id,
        )
        job = await parts.seller.sell(order)
        if isinstance(job, NotSold):
            raise not_sold(job)
        check_same_request(job, call.request_hash)
        job, waited = await wait_until_final(parts.watch, job, wait)
        return self._accepted(call, job, replayed=job.correlation_id != correlation_id, waited=waited)

    def _accepted(self, call: Call, job: Job, *, replayed: bool, waited: float | None) -> Response:
        answer = self._parts.view.answer(job, call.base_url)
        headers = {"Location": answer.urls.get}
        if replayed:
            headers[REPLAYED_HEADER] = "true"
        if waited is not None:
            headers["Preference-Applied"] = f"wait={waited:g}"
        if status_of(job) not in FINAL:
            headers["Retry-After"] = "2"
        return Response(answer.model_dump_json(), 202, headers=headers, media_type="application/json")

    async def quote(self, call: Call) -> Response:
        parts, body = self._parts, call.body
        assert isinstance(body, QuoteRequest)
        values, seconds = await self._files.resolve(call.account_id, body.model, body.input, None)
        quote = await parts.seller.quote(call.account_id, body.model, values, seconds)
        if isinstance(quote, NotSold):
            raise not_sold(quote)
        wallet = await parts.store.wallet(call.account_id)
        answer = QuoteAnswer(
            model=body.model,
            price=quote.price / THOUSANDTHS,
            available=wallet.available / THOUSANDTHS,
            sufficient=quote.price <= wallet.available,
            assumed_seconds=quote.assumed_seconds,
            expected_seconds=parts.catalog.get().models[body.model].expected_seconds,
        )
        return Response(answer.model_dump_json(), media_type="application/json")


def read_key(call: Call) -> str:
    """Return the idempotency key of a request, with or without the quotes of a structured field. Raises Problem."""
    given = call.request.headers.getlist(KEY_HEADER)
    if not given:
        raise bad_request(
            "idempotency_key_missing",
            f"send {KEY_HEADER} with a key of your own, such as a UUID: repeating the request with it is then safe",
        )
    key = given[0].strip()
    if len(key) >= 2 and key[0] == key[-1] == '"':  # noqa: PLR2004 - both quotes
        key = key[1:-1]
    if len(given) > 1 or _KEY.fullmatch(key) is None:
        raise bad_request("idempotency_key_invalid", f"{KEY_HEADER} must be 1 to 255 visible ASCII characters, once")
    return key


def check_same_request(job: Job, request_hash: str) -> None:
    """Raise Problem 422 if the idempotency key was used for another request."""
    if job.channel != CHANNEL or ApiAddress.parse(job.address).request_hash != request_hash:
        fault = Fault(pointer=KEY_HEADER, detail="was used for another request; nothing was ordered")
        raise invalid([fault], "idempotency_key_reused")


def not_sold(refused: NotSold) -> Problem:  # noqa: PLR0911 - one answer per reason
    price, available = refused.price / THOUSANDTHS, refused.available / THOUSANDTHS
    match refused.reason:
        case NotSoldReason.UNKNOWN_MODEL | NotSoldReason.PROVIDER_NOT_CONFIGURED:
            detail = "/model is not on offer; GET /v1/models lists what is"
            return Problem(status=404, code="model_unavailable", detail=detail)
        case NotSoldReason.INVALID_INPUT:
            assert refused.error is not None
            fault = Fault(pointer=f"/input/{refused.error.field}"[:200], detail=refused.error.message)
            return invalid([fault], "invalid_input")
        case NotSoldReason.DEARER:
            return conflict("dearer", f"the order costs {price:g} credits, more than max_price", price=price)
        case NotSoldReason.INSUFFICIENT_BALANCE:
            detail = f"the order costs {price:g} credits, {available:g} are available; nothing was held"
            return _payment_required("no_credits", detail, price, available)
        case NotSoldReason.SPEND_LIMIT:
            detail = f"the order costs {price:g} credits, and this key may spend {available:g} more today (UTC)"
            return _payment_required("spend_limit", detail, price, available)
        case NotSoldReason.TOO_MANY_RUNNING:
            detail = f"{refused.count} orders of this account are running; wait until one has ended"
            return too_many("too_many_running", detail, RUNNING_SECONDS)
        case _:
            return too_many("too_many_orders", "this account orders too often", refused.wait_seconds or RUNNING_SECONDS)


def _payment_required(code: str, detail: str, price: float, available: float) -> Problem:
    return Problem(status=402, code=code, detail=detail, members={"price": price, "available": available})
