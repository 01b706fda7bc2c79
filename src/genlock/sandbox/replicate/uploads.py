"""The files API of Replicate: multipart uploads that models can read for a day."""

import hashlib
import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from aiohttp import web

from genlock.sandbox.kie.files import FileHost
from genlock.sandbox.replicate.bodies import error

FILE_SECONDS = 86_400.0
BYTES_MAX = 100_000_000


class Uploads:
    def __init__(self, files: FileHost, check_token: Callable[[web.Request], None]) -> None:
        self._files = files
        self._check_token = check_token
        self._stored: dict[str, dict[str, object]] = {}

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/files", self._create)
        router.add_get("/v1/files/{id}", self._get)

    async def _create(self, request: web.Request) -> web.Response:
        self._check_token(request)
        form = await request.post()
        content = form.get("content")
        if not isinstance(content, web.FileField):
            raise error(400, "Bad request", "Missing content")
        data = content.file.read()
        if len(data) > BYTES_MAX:
            raise error(413, "Payload too large", "The file is too large")
        name = str(form.get("filename") or content.filename or "file")[:255]
        kind = str(form.get("type") or content.content_type)
        file_id = secrets.token_urlsafe(16)
        url = self._files.add(f"files/{file_id}/{name}", lambda: data, seconds=FILE_SECONDS, kind=kind)
        self._stored[file_id] = _file_json(file_id, name, kind, data, url, str(form.get("metadata") or "{}"))
        return web.json_response(self._stored[file_id], status=201)

    async def _get(self, request: web.Request) -> web.Response:
        self._check_token(request)
        stored = self._stored.get(request.match_info["id"])
        if stored is None:
            raise error(404, "Not found", "The requested resource could not be found.")
        return web.json_response(stored)


def _file_json(file_id: str, name: str, kind: str, data: bytes, url: str, metadata: str) -> dict[str, object]:
    now = datetime.now(UTC)
    digest = hashlib.sha256(data).hexdigest()
    return {
        "id": file_id,
        "name": name,
        "content_type": kind,
        "size": len(data),
        "etag": digest[:32],
        "checksums": {"sha256": digest},
        "metadata": json.loads(metadata),
        "created_at": now.isoformat(),
        "expires_at": (now + timedelta(seconds=FILE_SECONDS)).isoformat(),
        "urls": {"get": url},
    }
