"""What both simulators check about HTTP requests.

A simulator serves programs on this machine and its own chat page. A page of another site that is open in the same
browser must not reach it (DNS rebinding, cross-site requests).
"""

from typing import Any

from aiohttp import web

LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def host_error(request: web.Request, listening: str) -> str | None:
    """Return an error if the Host header is not a loopback name although we listen on loopback (DNS rebinding)."""
    if listening in LOOPBACK and request.url.host not in LOOPBACK:
        return "this host is not served"
    return None


def page_origin_error(request: web.Request) -> str | None:
    """Return an error if a page of another origin made the request."""
    origin = request.headers.get("Origin")
    foreign = request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}
    if foreign or (origin is not None and origin != f"{request.scheme}://{request.host}"):
        return "only from the page of the same origin"
    return None


async def json_object(request: web.Request) -> dict[str, Any] | None:
    """Return the body as a JSON object; None if it is something else."""
    try:
        body = await request.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
