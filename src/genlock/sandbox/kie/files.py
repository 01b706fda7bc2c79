"""File host of the Kie.ai simulator: result files and uploads.

Like the real one it answers 403 to user agents that are not browsers, and files expire.
"""

import asyncio
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from time import time

from aiohttp import web

PAGE = b"<!doctype html><title>502</title><h1>Bad gateway</h1>"
#: browsers, and Telegram, which fetches files by URL
ALLOWED_AGENTS = ("Mozilla/", "TelegramBot")


@dataclass(kw_only=True)
class File:
    type: str
    expires: float
    #: makes the content on the first download: most results are never downloaded
    make: Callable[[], bytes]
    content: bytes | None = None
    gone: bool = False

    @property
    def available(self) -> bool:
        return not self.gone and self.expires >= time()

    def read(self) -> bytes:
        if self.content is None:
            self.content = self.make()
        return self.content


class FileHost:
    """Keep files and serve them. Default user agents of HTTP libraries get 403, as from the real host."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.url = ""
        self.app = web.Application()
        self.app.router.add_get("/{path:.+}", self._serve)

    def add(self, path: str, make: Callable[[], bytes], *, seconds: float, kind: str | None = None) -> str:
        """Serve a file for `seconds`; return its URL."""
        known = kind or mimetypes.guess_type(path)[0] or "application/octet-stream"
        self.files[path] = File(type=known, expires=time() + seconds, make=make)
        return f"{self.url}/{path}"

    def expire(self) -> None:
        """Expire all files."""
        for file in self.files.values():
            file.expires = 0

    def find(self, url: str) -> File | None:
        """Return the file at a URL of this host."""
        return self.files.get(url.removeprefix(f"{self.url}/")) if url.startswith(f"{self.url}/") else None

    async def _serve(self, request: web.Request) -> web.Response:
        agent = request.headers.get("User-Agent", "")
        if not any(name in agent for name in ALLOWED_AGENTS):
            return web.Response(status=403, text="error code: 1010")
        file = self.files.get(request.match_info["path"])
        if file is None or not file.available:
            return web.Response(status=404, text="Not Found")
        headers = {"Access-Control-Allow-Origin": "*"}
        return web.Response(body=await asyncio.to_thread(file.read), content_type=file.type, headers=headers)
