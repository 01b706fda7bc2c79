"""`POST /v1/jobs`: an order under an idempotency key."""

from starlette.responses import Response

from genlock.api.file_inputs import FileInputs
from genlock.api.job_view import status_of
from genlock.api.operation import Answered, Call, Header, Operation
from genlock.api.order_acceptance import (
    KEY_HEADER,
    REPLAYED_HEADER,
    ClientOrder,
    OrderAcceptance,
    client_request_key,
    not_sold,
    read_key,
)
from genlock.api.parts import ApiParts
from genlock.api.types import FINAL, JobAnswer, NewOrder, QuoteAnswer, QuoteRequest
from genlock.api.waiting import read_wait, wait_until_final
from genlock.domain.api_key import ApiScope
from genlock.domain.job import Job
from genlock.domain.money import THOUSANDTHS
from genlock.engine.sell import NotSold

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
    def __init__(self, parts: ApiParts, acceptance: OrderAcceptance) -> None:
        self._parts = parts
        self._acceptance = acceptance
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
                is_order=True,
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
        body = call.body
        assert isinstance(body, NewOrder)
        key, wait = read_key(call), read_wait(call.request)
        order = ClientOrder(
            model=body.model,
            input=body.input,
            metadata=body.metadata,
            max_price=body.max_price,
            request_hash=call.request_hash,
        )
        accepted = await self._acceptance.accept(call, order, client_request_key(key))
        job, waited = await wait_until_final(call.request, self._parts.watch, accepted.job, wait)
        return self._accepted(call, job, replayed=accepted.replayed, waited=waited)

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
            raise not_sold(quote, body.model)
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
