"""Simulator of Replicate on this machine: predictions, their list, cancel, signed callbacks, files, faults on demand.

async with running_replicate({"black-forest-labs/flux-dev": SimulatedModel(…)}) as replicate:
    replicate.faults.order(Fault.CREATE_CUT)
"""

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from random import Random
from time import time
from typing import Any

from aiohttp import web

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
from genlock.sandbox.replicate.bodies import error, prediction, throttled
from genlock.sandbox.replicate.signature import WebhookSecret
from genlock.sandbox.replicate.uploads import Uploads

RESULT_SECONDS = 3600.0
PAGE_SIZE = 100
WAIT_SECONDS_MAX = 60.0


class ReplicateSimulator(GenerationSimulator):
    """The API host and the file host of Replicate."""

    def __init__(
        self,
        service: GenerationService,
        sender: CallbackSender,
        secret: WebhookSecret,
        *,
        token: str,
        creates_per_minute: int,
        slow_seconds: float,
    ) -> None:
        super().__init__(service, sender, slow_seconds=slow_seconds)
        self.secret = secret
        self.token = token
        self.creates_per_minute = creates_per_minute
        self._creates: deque[float] = deque()
        router = self.app.router
        router.add_post("/v1/predictions", self._create_by_version)
        router.add_post("/v1/models/{owner}/{name}/predictions", self._create_by_model)
        router.add_get("/v1/predictions", self._list)
        router.add_get("/v1/predictions/{id}", self._get)
        router.add_post("/v1/predictions/{id}/cancel", self._cancel)
        router.add_get("/v1/models/{owner}/{name}", self._model)
        router.add_get("/v1/account", self._account)
        router.add_get("/v1/webhooks/default/secret", self._secret)
        Uploads(service.files, self._check_token).add_to(router)

    # orders

    async def _create_by_version(self, request: web.Request) -> web.StreamResponse:
        self._check_token(request)
        body = await read_object(request)
        name = str(body.get("version") or "").partition(":")[0]
        return await self._create(request, name, body)

    async def _create_by_model(self, request: web.Request) -> web.StreamResponse:
        self._check_token(request)
        name = f"{request.match_info['owner']}/{request.match_info['name']}"
        return await self._create(request, name, await read_object(request))

    async def _create(self, request: web.Request, name: str, body: dict[str, Any]) -> web.StreamResponse:
        faults = self.faults.draw()
        self._raise_refusal(faults)
        model = self.service.models.get(name)
        if model is None or Fault.CREATE_UNKNOWN_MODEL in faults:
            raise error(404, "Not found", "The requested resource could not be found.")
        values = body.get("input")
        _check_input(model, values)
        webhook_url = body.get("webhook") if isinstance(body.get("webhook"), str) else None
        generation = await self.service.accept(model, values or {}, webhook_url, faults)
        await self._wait(request, generation)
        content = prediction(generation, self.url)
        if Fault.CREATE_NO_ID in faults:
            content = {"status": "starting"}
        return await answer(request, content, faults, "create_", slow_seconds=self.slow_seconds, status=201)

    def _raise_refusal(self, faults: set[Fault]) -> None:
        raise_proxy_fault(faults, "create_")
        now = time()
        while self._creates and self._creates[0] <= now - 60.0:
            self._creates.popleft()
        if Fault.CREATE_429 in faults or len(self._creates) >= self.creates_per_minute:
            raise throttled(1)
        self._creates.append(now)
        if Fault.CREATE_MAINTENANCE in faults:
            raise error(503, "Service unavailable", "The service is temporarily unavailable.")
        if Fault.CREATE_NO_CREDIT in faults or self.service.credit_usd <= 0:
            raise error(402, "Insufficient credit", "You have insufficient credit to run this model.")

    async def _wait(self, request: web.Request, generation: Generation) -> None:
        """Hold the answer as the `Prefer: wait` header asks."""
        prefer = request.headers.get("Prefer", "")
        if not prefer.startswith("wait"):
            return
        number = prefer.partition("=")[2]
        seconds = min(float(number) if number.isdigit() else WAIT_SECONDS_MAX, WAIT_SECONDS_MAX)
        with suppress(TimeoutError):
            await asyncio.wait_for(generation.has_ended.wait(), seconds)

    # reading

    async def _get(self, request: web.Request) -> web.StreamResponse:
        generation = self._find(request)
        faults = self.faults.draw_status(generation.faults)
        raise_proxy_fault(faults, "status_")
        if Fault.STATUS_429 in faults:
            raise throttled(1)
        if Fault.STATUS_404 in faults:
            raise error(404, "Not found", "The requested resource could not be found.")
        content = prediction(generation, self.url)
        if Fault.STATUS_WORD in faults:
            content |= {"status": "pondering"}
        return await answer(request, content, faults, "status_", slow_seconds=self.slow_seconds, status=200)

    async def _list(self, request: web.Request) -> web.Response:
        """Newest first, a page at a time; `created_after` and `created_before` narrow it."""
        self._check_token(request)
        after, before = (_read_time(request.query.get(name)) for name in ("created_after", "created_before"))
        start = _read_cursor(request.query.get("cursor"))
        matching = [
            generation
            for generation in reversed(self.service.generations.values())
            if (after is None or generation.created > after) and (before is None or generation.created < before)
        ]
        page = [prediction(generation, self.url) for generation in matching[start : start + PAGE_SIZE]]
        following = None
        if len(matching) > start + PAGE_SIZE:
            cursor = base64.urlsafe_b64encode(str(start + PAGE_SIZE).encode()).decode()
            following = str(request.url.with_query(dict(request.query) | {"cursor": cursor}))
        return web.json_response({"previous": None, "next": following, "results": page})

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        generation = self._find(request)
        faults = self.faults.draw_common("cancel_") | generation.faults
        raise_proxy_fault(faults, "cancel_")
        if generation.ended is None and Fault.CANCEL_LATE not in faults:
            self.service.cancel(generation)
        return web.json_response(prediction(generation, self.url))

    async def _model(self, request: web.Request) -> web.Response:
        self._check_token(request)
        schemas = self.service.schemas
        model = schemas.get(f"{request.match_info['owner']}/{request.match_info['name']}")
        if model is None:
            raise error(404, "Not found", "The requested resource could not be found.")
        owner, name = model.id.split("/")
        version = {"id": "hidden", "openapi_schema": schemas.document(model, input_name="Input")}
        return web.json_response({"owner": owner, "name": name, "visibility": "public", "latest_version": version})

    async def _account(self, request: web.Request) -> web.Response:
        self._check_token(request)
        return web.json_response({"type": "organization", "username": "sandbox", "name": "Sandbox"})

    async def _secret(self, request: web.Request) -> web.Response:
        self._check_token(request)
        raise_proxy_fault(self.faults.draw_common("keys_"), "keys_")
        return web.json_response({"key": self.secret.text})

    def _find(self, request: web.Request) -> Generation:
        self._check_token(request)
        generation = self.service.generations.get(request.match_info["id"])
        if generation is None:
            raise error(404, "Not found", "The requested resource could not be found.")
        return generation

    def _check_token(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            raise error(401, "Unauthenticated", "You did not pass a valid authentication token")


def _check_input(model: SimulatedModel, values: Any) -> None:
    if not isinstance(values, dict):
        raise error(422, "Input validation failed", "- input is required")
    if problems := model.problems(values):
        text = "\n".join(f"- input.{name}: {what}" for name, what in problems)
        fields = [{"type": "required", "field": f"input.{name}", "description": what} for name, what in problems]
        raise error(422, "Input validation failed", text, invalid_fields=fields)


def _read_time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ApiError(400, {"detail": "The time is not ISO 8601", "status": 400}) from None


def _read_cursor(text: str | None) -> int:
    try:
        return int(base64.urlsafe_b64decode(text)) if text else 0
    except ValueError:
        raise ApiError(400, {"detail": "Invalid cursor", "status": 400}) from None


@asynccontextmanager
async def running_replicate(  # noqa: PLR0913 - settings of a whole service, all with defaults
    models: Mapping[str, SimulatedModel],
    *,
    token: str = "sandbox-replicate-token",  # noqa: S107 - not a secret: it opens only the simulator
    credit_usd: float = 1000.0,
    speed: float = 60.0,
    seed: int | None = 1,
    creates_per_minute: int = 600,
    slow_seconds: float = 5.0,
    late_seconds: float = 2.0,
    retry_seconds: float = 0.2,
    host: str = "127.0.0.1",
    port: int = 0,
    files_port: int = 0,
) -> AsyncIterator[ReplicateSimulator]:
    """Run both hosts until the block ends. A prediction takes its model's expected time divided by `speed`."""
    rng = Random(seed)
    secret = WebhookSecret(rng)
    sender = CallbackSender(
        body=lambda generation: prediction(generation, replicate.url),
        sign=lambda generation, body, at, wrong: secret.sign(f"msg_{generation.id}", body, at, wrong_key=wrong),
        retry_seconds=retry_seconds,
        late_seconds=late_seconds,
    )
    service = GenerationService(
        models=models,
        files=FileHost(),
        faults=Faults[Fault](rng),
        rng=rng,
        speed=speed,
        runners=1000,
        file_seconds=RESULT_SECONDS,
        credit_usd=credit_usd,
        send_callbacks=sender.send,
    )
    replicate = ReplicateSimulator(
        service, sender, secret, token=token, creates_per_minute=creates_per_minute, slow_seconds=slow_seconds
    )
    async with replicate.listening(host, port, files_port):
        yield replicate
