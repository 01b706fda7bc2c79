"""The second host of the simulated Kie.ai: result files and uploads, for browsers only and not for ever."""

import asyncio
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from time import time

from aiohttp import web

PAGE = b"<!doctype html><title>502</title><h1>Bad gateway</h1>"
#: browsers, and Telegram itself, which fetches what it is given an address of
ALLOWED_AGENTS = ("Mozilla/", "TelegramBot")


@dataclass(kw_only=True)
class File:
    type: str
    expires: float
    #: makes the content when somebody asks for it: most results nobody downloads
    make: Callable[[], bytes]
    content: bytes | None = None
    gone: bool = False


class FileHost:
    """Keeps files and serves them. Answers 403 to the names that programs have by default, as the real one does."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.url = ""
        self.app = web.Application()
        self.app.router.add_get("/{path:.+}", self._serve)

    def add(self, path: str, make: Callable[[], bytes], *, seconds: float, kind: str | None = None) -> str:
        """Serve a file for so long; returns its address."""
        known = kind or mimetypes.guess_type(path)[0] or "application/octet-stream"
        self.files[path] = File(type=known, expires=time() + seconds, make=make)
        return f"{self.url}/{path}"

    def expire(self) -> None:
        """Everything kept so far is over."""
        for file in self.files.values():
            file.expires = 0

    def find(self, url: str) -> File | None:
        """The file at an address of ours."""
        return self.files.get(url.removeprefix(f"{self.url}/")) if url.startswith(f"{self.url}/") else None

    async def _serve(self, request: web.Request) -> web.Response:
        agent = request.headers.get("User-Agent", "")
        if not any(name in agent for name in ALLOWED_AGENTS):
            return web.Response(status=403, text="error code: 1010")
        file = self.files.get(request.match_info["path"])
        if file is None or file.gone or file.expires < time():
            return web.Response(status=404, text="Not Found")
        if file.content is None:
            file.content = await asyncio.to_thread(file.make)
        headers = {"Access-Control-Allow-Origin": "*"}
        return web.Response(body=file.content, content_type=file.type, headers=headers)
