"""What the HTTP servers of the fal and Replicate simulators share: faulty answers and fault control."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from genlock.sandbox.generations.callbacks import CallbackSender
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.service import GenerationService
from genlock.sandbox.kie.files import PAGE
from genlock.sandbox.requests import host_error, json_object, page_origin_error

UPLOAD_BYTES_MAX = 200_000_000


class ApiError(Exception):
    """A call that is answered with an error."""

    def __init__(self, status: int, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body  #: None: an HTML page, as of a proxy
        self.headers = dict(headers or {})

    def response(self) -> web.Response:
        if self.body is None:
            return web.Response(status=self.status, body=PAGE, content_type="text/html", headers=self.headers)
        return web.json_response(self.body, status=self.status, headers=self.headers)


@web.middleware
async def answer_errors(request: web.Request, handler: Any) -> web.StreamResponse:
    try:
        response: web.StreamResponse = await handler(request)
    except ApiError as error:
        return error.response()
    return response


async def read_object(request: web.Request) -> dict[str, Any]:
    body = await json_object(request)
    if body is None:
        raise ApiError(400, {"detail": "The request body is not a JSON object."})
    return body


async def answer(
    request: web.Request, body: Mapping[str, Any], faults: set[Fault], prefix: str, *, slow_seconds: float, status: int
) -> web.StreamResponse:
    """Return the successful answer, unless a fault cuts, delays or truncates it."""
    if f"{prefix}cut" in faults:
        assert request.transport is not None
        request.transport.abort()
    if f"{prefix}slow" in faults:
        await asyncio.sleep(slow_seconds)
    if f"{prefix}garbled" in faults:
        return web.Response(text=json.dumps(body)[:40], content_type="application/json", status=status)
    return web.json_response(body, status=status)


def raise_proxy_fault(faults: set[Fault], prefix: str) -> None:
    """Raise the errors that look the same at every provider."""
    if f"{prefix}502" in faults:
        raise ApiError(502, None)
    if f"{prefix}500" in faults:
        raise ApiError(500, {"detail": "Internal Server Error"})


# fault control


def add_control(app: web.Application, service: GenerationService, sender: CallbackSender, host: str) -> None:
    """`GET /_control` shows the simulator's state, `POST /_control` changes it.

    Keys of the POST body, all optional: clear, on, off, chances, order, generation, speed, credit,
    expire, schemas.
    `host` is the address that the simulator listens on.
    """

    async def show(request: web.Request) -> web.Response:
        return _refusal(request, host) or web.json_response(_state(service, sender))

    async def change(request: web.Request) -> web.Response:
        if refusal := _refusal(request, host):
            return refusal
        if request.content_type != "application/json":  # a page of another site cannot send it without CORS approval
            return web.json_response({"error": "send application/json"}, status=415)
        try:
            _apply(service, await request.json())
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return web.json_response({"error": str(error), "faults": list(Fault)}, status=400)
        return web.json_response(_state(service, sender))

    app.router.add_get("/_control", show)
    app.router.add_post("/_control", change)


def _refusal(request: web.Request, host: str) -> web.Response | None:
    why = host_error(request, host) or page_origin_error(request)
    return web.json_response({"error": why}, status=403) if why else None


def _state(service: GenerationService, sender: CallbackSender) -> dict[str, Any]:
    return {
        "faults": service.faults.as_json(),
        "speed": service.speed,
        "credit": service.credit_usd,
        "generations": [
            {
                "id": generation.id,
                "model": generation.model.id,
                "ended": generation.ended is not None,
                "faults": sorted(generation.faults),
            }
            for generation in list(service.generations.values())[-100:]
        ],
        "callbacks": [{"generation": sent.generation, "status": sent.status} for sent in sender.sent[-100:]],
    }


def _apply(service: GenerationService, body: dict[str, Any]) -> None:
    """Apply the body of a POST. Raises ValueError, TypeError, AttributeError or KeyError for a wrong one."""
    faults = service.faults
    if body.get("clear"):
        faults.clear()
    faults.switch(*map(Fault, body.get("on", ())))
    faults.switch(*map(Fault, body.get("off", ())), on=False)
    for name, probability in body.get("chances", {}).items():
        faults.set_probability(Fault(name), float(probability))
    if "order" in body:
        faults.order(*map(Fault, body["order"]))
    for generation_id, names in body.get("generation", {}).items():
        service.generations[generation_id].faults |= set(map(Fault, names))
    service.speed = float(body.get("speed", service.speed))
    service.credit_usd = float(body.get("credit", service.credit_usd))
    if "schemas" in body:
        service.schemas.edit(body["schemas"])
    if body.get("expire"):
        service.files.expire()
        for generation in service.generations.values():
            generation.removed = True
