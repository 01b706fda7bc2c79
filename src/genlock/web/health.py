"""The endpoints for monitoring: liveness, readiness, metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from time import monotonic
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from genlock import __version__
from genlock.engine.engine import Engine
from genlock.engine.stats import Stats


@dataclass(frozen=True, kw_only=True)
class FigureAccess:
    """Who may read the business figures: a client with the token; if none is set, every client of a private port."""

    token: str | None
    is_public: bool

    def allows(self, request: Request) -> bool:
        if self.token is None:
            return not self.is_public
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and compare_digest(token.strip().encode(), self.token.encode())


class RenderedMetrics:
    """The text of the metrics, used again for ten times as long as it took to render it."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._text = b""
        self._until = float("-inf")

    def get(self, render: Callable[[], bytes]) -> bytes:
        started = self._clock()
        if started >= self._until:
            self._text = render()
            now = self._clock()
            self._until = now + (now - started) * 10
        return self._text


@dataclass(frozen=True, kw_only=True)
class HealthEndpoints:
    engine: Engine
    stats: Stats
    #: whether the instance accepts traffic: started, and not stopping
    is_open: Callable[[], bool]
    render: Callable[[Mapping[str, float], bool], bytes]
    started: float
    access: FigureAccess
    rendered: RenderedMetrics = field(default_factory=RenderedMetrics)

    async def health(self, request: Request) -> Response:
        """Answer 200 even if the database does not answer: a restart of this process would not help.

        Figures are shown only to clients that may read them.
        """
        stats = await self.stats.read()
        status: dict[str, Any] = {
            "active": self.engine.active,
            "store": "ok" if stats is not None else "does not answer",
            "ready": self.is_open() and stats is not None,
        }
        if not self.access.allows(request):
            return JSONResponse(status)
        status |= {
            "queue_depth": None if stats is None else _depth(stats),
            "instance": self.engine.ctx.instance,
            "version": __version__,
            "uptime_seconds": round(monotonic() - self.started, 1),
            "busy": self.engine.worker.busy,
        }
        counts = self.stats.last if stats is None else stats
        status |= {name: round(counts.get(name, 0), 1) for name in _REPORTED}
        return JSONResponse(status)

    async def ready(self, request: Request) -> Response:
        if not self.is_open():
            return JSONResponse({"ready": False, "reason": "starting or stopping"}, 503)
        if await self.stats.read() is None:
            return JSONResponse({"ready": False, "reason": "the store does not answer"}, 503)
        return JSONResponse({"ready": True})

    async def metrics(self, request: Request) -> Response:
        if not self.access.allows(request):
            reason = "Metrics are private: set GENLOCK_METRICS_TOKEN and send it as `Authorization: Bearer TOKEN`.\n"
            return PlainTextResponse(reason, 401, {"WWW-Authenticate": "Bearer"})
        stats = await self.stats.read()
        text = self.rendered.get(lambda: self.render(self.stats.last if stats is None else stats, self.engine.active))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


_REPORTED = ("undelivered", "undelivered_age", "orphans", "attention", "updates", "updates_dead", "instances")


def _depth(stats: Mapping[str, float]) -> int:
    """Return the number of due jobs, unprocessed callbacks and unprocessed updates."""
    return round(sum(stats.get(name, 0.0) for name in ("due", "callbacks", "updates")))
