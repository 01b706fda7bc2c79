"""A web server on this machine with files to download."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FileServer:
    """Answers 404 for a file that a test has not put there."""

    def __init__(self) -> None:
        self.url = ""
        #: the names of the requested files
        self.requested: list[str] = []
        self.user_agents: set[str] = set()
        self._files: dict[str, Handler] = {}

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def put(self, name: str, content: bytes, content_type: str = "application/octet-stream") -> str:
        """Serve a file and return its URL."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=content, content_type=content_type)

        return self.serve(name, answer)

    def serve(self, name: str, handler: Handler) -> str:
        """Answer requests for a file by a handler and return its URL."""
        self._files[name] = handler
        return f"{self.url}/{name}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.requested.append(name)
        self.user_agents.add(request.headers.get("User-Agent", ""))
        if name not in self._files:
            return web.Response(status=404, text="not found")
        return await self._files[name](request)


@asynccontextmanager
async def running_file_server() -> AsyncIterator[FileServer]:
    server = FileServer()
    app = web.Application()
    app.router.add_route("*", "/{name:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
