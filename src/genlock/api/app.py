"""The web application under `/v1`: authenticates, limits and validates requests, then calls their operation."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from genlock.api.account import AccountRoutes
from genlock.api.authentication import authenticate, check_scope
from genlock.api.download_slots import DownloadSlots
from genlock.api.events import EventRoutes
from genlock.api.files import FileRoutes
from genlock.api.jobs import JobRoutes
from genlock.api.models import ModelRoutes
from genlock.api.openai.errors import openai_response
from genlock.api.openai.images import ImageRoutes
from genlock.api.openai.orders import OpenAIOrders
from genlock.api.openai.videos import VideoRoutes
from genlock.api.openapi import make_document
from genlock.api.operation import Call, Operation
from genlock.api.order_acceptance import OrderAcceptance
from genlock.api.orders import OrderRoutes
from genlock.api.parts import ApiParts
from genlock.api.problems import Problem, not_found, unavailable
from genlock.api.reading import discard_body, hash_request, read_json, read_query, validated
from genlock.api.reference_page import render_reference
from genlock.api.results import ResultRoutes
from genlock.api.uploads import Uploads
from genlock.api.webhooks import WebhookRoutes
from genlock.domain.api_key import ApiKey
from genlock.domain.errors import MediaStoreError, StoreError
from genlock.domain.events import Event

PREFIX = "/v1"
OPENAI_PREFIXES = (f"{PREFIX}/images", f"{PREFIX}/videos")
#: what every answer of the API carries
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
#: how long the answer to a request above the limit of its key waits, and how many such answers wait at the same time
DELAY_SECONDS = 0.3
DELAYED_MAX = 200
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]


class Api:
    """The operations of the API and how their requests are handled."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        slots = DownloadSlots()
        self._results = ResultRoutes(parts, slots)
        acceptance, uploads = OrderAcceptance(parts), Uploads(parts)
        openai_orders = OpenAIOrders(parts, acceptance)
        self.operations: Sequence[Operation] = [
            *OrderRoutes(parts, acceptance).operations(),
            *JobRoutes(parts).operations(),
            *self._results.operations(),
            *EventRoutes(parts).operations(),
            *FileRoutes(uploads, parts.memory).operations(),
            *ModelRoutes(parts).operations(),
            *AccountRoutes(parts).operations(),
            *WebhookRoutes(parts).operations(),
            *ImageRoutes(parts, openai_orders, slots).operations(),
            *VideoRoutes(parts, openai_orders, uploads, self._results).operations(),
        ]
        self.document = make_document(self.operations)
        self._page: str | None = None
        #: refused requests whose answer waits
        self._delayed = 0

    def routes(self) -> list[Route]:
        """Return the route of every operation, and one that answers every other request under `/v1`."""
        return [
            Route(f"{PREFIX}/openapi.json", self._openapi, methods=["GET"]),
            Route(f"{PREFIX}/docs", self._docs, methods=["GET"]),
            *(Route(_route_path(one), self._endpoint(one), methods=[one.method]) for one in self.operations),
            Route(PREFIX, self._unknown, methods=METHODS),
            Route(f"{PREFIX}/{{rest:path}}", self._unknown, methods=METHODS),
        ]

    def _endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await self._answer(request, operation)

        return endpoint

    async def _answer(self, request: Request, operation: Operation) -> Response:
        limits: Mapping[str, str] = {}
        is_known, received_at = False, asyncio.get_running_loop().time()
        try:
            if operation.signed and "signature" in request.query_params:
                response = await self._results.get_by_link(request)
            else:
                key = await authenticate(request, self._parts.store)
                is_known = True
                limits = await self._parts.limits.take(key.id)
                check_scope(key, operation.scope)
                response = await operation.handle(await self._call(request, operation, key, received_at))
        except Problem as problem:
            response = operation.refuse(problem)
            await discard_body(request, is_known=is_known)
            if problem.code == "too_many_requests":
                await self._delay(response)
        except (StoreError, MediaStoreError) as error:
            self._parts.observer.event(Event.STAGE_ERROR, step=f"API {operation.name}", error=repr(error))
            response = operation.refuse(unavailable("the service cannot answer at the moment; try again"))
        self._parts.observer.count(
            "api_requests", 1, operation=operation.name, status=f"{response.status_code // 100}xx"
        )
        return _with_headers(response, limits)

    async def _delay(self, response: Response) -> None:
        """Answer a flooding client late, so that it sends less; close its connections if it opens ever more."""
        if self._delayed >= DELAYED_MAX:
            response.headers["Connection"] = "close"
            return
        self._delayed += 1
        try:
            await asyncio.sleep(DELAY_SECONDS)
        finally:
            self._delayed -= 1

    async def _call(self, request: Request, operation: Operation, key: ApiKey, received_at: float) -> Call:
        body, request_hash = None, ""
        query = read_query(operation.query, request.query_params) if operation.query else None
        if operation.body is not None:
            content = await read_json(request, self._parts.memory, partial(self._parts.limits.take, key.id))
            body = validated(operation.body, content)
            request_hash = hash_request(operation.method, operation.path, content)
        return Call(
            request=request,
            key=key,
            received_at=received_at,
            base_url=self._parts.rules.public_url or str(request.base_url).rstrip("/"),
            query=query,
            body=body,
            request_hash=request_hash,
        )

    async def _openapi(self, request: Request) -> Response:
        return _with_headers(JSONResponse(self.document), {})

    async def _docs(self, request: Request) -> Response:
        if self._page is None:
            self._page = await asyncio.to_thread(render_reference, self.document)
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"}
        return _with_headers(Response(self._page, media_type="text/html; charset=utf-8"), headers)

    async def _unknown(self, request: Request) -> Response:
        allowed = sorted({one.method for one in self.operations if _fits(one, request)})
        refuse = openai_response if request.url.path.startswith(OPENAI_PREFIXES) else Problem.response
        if not allowed:
            return _with_headers(refuse(not_found("there is no such address; GET /v1/docs lists them")), {})
        problem = Problem(
            status=405,
            code="method_not_allowed",
            detail=f"this address takes {', '.join(allowed)}",
            headers={"Allow": ", ".join(allowed)},
        )
        return _with_headers(refuse(problem), {})


def _route_path(operation: Operation) -> str:
    """Ids of models may contain slashes."""
    return operation.path.replace("{model_id}", "{model_id:path}")


def _fits(operation: Operation, request: Request) -> bool:
    match, _ = Route(_route_path(operation), _never, methods=METHODS).matches(request.scope)
    return match is not Match.NONE


async def _never(_: Request) -> Response:
    raise AssertionError("only its path is compared")


def _with_headers(response: Response, more: Mapping[str, str]) -> Response:
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in {**_HEADERS, **more}.items():
        headers.setdefault(name, value)
    return response
