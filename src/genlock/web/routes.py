"""Every HTTP path of an instance."""

from collections.abc import Iterable, Mapping

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from genlock.web.callbacks import CallbackEndpoint
from genlock.web.connections import HEALTH_PATH
from genlock.web.health import HealthEndpoints
from genlock.web.telegram import TelegramEndpoint

Endpoint = CallbackEndpoint | HealthEndpoints | TelegramEndpoint


def make_web(endpoints: Iterable[Endpoint], *others: BaseRoute) -> Starlette:
    """Return the web application that serves these endpoints, and other routes."""
    web = Starlette(routes=[*(route for endpoint in endpoints for route in routes_of(endpoint)), *others])
    web.router.redirect_slashes = False  # many senders of callbacks do not follow redirects
    return web


def with_applications(web: ASGIApp, applications: Mapping[str, ASGIApp]) -> ASGIApp:
    """Serve the paths under each prefix by an application of its own, so that they are compared with no other route."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].split("/", 2)[1:2]
        await applications.get(f"/{first[0]}" if first else "", web)(scope, receive, send)

    return serve


def routes_of(endpoint: Endpoint) -> list[Route]:
    match endpoint:
        case HealthEndpoints():
            return [
                Route(HEALTH_PATH, endpoint.health, methods=["GET"]),
                Route("/ready", endpoint.ready, methods=["GET"]),
                Route("/metrics", endpoint.metrics, methods=["GET"]),
            ]
        case CallbackEndpoint(provider=provider):
            return [
                Route(f"/callbacks/{provider}", endpoint.receive, methods=["POST"]),
                Route(f"/callbacks/{provider}/{{token:path}}", endpoint.receive, methods=["POST"]),
            ]
        case TelegramEndpoint():
            return [Route(endpoint.path, endpoint.receive, methods=["POST"])]  # /telegram/webhook
