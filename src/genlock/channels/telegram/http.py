"""The HTTP client of the Bot API, on aiohttp: python-telegram-bot's own client examines its whole pool at each call.

A request passes the call fence before it begins and again when its body is written, because between the two it may wait
for a connection.
"""

import asyncio
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import urlencode

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload, Payload
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData

from genlock.ports.call_fence import CallFenced, check_call

CHUNK_BYTES = 2**16
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
#: errors before the request was sent: no connection could be had or made
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
#: how the Bot API begins its answer to a call that it has done
_DONE = re.compile(rb'\s*\{\s*"ok"\s*:\s*true\b')
_PHRASES = {413: "Request Entity Too Large", 429: "Too Many Requests"}


class ForeignAnswer(NetworkError):
    """The answer is not the Bot API's: a proxy has given it, or the Bot API's HTTP server to an unreadable request."""

    def __init__(self, status: int) -> None:
        super().__init__(_PHRASES.get(status, f"HTTP {status} without an answer of the Bot API"))
        self.status = status


@dataclass(frozen=True, slots=True)
class CallParameters:
    """The parameters of a call without files, in place of a `RequestData`. They are sent as JSON: a form costs more."""

    values: Mapping[str, Any]
    contains_files: bool = False


class HttpRequest(BaseRequest):
    """Makes the requests of python-telegram-bot's Bot. The session opens with the first one."""

    pool_seconds = 10.0
    connect_seconds = 5.0
    write_seconds = 10.0
    media_write_seconds = 60.0

    def __init__(self, *, connections: int, read_seconds: float, trust_env: bool) -> None:
        self._connections = connections
        self._read_seconds = read_seconds
        self._trust_env = trust_env
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        return self._read_seconds

    async def initialize(self) -> None:
        """Nothing: the session needs the running event loop, so the first request opens it."""

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """Make a request. Raises ForeignAnswer, and TimedOut and NetworkError, each caused by the error of aiohttp."""
        uploads = request_data is not None and request_data.contains_files
        timeout = _timeouts(
            read=_given(read_timeout, self._read_seconds),
            write=_given(write_timeout, self.media_write_seconds if uploads else self.write_seconds),
            connect=_given(connect_timeout, self.connect_seconds),
            pool=_given(pool_timeout, self.pool_seconds),
        )
        body = _body(request_data)
        try:
            check_call()
            async with self._opened().request(
                method, url, data=body, timeout=timeout, allow_redirects=False
            ) as response:
                answer = await response.read()
                return _bot_api_answer(response.status, answer) if method == "POST" else (response.status, answer)
        except CallFenced as fenced:
            raise NetworkError("not sent") from fenced
        except TimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            # Other errors of aiohttp name the URL, and with it the token.
            detail = f": {error}" if isinstance(error, aiohttp.ClientOSError) else ""
            raise NetworkError(f"{type(error).__name__}{detail}") from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
                trust_env=self._trust_env,
            )
        return self._session


class _TextPayload(BytesPayload):
    """The parameters of a call without files."""

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        check_call()
        await super().write_with_length(writer, content_length)


class _FilePayload(Payload):
    """A whole file, read in chunks outside the event loop. It stays open, because it may be sent again."""

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(file, **options)
        self._size = file.seek(0, io.SEEK_END)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await asyncio.to_thread(self._value.seek, 0)
        while chunk := await asyncio.to_thread(self._value.read, CHUNK_BYTES):
            check_call()
            await writer.write(chunk)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise TypeError("the payload is a file and not a text")


def _body(request: RequestData | CallParameters | None) -> aiohttp.FormData | Payload | None:
    """Return the parameters as JSON, or as a form with one part for each file."""
    if request is None:
        return None
    if isinstance(request, CallParameters):
        return _TextPayload(json.dumps(request.values).encode(), content_type=JSON)
    if not request.contains_files:
        return _TextPayload(urlencode(request.json_parameters).encode(), content_type=FORM)
    form = aiohttp.FormData(quote_fields=False)  # else names are percent-encoded, and Telegram shows them so
    for name, value in request.json_parameters.items():
        form.add_field(name, value)
    for name, (filename, content, kind) in request.multipart_data.items():
        file = io.BytesIO(content) if isinstance(content, bytes) else content
        form.add_field(name, _FilePayload(file, content_type=kind, filename=filename), filename=filename)
    return form


def _bot_api_answer(status: int, body: bytes) -> tuple[int, bytes]:
    """Return the status that the Bot API states in its answer, since a proxy may have changed that of the HTTP answer.

    The body comes without the prefix of a refusal: the library would put the rest of the text in lower case.
    Raises ForeignAnswer if the answer is not the Bot API's.
    """
    if status < HTTPStatus.MULTIPLE_CHOICES and _DONE.match(body):
        return status, body
    try:
        answer = json.loads(body)
    except ValueError:
        raise ForeignAnswer(status) from None
    match answer:
        case {"ok": True} if status < HTTPStatus.MULTIPLE_CHOICES:  # with its keys in another order
            return status, body
        case {"ok": False, "error_code": int(code), "description": str(text)}:
            return code, json.dumps({**answer, "description": text.removeprefix("Bad Request: ")}).encode()
        case {"ok": False, "error_code": int(code)}:
            return code, body
    raise ForeignAnswer(status)


@lru_cache
def _timeouts(*, read: float, write: float, connect: float, pool: float) -> aiohttp.ClientTimeout:
    """Limit each phase; aiohttp has no limit of its own for writing, so the whole request is limited too."""
    return aiohttp.ClientTimeout(
        total=pool + connect + write + read, connect=pool + connect, sock_connect=connect, sock_read=read
    )


def _given(value: Any, default: float) -> float:
    return default if value is BaseRequest.DEFAULT_NONE or value is None else float(value)
