"""The web application under `/v1`: authenticates, limits and validates requests, then calls their operation."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from genlock.api.account import AccountRoutes
from genlock.api.authentication import Sender, check_scope, identify, take_permit
from genlock.api.download_slots import DownloadSlots
from genlock.api.events import EventRoutes
from genlock.api.files import FileRoutes
from genlock.api.jobs import JobRoutes
from genlock.api.large_answers import LargeAnswers, permits_of
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
from genlock.api.paths import Paths
from genlock.api.problems import Problem, not_found, unavailable
from genlock.api.reading import RefusedBodies, hash_request, read_json, read_query, validated
from genlock.api.reference_page import render_reference
from genlock.api.results import ResultRoutes
from genlock.api.uploads import Uploads
from genlock.api.webhooks import WebhookRoutes
from genlock.domain.errors import MediaStoreError, StoreError
from genlock.domain.events import Event

PREFIX = "/v1"
OPENAI_PREFIXES = (f"{PREFIX}/images", f"{PREFIX}/videos")
#: what every answer of the API carries
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
#: how long the answer to a request above the limit of its key waits, and how many such answers wait at the same time
DELAY_SECONDS = 0.3
DELAYED_MAX = 200
#: the addresses of longer hosts are not remembered
HOST_LENGTH_MAX = 255
Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The operations of the API and how their requests are handled: an ASGI application for the paths under `/v1`."""

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
        self._paths = self._make_paths()
        #: rendered once: any client may ask for them, as often as it likes
        self._rendered: dict[str, asyncio.Future[bytes]] = {}
        self._refused_bodies = RefusedBodies()
        self._large_answers = LargeAnswers()
        #: refused requests whose answer waits
        self._delayed = 0

    def _make_paths(self) -> Paths[Endpoint]:
        paths: Paths[Endpoint] = Paths()
        paths.add("GET", f"{PREFIX}/openapi.json", self._openapi)
        paths.add("GET", f"{PREFIX}/docs", self._docs)
        for operation in self.operations:
            path = operation.path.replace("{model_id}", "{model_id:path}")  # ids of models may contain slashes
            paths.add(operation.method, path, partial(self._answer, operation=operation))
        return paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, found = Request(scope, receive), self._paths.find(scope["path"])
        target = found.target(scope["method"]) if found is not None else None
        if target is None:
            response = self._unknown(request, found.methods if found is not None else [])
        else:
            endpoint, scope["path_params"] = target
            response = await endpoint(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request, operation: Operation) -> Response:
        limits: Mapping[str, str] = {}
        is_known, received_at = False, asyncio.get_running_loop().time()
        try:
            if operation.signed and "signature" in request.query_params:
                response = await self._results.get_by_link(request)
            else:
                sender = await identify(request, operation, self._parts)
                is_known = True
                limits = await take_permit(request, sender.key, self._parts)
                check_scope(sender.key, operation.scope)
                response = await operation.handle(await self._call(request, operation, sender, received_at))
                if operation.method == "GET" and (permits := permits_of(response)):
                    limits = await self._parts.limits.charge(sender.key.id, permits)
                    response = self._large_answers.reserve_memory(response, sender.key.account_id)
        except Problem as problem:
            response = operation.refuse(problem)
            is_flooding = problem.code == "too_many_requests"
            await self._refused_bodies.discard(request, is_known=is_known or is_flooding)
            if is_flooding:
                await self._delay(response)
        except (StoreError, MediaStoreError) as error:
            self._parts.observer.event(Event.STAGE_ERROR, step=f"API {operation.name}", error=repr(error))
            response = operation.refuse(unavailable("the service cannot answer at the moment; try again"))
        self._parts.observer.count(
            "api_requests", 1, operation=operation.name, status=f"{response.status_code // 100}xx"
        )
        return _with_headers(response, limits)

    async def _delay(self, response: Response) -> None:
        """Answer a flooding client late, so that it sends less; close its connections if it keeps opening more."""
        if self._delayed >= DELAYED_MAX:
            response.headers["Connection"] = "close"
            return
        self._delayed += 1
        try:
            await asyncio.sleep(DELAY_SECONDS)
        finally:
            self._delayed -= 1

    async def _call(self, request: Request, operation: Operation, sender: Sender, received_at: float) -> Call:
        body, request_hash = None, ""
        query = read_query(operation.query, request.query_params) if operation.query else None
        if operation.body is not None:
            take_permits = partial(self._parts.limits.take, sender.key.id)
            content = await read_json(request, self._parts.memory, sender.key.account_id, take_permits)
            body = validated(operation.body, content)
            request_hash = hash_request(operation.method, operation.path, content)
        return Call(
            request=request,
            key=sender.key,
            received_at=received_at,
            base_url=self._parts.rules.public_url or _base_url(request),
            query=query,
            body=body,
            request_hash=request_hash,
            job=sender.job,
            order_state=sender.order_state,
        )

    async def _openapi(self, request: Request) -> Response:
        content = await self._render_once("openapi.json", lambda document: bytes(JSONResponse(document).body))
        return _with_headers(Response(content, media_type="application/json"), {})

    async def _docs(self, request: Request) -> Response:
        public_url = self._parts.rules.public_url
        content = await self._render_once("docs", lambda document: render_reference(document, public_url).encode())
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"}
        return _with_headers(Response(content, media_type="text/html; charset=utf-8"), headers)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The description of the operations, made when a client first asks: that is a sixth of the CPU of a start."""
        return make_document(self.operations)

    async def _render_once(self, name: str, render: Callable[[dict[str, Any]], bytes]) -> bytes:
        """Return a form of the document. Requests that come while it is being rendered wait for the same one."""
        if name not in self._rendered:
            self._rendered[name] = asyncio.ensure_future(asyncio.to_thread(lambda: render(self.document)))
        return await asyncio.shield(self._rendered[name])

    def _unknown(self, request: Request, allowed: Sequence[str]) -> Response:
        refuse = openai_response if request.scope["path"].startswith(OPENAI_PREFIXES) else Problem.response
        if not allowed:
            hint = "leave out the slash at its end" if self._ends_with_a_slash(request) else "GET /v1/docs lists them"
            return _with_headers(refuse(not_found(f"there is no such address; {hint}")), {})
        problem = Problem(
            status=405,
            code="method_not_allowed",
            detail=f"this address takes {', '.join(allowed)}",
            headers={"Allow": ", ".join(allowed)},
        )
        return _with_headers(refuse(problem), {})

    def _ends_with_a_slash(self, request: Request) -> bool:
        path = str(request.scope["path"])
        return path.endswith("/") and self._paths.find(path.rstrip("/")) is not None


def _base_url(request: Request) -> str:
    host = request.headers.get("host", "")
    if len(host) > HOST_LENGTH_MAX:
        return str(request.base_url).rstrip("/")
    return _known_base_url(request.scope["scheme"], host, request.scope["server"], request.scope.get("root_path", ""))


@lru_cache(maxsize=100)
def _known_base_url(scheme: str, host: str, server: tuple[str, int | None] | None, root_path: str) -> str:
    """Return the address that clients use. Cached: parsing it takes a twentieth of a request, and the hosts are few."""
    headers = [(b"host", host.encode("latin-1"))] if host else []
    scope = {"type": "http", "scheme": scheme, "server": server, "path": "/", "root_path": root_path,
             "query_string": b"", "headers": headers}  # fmt: skip
    return str(Request(scope).base_url).rstrip("/")


def _with_headers(response: Response, more: Mapping[str, str]) -> Response:
    """Add headers that the response does not have."""
    raw = response.raw_headers
    names = {name for name, _ in raw}
    raw += [pair for pair in _HEADERS if pair[0] not in names]
    for name, value in more.items():
        if (key := name.lower().encode("latin-1")) not in names:
            raw.append((key, value.encode("latin-1")))
    return response
