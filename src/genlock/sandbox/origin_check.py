"""Who may speak to a simulator: programs and pages of our own, no other site's page."""

from aiohttp import web

LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def host_error(request: web.Request, listening: str) -> str | None:
    """Why a request is not served here: a name that points to this machine is not ours."""
    if listening in LOOPBACK and request.url.host not in LOOPBACK:
        return "this host is not served"
    return None


def page_origin_error(request: web.Request) -> str | None:
    """Why a request is not served: another site's page made it."""
    origin = request.headers.get("Origin")
    foreign = request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}
    if foreign or (origin is not None and origin != f"{request.scheme}://{request.host}"):
        return "only from the page of the same origin"
    return None
