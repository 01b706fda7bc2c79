"""Kie.ai's upload API: multipart stream, base64, or fetched from a URL. Files are kept for three days."""

import base64
import binascii
import json
import mimetypes
import secrets
from datetime import UTC, datetime
from pathlib import PurePosixPath
from time import time
from typing import Any

import aiohttp
from aiohttp import web

from genlock.sandbox.kie.files import FileHost

UPLOAD_SECONDS = 3 * 86_400.0
FETCH_SECONDS = 30


class _UploadError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def add_uploads(app: web.Application, files: FileHost, key: str) -> None:
    uploads = _Uploads(files, key)
    app.router.add_post("/api/file-base64-upload", uploads.base64)
    app.router.add_post("/api/file-stream-upload", uploads.stream)
    app.router.add_post("/api/file-url-upload", uploads.url)


class _Uploads:
    def __init__(self, files: FileHost, key: str) -> None:
        self._files = files
        self._key = key

    async def base64(self, request: web.Request) -> web.Response:
        async def read() -> web.Response:
            body = await request.json()
            data = _required(body, "base64Data")
            head, _, rest = data.partition(",") if data.startswith("data:") else ("", "", data)
            try:
                content = base64.b64decode(rest, validate=True)
            except binascii.Error:
                raise _UploadError(400, "Base64 decoding failed: Invalid Base64 format") from None
            kind = head.removeprefix("data:").partition(";")[0] or None
            return self._keep(content, _required(body, "uploadPath"), body.get("fileName"), kind)

        return await self._answer(request, read)

    async def stream(self, request: web.Request) -> web.Response:
        async def read() -> web.Response:
            form = await request.post()
            file = form.get("file")
            if not isinstance(file, web.FileField):
                raise _UploadError(400, "Missing required parameter: file")
            name = form.get("fileName") or file.filename
            return self._keep(file.file.read(), _required(form, "uploadPath"), str(name), file.content_type)

        return await self._answer(request, read)

    async def url(self, request: web.Request) -> web.Response:
        async def read() -> web.Response:
            body = await request.json()
            content, kind = await _fetch(_required(body, "fileUrl"))
            return self._keep(content, _required(body, "uploadPath"), body.get("fileName"), kind)

        return await self._answer(request, read)

    async def _answer(self, request: web.Request, read: Any) -> web.Response:
        try:
            self._check_key(request)
            answer: web.Response = await read()
        except _UploadError as wrong:
            return _json({"success": False, "code": wrong.code, "msg": str(wrong)})
        except ValueError:
            return _json({"success": False, "code": 400, "msg": "Invalid request body"})
        return answer

    def _check_key(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self._key}":
            raise _UploadError(401, "Authentication failed: Invalid API Key")

    def _keep(self, content: bytes, folder: str, name: object, kind: str | None) -> web.Response:
        known = kind or mimetypes.guess_type(str(name or ""))[0] or "application/octet-stream"
        made_up = f"{int(time() * 1000)}-{secrets.token_hex(6)[:11]}{mimetypes.guess_extension(known) or '.bin'}"
        file_name = PurePosixPath(str(name)).name if name else made_up
        path = f"kieai/1/{folder.strip('/')}/{file_name}"
        url = self._files.add(path, lambda: content, seconds=UPLOAD_SECONDS, kind=known)
        data = {
            "success": True,
            "fileName": file_name,
            "filePath": path,
            "downloadUrl": url,
            "fileSize": len(content),
            "mimeType": known,
            "uploadedAt": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        return _json({"success": True, "code": 200, "msg": "File uploaded successfully", "data": data})


def _required(body: Any, name: str) -> str:
    value = body.get(name) if hasattr(body, "get") else None
    if not isinstance(value, str) or not value:
        raise _UploadError(400, f"Missing required parameter: {name}")
    return value


async def _fetch(url: str) -> tuple[bytes, str | None]:
    headers = {"User-Agent": "Mozilla/5.0"}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=FETCH_SECONDS), headers=headers) as session,
            session.get(url) as response,
        ):
            response.raise_for_status()
            return await response.read(), response.content_type
    except (aiohttp.ClientError, OSError, ValueError):
        raise _UploadError(500, "File download failed") from None


def _json(body: dict[str, Any]) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), headers={"Content-Type": "application/json;charset=UTF-8"})
