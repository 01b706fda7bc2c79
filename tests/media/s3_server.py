"""A small S3: objects in memory, signatures required, lists in pages as S3 answers them."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genlock.media.stores.s3_signature import Credentials, sign
from genlock.web.server import serving

CREDENTIALS = Credentials(key="access", secret="se/cr+et", region="eu-test-1")
_OWN = ("host", "x-amz-content-sha256", "x-amz-date")


@dataclass
class S3Server:
    url: str = ""
    objects: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    #: the status of the next answers, before anything is done
    failing: list[int] = field(default_factory=list)
    #: its clock, if it compares it with that of the client
    now: Callable[[], datetime] | None = None

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    async def answer(self, request: Request) -> Response:  # noqa: PLR0911 - one per kind of request
        body = await request.body()
        if self.failing:
            return _error(self.failing.pop(0), "SlowDown")
        if not self._is_signed(request, body):
            return _error(403, "SignatureDoesNotMatch")
        if self.now is not None and abs(_signed_at(request) - self.now()) > timedelta(minutes=15):
            return _error(403, "RequestTimeTooSkewed")
        path = _path(request)
        if "list-type" in request.query_params:
            return self._list(request, path)
        if request.method == "PUT":
            self.objects[path] = body, request.headers["content-type"]
            return Response()
        if request.method == "DELETE":
            self.objects.pop(path, None)
            return Response(status_code=204)
        if path not in self.objects:
            return _error(404, "NoSuchKey")
        return self._read(request, path)

    def _is_signed(self, request: Request, body: bytes) -> bool:
        names = request.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        expected = sign(
            CREDENTIALS,
            request.method,
            request.headers["host"],
            _path(request),
            now=_signed_at(request),
            query=dict(request.query_params),
            headers={name: request.headers[name] for name in names if name not in _OWN},
            sha256=hashlib.sha256(body).hexdigest(),
        )
        return expected["authorization"] == request.headers["authorization"]

    def _list(self, request: Request, path: str) -> Response:
        prefix, start = request.query_params["prefix"], f"{path}/"
        keys = sorted(key.removeprefix(start) for key in self.objects if key.startswith(start + prefix))
        keys = [key for key in keys if key > request.query_params.get("start-after", "")]
        if "delimiter" in request.query_params:
            folders = sorted({prefix + key.removeprefix(prefix).partition("/")[0] + "/" for key in keys})
            rows = "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders)
        else:
            rows = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in keys[:1000])
        return Response(f"<ListBucketResult><Prefix>{prefix}</Prefix>{rows}</ListBucketResult>")

    def _read(self, request: Request, path: str) -> Response:
        content, kind = self.objects[path]
        if "range" not in request.headers:
            return Response(content, media_type=kind)
        first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        return Response(content[first : last + 1], 206, media_type=kind)


def _path(request: Request) -> str:
    return unquote(request.scope["raw_path"].decode())


def _signed_at(request: Request) -> datetime:
    return datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _error(status: int, code: str) -> Response:
    return Response(f"<Error><Code>{code}</Code></Error>", status)


@asynccontextmanager
async def running_s3() -> AsyncIterator[S3Server]:
    server = S3Server()
    methods = ["GET", "HEAD", "PUT", "DELETE"]
    async with serving(
        Starlette(routes=[Route("/{path:path}", server.answer, methods=methods)]), "127.0.0.1", 0
    ) as url:
        server.url = url
        yield server
