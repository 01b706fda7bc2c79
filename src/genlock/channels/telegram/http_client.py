"""The HTTP client of python-telegram-bot's Bot on aiohttp: a call costs a third of the processor time of httpx."""

import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from telegram._utils.defaultvalue import DefaultValue
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
#: the request did not leave this machine
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


class RequestNotSent(Exception):
    """There was no connection, so Telegram has certainly not received the call."""


class AiohttpRequest(BaseRequest):
    """Sends each call once: a lost answer is reported, never repeated here."""

    def __init__(
        self,
        *,
        connections: int,
        connect_seconds: float,
        read_seconds: float,
        write_seconds: float,
        media_write_seconds: float,
        verify: ssl.SSLContext | bool,
        trust_env: bool,
    ) -> None:
        self._connections = connections
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._media_write_seconds = media_write_seconds
        self._verify = verify
        self._trust_env = trust_env
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        return self._read_seconds

    async def initialize(self) -> None:
        """Do nothing: the first call opens the session."""

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=self._verify)
            headers = {"User-Agent": self.USER_AGENT}
            self._session = aiohttp.ClientSession(connector=connector, headers=headers, trust_env=self._trust_env)
        return self._session

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
        """Make one request; return the status and the body. Raises TimedOut and NetworkError."""
        files = request_data.multipart_data if request_data else {}
        read = _given(read_timeout, self._read_seconds)
        write = _given(write_timeout, self._media_write_seconds if files else self._write_seconds)
        connect = _given(connect_timeout, self._connect_seconds)
        timeout = aiohttp.ClientTimeout(total=connect + write + read, connect=connect, sock_read=read)
        fields = request_data.json_parameters if request_data else {}
        data: Any = _multipart(fields, files) if files else urlencode(fields).encode() if fields else None
        headers = _FORM if data is not None and not files else None
        try:
            async with self._open_session().request(
                method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                return answer.status, await answer.read()
        except _NOT_SENT as error:
            raise NetworkError(f"no connection: {type(error).__name__}") from RequestNotSent(str(error))
        except TimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            raise NetworkError(f"{type(error).__name__}: {error}") from error


def _given(seconds: Any, default: float) -> float:
    return default if isinstance(seconds, DefaultValue) or seconds is None else float(seconds)


def _multipart(fields: Mapping[str, str], files: Mapping[str, Any]) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)  # else names are percent-encoded, and Telegram shows them so
    for name, value in fields.items():
        form.add_field(name, value)
    for name, (filename, content, kind) in files.items():
        form.add_field(name, content, filename=filename, content_type=kind)
    return form
