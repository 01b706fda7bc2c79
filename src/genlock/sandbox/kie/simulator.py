"""Simulator of Kie.ai on this machine: same paths, codes, texts and quirks as the real API, with faults on demand.

async with running_kie(speed=100) as kie:
    provider = Kie(key=kie.key, api_url=kie.url, upload_url=kie.url, …)
    kie.faults.order(Fault.CALLBACK_LOST)
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from time import time
from typing import Any

from aiohttp import web

from genlock.catalog import load
from genlock.domain.catalog import Catalog
from genlock.sandbox.faults import Faults
from genlock.sandbox.kie.callbacks import CallbackSender
from genlock.sandbox.kie.control import add_control
from genlock.sandbox.kie.endpoint import SimulatedEndpoint, envelope
from genlock.sandbox.kie.endpoints import ENDPOINTS
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.files import PAGE, FileHost
from genlock.sandbox.kie.public_lists import PublicListEndpoints
from genlock.sandbox.kie.service import KieError, KieService, Window
from genlock.sandbox.kie.task import Task
from genlock.sandbox.kie.uploads import add_uploads
from genlock.sandbox.requests import json_object
from genlock.sandbox.serving import Listener, listening, serving

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
UPLOAD_BYTES_MAX = 200_000_000
UNAUTHORIZED = (
    "Unauthorized \u2013 Authentication failed. Please check that your Authorization and Content-Type headers are "
    "correctly set."
)
SERVER_EXCEPTION = "Server exception, please try again later"
#: faults that replace the answer of a call: HTTP status, code in the envelope (None: an HTML page), text
ANSWERS: dict[Fault, tuple[int, int | None, str]] = {
    Fault.CREATE_429: (200, 429, "Your call frequency is too high. Please try again later."),
    Fault.CREATE_HTTP_429: (429, None, ""),
    Fault.CREATE_433: (200, 433, "The usage cap of this API key is exceeded"),
    Fault.CREATE_455: (200, 455, "The service is being maintained"),
    Fault.CREATE_500: (200, 500, SERVER_EXCEPTION),
    Fault.CREATE_HTTP_500: (500, 500, SERVER_EXCEPTION),
    Fault.CREATE_502: (502, None, ""),
    Fault.CREATE_PAUSED: (200, 500, "This interface is temporarily paused."),
    Fault.CREATE_MODERATED: (200, 400, "Your prompt was flagged by Website as violating content policies."),
    Fault.STATUS_429: (200, 429, "Your call frequency is too high. Please try again later."),
    Fault.STATUS_455: (200, 455, "The service is being maintained"),
    Fault.STATUS_500: (200, 500, SERVER_EXCEPTION),
    Fault.STATUS_502: (502, None, ""),
}


class KieSimulator:
    """The API host and the file host, the service behind them, and fault control."""

    def __init__(self, service: KieService, *, key: str, slow_seconds: float) -> None:
        self.service = service
        self.key = key
        self.slow_seconds = slow_seconds
        self.url = ""
        self.listener: Listener
        self.app = web.Application(client_max_size=UPLOAD_BYTES_MAX, middlewares=[self._errors])
        for endpoint in ENDPOINTS:
            self.app.router.add_post(endpoint.create, self._create_handler(endpoint))
        for path in dict.fromkeys(endpoint.query for endpoint in ENDPOINTS):
            self.app.router.add_get(
                path, self._status_handler([endpoint for endpoint in ENDPOINTS if endpoint.query == path])
            )
        self.app.router.add_get("/api/v1/chat/credit", self._credit)
        self.app.router.add_post("/api/v1/common/download-url", self._download_url)
        self.app.router.add_post("/api/v1/gpt4o-image/download-url", self._download_url)
        PublicListEndpoints(lambda: self.service.catalog).add_to(self.app.router)
        add_uploads(self.app, service.files, key)
        add_control(self.app, self)

    @property
    def faults(self) -> Faults[Fault]:
        return self.service.faults

    @property
    def files_url(self) -> str:
        return self.service.files.url

    # API calls

    def _create_handler(self, endpoint: SimulatedEndpoint) -> Handler:
        async def create(request: web.Request) -> web.StreamResponse:
            self._check_key(request)
            faults = self.faults.draw()
            if answer := _fault_response(faults, "create_"):
                return answer
            body = await _read_json(request)
            task = self.service.accept(endpoint, body, faults)
            if Fault.CALLBACK_EARLY in faults:
                await self.service.finish_now(task, endpoint)
            else:
                self.service.start(task, endpoint)
            return await self._answer(request, envelope(200, "success", endpoint.created(task)), faults, "create_")

        return create

    def _status_handler(self, endpoints: list[SimulatedEndpoint]) -> Handler:
        async def status(request: web.Request) -> web.StreamResponse:
            self._check_key(request)
            self.service.queries.admit(asyncio.get_running_loop().time())
            task_id = request.query.get("taskId")
            if not task_id:
                raise KieError(400, "taskId parameter is required")
            task = self.service.tasks.get(task_id)
            endpoint = endpoint_of(task, endpoints) if task else None
            faults = self.faults.draw_status(task.faults if task else set())
            if answer := _fault_response(faults, "status_"):
                return answer
            young = task is not None and time() - task.created < self.service.null_seconds
            if task is None or endpoint is None or young or Fault.STATUS_NULL in faults:
                return _json((endpoint or endpoints[0]).missing_record())
            record = endpoint.record(task)
            if Fault.STATUS_WORD in faults:
                record |= {key: "pondering" for key in ("state", "status", "successFlag") if key in record}
            return await self._answer(request, envelope(200, "success", record), faults, "status_")

        return status

    async def _answer(
        self, request: web.Request, body: dict[str, Any], faults: set[Fault], prefix: str
    ) -> web.StreamResponse:
        """Return the successful answer, unless a fault cuts, delays or truncates it."""
        if f"{prefix}cut" in faults:
            assert request.transport is not None
            request.transport.abort()
        if f"{prefix}slow" in faults:
            await asyncio.sleep(self.slow_seconds)
        if f"{prefix}garbled" in faults:
            return web.Response(text=json.dumps(body)[:40], content_type="application/json")
        if f"{prefix}no_id" in faults:
            return _json(envelope(200, "success", None))
        return _json(body)

    async def _credit(self, request: web.Request) -> web.Response:
        self._check_key(request)
        return _json(envelope(200, "success", self.service.credits / 1000))

    async def _download_url(self, request: web.Request) -> web.Response:
        self._check_key(request)
        url = (await _read_json(request)).get("url")
        if not isinstance(url, str) or self.service.files.find(url) is None:
            raise KieError(422, "url is wrong")
        return _json(envelope(200, "success", f"{url}?download=1"))

    # errors, worded like the real ones

    def _check_key(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            raise KieError(401, UNAUTHORIZED)

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except KieError as refused:
            body = {"code": refused.code, "msg": refused.text}
            return _json(body if refused.code == 401 else body | {"data": None})
        except web.HTTPNotFound:
            return _json({"code": 404, "msg": "Not Found", "data": None})


def endpoint_of(task: Task, endpoints: Sequence[SimulatedEndpoint]) -> SimulatedEndpoint | None:
    """Return the endpoint that created the task, if it is among these."""
    kind = (task.model.family, task.model.operation)
    return next((endpoint for endpoint in endpoints if (endpoint.family, endpoint.operation) == kind), None)


def _fault_response(faults: set[Fault], prefix: str) -> web.Response | None:
    for fault, (status, code, text) in ANSWERS.items():
        if fault in faults and fault.startswith(prefix):
            if code is None:
                return web.Response(status=status, body=PAGE, content_type="text/html")
            return _json(envelope(code, text, None), status)
    return None


async def _read_json(request: web.Request) -> dict[str, Any]:
    body = await json_object(request)
    if body is None:
        raise KieError(400, "The request body is not valid JSON")
    return body


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=json.dumps(body, ensure_ascii=False).encode(),
        status=status,
        headers={"Content-Type": "application/json;charset=UTF-8", "Server": "cloudflare"},
    )


@asynccontextmanager
async def running_kie(  # noqa: PLR0913 - settings of a whole service, all with defaults
    *,
    catalog: Catalog | None = None,
    key: str = "sandbox-key",
    webhook_key: str | None = None,
    credits_: float = 100_000.0,
    speed: float = 60.0,
    seed: int | None = 1,
    create_limit: tuple[int, float] = (20, 10.0),
    status_limit: tuple[int, float] = (10, 1.0),
    null_seconds: float = 0.0,
    slow_seconds: float = 5.0,
    late_seconds: float = 2.0,
    retry_seconds: float = 0.2,
    same_media: bool = False,
    host: str = "127.0.0.1",
    port: int = 0,
    files_port: int = 0,
) -> AsyncIterator[KieSimulator]:
    """Run both hosts until the block ends. A task takes its expected time divided by `speed`.

    Task ids come from the seed. Pass None if the ids outlive this run, so that they never repeat.
    """
    rng = Random(seed)
    files = FileHost()
    service = KieService(
        catalog=catalog or load(),
        files=files,
        callback_sender=CallbackSender(key=webhook_key, retry_seconds=retry_seconds, late_seconds=late_seconds),
        faults=Faults[Fault](rng),
        rng=rng,
        credits=round(credits_ * 1000),
        speed=speed,
        creates=Window(*create_limit),
        queries=Window(*status_limit),
        null_seconds=null_seconds,
        same_media=same_media,
    )
    kie = KieSimulator(service, key=key, slow_seconds=slow_seconds)
    async with listening(kie.app, host, port) as kie.listener, serving(files.app, host, files_port) as files.url:
        kie.url = kie.listener.url
        try:
            yield kie
        finally:
            await service.close()
