"""Simulator of fal.ai on this machine: queue, status, result, cancel, signed callbacks, uploads, faults on demand.

async with running_fal({"fal-ai/flux/dev": SimulatedModel(…)}) as fal:
    fal.faults.order(Fault.CALLBACK_LOST)
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web

from genlock.sandbox.fal.bodies import callback_of, error_of, output_of, status_of
from genlock.sandbox.fal.signature import SigningKeys
from genlock.sandbox.fal.uploads import Uploads
from genlock.sandbox.faults import Faults
from genlock.sandbox.generations.callbacks import CallbackSender
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import Generation, SimulatedModel
from genlock.sandbox.generations.server import (
    ApiError,
    answer,
    raise_proxy_fault,
    read_object,
)
from genlock.sandbox.generations.service import GenerationService
from genlock.sandbox.generations.simulator import GenerationSimulator
from genlock.sandbox.kie.files import FileHost

RESULT_SECONDS = 7 * 86_400.0
LOCKED = "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing."
STILL_RUNNING = "Request is still in progress"


class FalSimulator(GenerationSimulator):
    """The queue, the REST host and the file host of fal, which listen on two ports here."""

    def __init__(
        self, service: GenerationService, sender: CallbackSender, keys: SigningKeys, *, key: str, slow_seconds: float
    ) -> None:
        super().__init__(service, sender, slow_seconds=slow_seconds)
        self.keys = keys
        self.key = key
        self.admin_key = f"{key}-admin"
        router = self.app.router
        router.add_get("/.well-known/jwks.json", self._jwks)
        Uploads(service.files, self._check_key).add_to(router)
        router.add_get("/api/openapi/queue/openapi.json", self._schema)
        router.add_get("/v1/models/pricing", self._prices)
        router.add_get("/v1/account/billing", self._billing)
        router.add_get("/{owner}/{app}/requests/{id}/status", self._status)
        router.add_get("/{owner}/{app}/requests/{id}", self._result)
        router.add_put("/{owner}/{app}/requests/{id}/cancel", self._cancel)
        router.add_post("/{model:.+}", self._submit)

    async def _submit(self, request: web.Request) -> web.StreamResponse:
        self._check_key(request)
        faults = self.faults.draw()
        self._raise_refusal(faults)
        model = self.service.models.get(request.match_info["model"])
        if model is None or Fault.CREATE_UNKNOWN_MODEL in faults:
            path = "/".join(request.match_info["model"].split("/")[2:])
            raise ApiError(404, {"detail": f"Path /{path} not found"})
        webhook_url = request.query.get("fal_webhook")
        generation = await self.service.accept(model, await read_object(request), webhook_url, faults)
        body = self._submitted(generation)
        if Fault.CREATE_NO_ID in faults:
            body = {"status": "IN_QUEUE"}
        return await answer(request, body, faults, "create_", slow_seconds=self.slow_seconds, status=200)

    def _raise_refusal(self, faults: set[Fault]) -> None:
        raise_proxy_fault(faults, "create_")
        if Fault.CREATE_429 in faults:
            raise ApiError(429, {"detail": "Too many requests"}, {"Retry-After": "1"})
        if Fault.CREATE_MAINTENANCE in faults:
            raise ApiError(503, {"detail": "Queue is paused", "error_type": "app_paused"})
        if Fault.CREATE_NO_CREDIT in faults or self.service.credit_usd <= 0:
            raise ApiError(403, {"detail": LOCKED})

    def _submitted(self, generation: Generation) -> dict[str, object]:
        owner, app = generation.model.id.split("/")[:2]
        base = f"{self.url}/{owner}/{app}/requests/{generation.id}"
        return {
            "status": "IN_QUEUE",
            "request_id": generation.id,
            "gateway_request_id": generation.id,
            "response_url": base,
            "status_url": f"{base}/status",
            "cancel_url": f"{base}/cancel",
            "queue_position": self.service.queue_position(generation) or 0,
        }

    async def _status(self, request: web.Request) -> web.StreamResponse:
        generation = self._find(request)
        faults = self.faults.draw_status(generation.faults)
        _raise_status_fault(faults)
        status, body = status_of(
            generation, self.service.queue_position(generation), logs=request.query.get("logs") in {"1", "true"}
        )
        if Fault.STATUS_WORD in faults:
            body |= {"status": "PONDERING"}
        return await answer(request, body, faults, "status_", slow_seconds=self.slow_seconds, status=status)

    async def _result(self, request: web.Request) -> web.StreamResponse:
        generation = self._find(request)
        raise_proxy_fault(self.faults.draw_result(generation.faults), "result_")
        if generation.ended is None:
            raise ApiError(400, {"detail": STILL_RUNNING})
        if error := error_of(generation):
            raise error
        return web.json_response(output_of(generation))

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        generation = self._find(request)
        faults = self.faults.draw_common("cancel_") | generation.faults
        raise_proxy_fault(faults, "cancel_")
        if generation.ended is not None:
            raise ApiError(400, {"status": "ALREADY_COMPLETED"})
        if self.service.queue_position(generation) is not None:
            self.service.cancel(generation)
            return web.json_response({"status": "OK"})
        if Fault.CANCEL_LATE not in faults:
            self.service.cancel(generation)
        return web.json_response({"status": "CANCELLATION_REQUESTED"}, status=202)

    async def _jwks(self, request: web.Request) -> web.Response:
        raise_proxy_fault(self.faults.draw_common("keys_"), "keys_")
        return web.json_response(self.keys.jwks())

    # what the web site and the platform API show

    async def _schema(self, request: web.Request) -> web.Response:
        model = self.service.schemas.get(request.query.get("endpoint_id", ""))
        if model is None:
            raise ApiError(404, {"detail": "Endpoint not found"})
        name = "".join(word.capitalize() for word in model.id.replace("-", "/").replace(".", "/").split("/"))
        return web.json_response(self.service.schemas.document(model, input_name=f"{name}Input"))

    async def _prices(self, request: web.Request) -> web.Response:
        self._check_key(request)
        models = [self.service.schemas.get(model_id) for model_id in request.query.getall("endpoint_id", [])]
        if None in models:
            raise ApiError(404, {"error": {"type": "not_found", "message": "Endpoint not found"}})
        rows = [
            {"endpoint_id": model.id, "unit_price": model.unit_usd, "unit": model.unit, "currency": "USD"}
            for model in models
            if model is not None and model.unit
        ]
        return web.json_response({"prices": rows, "next_cursor": None, "has_more": False})

    async def _billing(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Key {self.admin_key}":
            raise ApiError(403, {"error": {"type": "authorization_error", "message": "Admin API key required"}})
        body: dict[str, object] = {"username": "sandbox"}
        if request.query.get("expand") == "credits":
            body["credits"] = {"current_balance": round(self.service.credit_usd, 6), "currency": "USD"}
        return web.json_response(body)

    def _find(self, request: web.Request) -> Generation:
        self._check_key(request)
        generation = self.service.generations.get(request.match_info["id"])
        app = f"{request.match_info['owner']}/{request.match_info['app']}"
        if generation is None or not f"{generation.model.id}/".startswith(f"{app}/"):
            raise ApiError(404, {"status": "NOT_FOUND", "detail": "Request not found"})
        return generation

    def _check_key(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Key {self.key}":
            raise ApiError(401, {"detail": "Cannot access application. Authentication is required."})


def _raise_status_fault(faults: set[Fault]) -> None:
    raise_proxy_fault(faults, "status_")
    if Fault.STATUS_429 in faults:
        raise ApiError(429, {"detail": "Too many requests"}, {"Retry-After": "1"})
    if Fault.STATUS_404 in faults:
        raise ApiError(404, {"detail": "Request not found"})


@asynccontextmanager
async def running_fal(  # noqa: PLR0913 - settings of a whole service, all with defaults
    models: Mapping[str, SimulatedModel],
    *,
    key: str = "sandbox-fal-key",
    credit_usd: float = 1000.0,
    speed: float = 60.0,
    seed: int | None = 1,
    runners: int = 10,
    slow_seconds: float = 5.0,
    late_seconds: float = 2.0,
    retry_seconds: float = 0.2,
    host: str = "127.0.0.1",
    port: int = 0,
    files_port: int = 0,
) -> AsyncIterator[FalSimulator]:
    """Run both hosts until the block ends. A generation takes its model's expected time divided by `speed`."""
    rng = Random(seed)
    keys = SigningKeys(rng)
    sender = CallbackSender(
        body=callback_of,
        sign=lambda generation, body, at, wrong: keys.sign(generation.id, body, at, wrong_key=wrong),
        retry_seconds=retry_seconds,
        late_seconds=late_seconds,
    )
    service = GenerationService(
        models=models,
        files=FileHost(),
        faults=Faults[Fault](rng),
        rng=rng,
        speed=speed,
        runners=runners,
        file_seconds=RESULT_SECONDS,
        credit_usd=credit_usd,
        send_callbacks=sender.send,
    )
    fal = FalSimulator(service, sender, keys, key=key, slow_seconds=slow_seconds)
    async with fal.listening(host, port, files_port):
        yield fal
