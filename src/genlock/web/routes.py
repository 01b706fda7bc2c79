"""Every HTTP path of an instance."""

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from genlock.web.callbacks import CallbackEndpoint
from genlock.web.health import HealthEndpoints
from genlock.web.telegram import TelegramEndpoint

Endpoint = CallbackEndpoint | HealthEndpoints | TelegramEndpoint


def make_web(endpoints: Iterable[Endpoint], *others: BaseRoute) -> Starlette:
    """Return the web application that serves these endpoints, and other routes."""
    web = Starlette(routes=[*(route for endpoint in endpoints for route in routes_of(endpoint)), *others])
    web.router.redirect_slashes = False  # many senders of callbacks do not follow redirects
    return web


def routes_of(endpoint: Endpoint) -> list[Route]:
    match endpoint:
        case HealthEndpoints():
            return [
                Route("/health", endpoint.health, methods=["GET"]),
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
