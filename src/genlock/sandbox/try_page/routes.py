"""Serves the page at `/try`, its API key, and the API of the service at the same origin."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

FOLDER = Path(__file__).parent / "page"
#: no external resources, no inline scripts and no inline styles
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
CHUNK = 65_536
#: headers that belong to one connection, or that the client library sets itself
_NOT_FORWARDED = {"connection", "keep-alive", "transfer-encoding", "upgrade", "host", "content-length", "te", "trailer"}


@dataclass(frozen=True, kw_only=True)
class TryAccess:
    """Where the service is, and how the page gets its own API key."""

    url: str
    key: Callable[[], Awaitable[str]] = field(repr=False)


def add_try_page(app: web.Application, access: Callable[[], TryAccess | None]) -> None:
    page = TryPage(access)
    app.router.add_get("/try", page.index)
    app.router.add_get("/try/key", page.key)
    app.router.add_get("/try/{name:[a-z_]+[.](?:js|css)}", page.file)
    app.router.add_route("*", "/v1/{path:.*}", page.forward)
    app.on_cleanup.append(page.close)


class TryPage:
    def __init__(self, access: Callable[[], TryAccess | None]) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def close(self, _: web.Application) -> None:
        if self._session is not None:
            await self._session.close()

    async def index(self, _: web.Request) -> web.StreamResponse:
        return _serve_file("index.html")

    async def file(self, request: web.Request) -> web.StreamResponse:
        return _serve_file(request.match_info["name"])

    async def key(self, _: web.Request) -> web.Response:
        """Return the page's key. Pages of other origins cannot read the answer."""
        return web.json_response({"key": await self._required().key()}, headers={"Cache-Control": "no-store"})

    def _required(self) -> TryAccess:
        access = self._access()
        if access is None:
            raise web.HTTPNotFound(text="this sandbox has no service with an API")
        return access

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Forward a request to the service's API and stream the answer, so that the page has one origin."""
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED]
        if request.content_length is not None:
            headers.append(("Content-Length", str(request.content_length)))
        body = request.content.iter_chunked(CHUNK) if request.can_read_body else None
        url = f"{self._required().url}{request.rel_url}"
        try:
            async with self._opened().request(
                request.method, url, headers=headers, data=body, allow_redirects=False
            ) as answer:
                return await _stream(request, answer)
        except aiohttp.ClientError as error:
            return web.Response(text=f"the service does not answer: {type(error).__name__}", status=502)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
            self._session = aiohttp.ClientSession(
                timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._session


async def _stream(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status)
    for name, value in answer.headers.items():
        if name.lower() not in _NOT_FORWARDED:
            response.headers.add(name, value)
    if answer.content_length is not None:
        response.content_length = answer.content_length
    await response.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
    except (aiohttp.ClientError, ConnectionError):  # one side is gone: end the answer as it is, without its last bytes
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


def _serve_file(name: str) -> web.StreamResponse:
    path = FOLDER / name
    if not path.is_file():
        raise web.HTTPNotFound
    return web.FileResponse(path, headers=HEADERS | {"Content-Type": f"{TYPES[path.suffix]}; charset=utf-8"})
