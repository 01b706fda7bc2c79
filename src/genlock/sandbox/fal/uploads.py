"""The storage of fal: an upload address that takes the bytes, and the CDN with its own short-lived token."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from genlock.sandbox.generations.server import ApiError, read_object
from genlock.sandbox.kie.files import FileHost

FILE_SECONDS = 7 * 86_400.0
TOKEN_SECONDS = 3600


class Uploads:
    def __init__(self, files: FileHost, check_key: Any) -> None:
        self._files = files
        self._check_key = check_key
        self._tokens: set[str] = set()
        self._waiting: dict[str, str] = {}

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_post("/storage/upload/initiate", self._initiate)
        router.add_put("/storage/put/{token}", self._put)
        router.add_post("/storage/auth/token", self._token)
        router.add_post("/files/upload", self._upload)

    async def _initiate(self, request: web.Request) -> web.Response:
        self._check_key(request)
        body = await read_object(request)
        token = secrets.token_urlsafe(16)
        path = f"files/{secrets.token_hex(8)}/{_name(body.get('file_name'))}"
        self._waiting[token] = path
        upload_url = f"{request.scheme}://{request.host}/storage/put/{token}"
        return web.json_response({"upload_url": upload_url, "file_url": f"{self._files.url}/{path}"})

    async def _put(self, request: web.Request) -> web.Response:
        path = self._waiting.pop(request.match_info["token"], None)
        if path is None:
            raise ApiError(403, {"detail": "The upload address is not valid"})
        self._store(path, await request.read(), request.content_type)
        return web.Response()

    async def _token(self, request: web.Request) -> web.Response:
        self._check_key(request)
        token = secrets.token_urlsafe(24)
        self._tokens.add(token)
        expires = datetime.now(UTC) + timedelta(seconds=TOKEN_SECONDS)
        base = f"{request.scheme}://{request.host}"
        body = {"token": token, "token_type": "Bearer", "base_url": base, "expires_at": expires.isoformat()}
        return web.json_response(body)

    async def _upload(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self._tokens:
            raise ApiError(401, {"detail": "Authentication is required"})
        path = f"files/{secrets.token_hex(8)}/{_name(request.headers.get('X-Fal-File-Name'))}"
        return web.json_response({"access_url": self._store(path, await request.read(), request.content_type)})

    def _store(self, path: str, content: bytes, kind: str) -> str:
        return self._files.add(path, lambda: content, seconds=FILE_SECONDS, kind=kind)


def _name(name: object) -> str:
    return str(name or "file.bin").rpartition("/")[2][-100:] or "file.bin"
