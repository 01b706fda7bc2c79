"""Webhook endpoints of the clients in a chaos run: they lose answers, fail, are slow and redirect, and keep records.

Every webhook is verified when it arrives, with the library that Standard Webhooks publishes.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from aiohttp import web
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from genlock.sandbox.serving import serving

#: share of the webhooks whose first arrival meets a fault. The service repeats after 5 s, and then after 5 minutes,
#: so that a second fault of the same webhook would only make the run long.
FAULTY_SHARE = 0.2
SLOW_SHARE = 0.05
SLOW_SECONDS_MAX = 3.0
TRAP_PATH = "/redirected"


class Fault(StrEnum):
    LOST_REQUEST = "lost_request"  #: the connection is cut, and the receiver has recorded nothing
    LOST_ANSWER = "lost_answer"  #: the webhook is recorded, but the connection is cut before the answer
    SERVER_ERROR = "server_error"
    BUSY = "busy"  #: 429 with Retry-After
    REDIRECT = "redirect"  #: to an address that must never be called


@dataclass(kw_only=True, eq=False)
class Endpoint:
    """An address that an account has registered."""

    account: str
    path: str
    #: the events that it is registered for; empty: all
    events: frozenset[str] = frozenset()
    secret: str = field(default="", repr=False)

    def takes(self, event: str) -> bool:
        return not self.events or event in self.events


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One webhook as it arrived."""

    endpoint: Endpoint
    #: place in the sequence of all arrivals
    number: int
    message_id: str
    event: str
    job: str
    data: dict[str, Any]
    is_verified: bool


class WebhookReceiver:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._endpoints: dict[str, Endpoint] = {}
        #: webhooks that have met a fault, or were spared from it
        self._seen: set[tuple[str, str]] = set()
        self.url = ""
        self.arrivals: list[Arrival] = []
        self.faults: dict[Fault, int] = dict.fromkeys(Fault, 0)
        self.redirects_followed = 0

    def add(self, endpoint: Endpoint) -> str:
        """Register an endpoint; return its URL."""
        self._endpoints[endpoint.path] = endpoint
        return f"{self.url}{endpoint.path}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            self.redirects_followed += request.path == TRAP_PATH
            return web.Response(status=404)
        body = await request.read()
        fault = self._pick_fault(endpoint, request.headers.get("webhook-id", ""))
        if fault is not Fault.LOST_REQUEST:
            self._record(endpoint, request, body)
        if fault is not None:
            return self._fail(request, fault)
        if self._rng.random() < SLOW_SHARE:
            await asyncio.sleep(self._rng.uniform(0, SLOW_SECONDS_MAX))
        return web.Response(status=self._rng.choice((200, 202, 204)))

    def _pick_fault(self, endpoint: Endpoint, message_id: str) -> Fault | None:
        webhook = (endpoint.path, message_id)
        if webhook in self._seen:
            return None
        self._seen.add(webhook)
        return self._rng.choice(list(Fault)) if self._rng.random() < FAULTY_SHARE else None

    def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        self.faults[fault] += 1
        if fault in {Fault.LOST_REQUEST, Fault.LOST_ANSWER}:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault is Fault.REDIRECT:
            return web.Response(status=307, headers={"Location": f"{self.url}{TRAP_PATH}"})
        return (
            web.Response(status=429, headers={"Retry-After": "1"}) if fault is Fault.BUSY else web.Response(status=500)
        )

    def _record(self, endpoint: Endpoint, request: web.Request, body: bytes) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            Webhook(endpoint.secret).verify(body, headers)
            is_verified = True
        except WebhookVerificationError:
            is_verified = False
        content = json.loads(body)
        self.arrivals.append(
            Arrival(
                endpoint=endpoint,
                number=len(self.arrivals),
                message_id=headers.get("webhook-id", ""),
                event=content["type"],
                job=content["data"]["id"],
                data=content["data"],
                is_verified=is_verified,
            )
        )


@asynccontextmanager
async def receiving_webhooks(rng: Random) -> AsyncIterator[WebhookReceiver]:
    receiver = WebhookReceiver(rng)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    async with serving(app, "127.0.0.1", 0) as receiver.url:
        yield receiver
