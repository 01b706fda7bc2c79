"""Every HTTP path of an instance."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from genlock.web.callbacks import CallbackEndpoint
from genlock.web.connections import HEALTH_PATH
from genlock.web.health import HealthEndpoints
from genlock.web.telegram import TelegramEndpoint

Endpoint = CallbackEndpoint | HealthEndpoints | TelegramEndpoint
CALLBACKS = "/callbacks"
Receiver = Callable[[Request], Awaitable[Response]]


def make_web(endpoints: Sequence[Endpoint], *others: BaseRoute) -> ASGIApp:
    """Return the web application that serves these endpoints, and other routes."""
    web = Starlette(routes=[*(route for endpoint in endpoints for route in routes_of(endpoint)), *others])
    web.router.redirect_slashes = False  # many senders of callbacks do not follow redirects
    return with_applications(web, _direct_applications(web, endpoints))


def with_applications(web: ASGIApp, applications: Mapping[str, ASGIApp]) -> ASGIApp:
    """Serve the paths under each prefix by an application of its own, so that they are compared with no other route."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].split("/", 2)[1:2]
        await applications.get(f"/{first[0]}" if first else "", web)(scope, receive, send)

    return serve


def _direct_applications(web: ASGIApp, endpoints: Sequence[Endpoint]) -> dict[str, ASGIApp]:
    """Return applications for the paths that every order uses, which need no search for a route.

    These endpoints answer every error themselves. Whatever else comes to such a path is answered by `web`.
    """
    callbacks, updates = {}, {}
    for endpoint in endpoints:
        if isinstance(endpoint, CallbackEndpoint):
            callbacks[endpoint.provider] = endpoint.receive
        elif isinstance(endpoint, TelegramEndpoint):
            updates[endpoint.path] = endpoint.receive

    async def serve(receiver: Receiver | None, scope: Scope, receive: Receive, send: Send) -> None:
        if receiver is None or scope["type"] != "http" or scope["method"] != "POST":
            await web(scope, receive, send)
        else:
            response = await receiver(Request(scope, receive))
            await response(scope, receive, send)

    async def serve_callback(scope: Scope, receive: Receive, send: Send) -> None:
        provider, *token = scope["path"].removeprefix(f"{CALLBACKS}/").split("/", 1)
        receiver = callbacks.get(provider)
        if receiver is not None:
            scope["path_params"] = {"token": token[0]} if token else {}
        await serve(receiver, scope, receive, send)

    async def serve_update(scope: Scope, receive: Receive, send: Send) -> None:
        await serve(updates.get(scope["path"]), scope, receive, send)

    return {CALLBACKS: serve_callback, **{f"/{path.split('/')[1]}": serve_update for path in updates}}


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
                Route(f"{CALLBACKS}/{provider}", endpoint.receive, methods=["POST"]),
                Route(f"{CALLBACKS}/{provider}/{{token:path}}", endpoint.receive, methods=["POST"]),
            ]
        case TelegramEndpoint():
            return [Route(endpoint.path, endpoint.receive, methods=["POST"])]  # /telegram/webhook
