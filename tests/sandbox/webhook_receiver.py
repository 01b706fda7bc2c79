"""A receiver of webhooks that keeps every request and answers as told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from genlock.sandbox.serving import serving
from tests.changes import PATIENCE_SECONDS


@dataclass(frozen=True)
class ReceivedWebhook:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class WebhookReceiver:
    url: str = ""
    statuses: list[int] = field(default_factory=list)
    received: list[ReceivedWebhook] = field(default_factory=list)
    #: while it is clear, a request to `/slow` is not answered
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        self.received.append(ReceivedWebhook(request.path, dict(request.headers), await request.read()))
        self._changed.set()
        if request.path == "/slow":
            await self.gate.wait()
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    async def wait_for(self, count: int) -> list[ReceivedWebhook]:
        """Wait until this many requests have come."""
        while len(self.received) < count:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), PATIENCE_SECONDS)
        return self.received


@asynccontextmanager
async def receiving_webhooks() -> AsyncIterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.handle)
    async with serving(app, "127.0.0.1", 0) as receiver.url:
        yield receiver
