"""HTTP calls to a provider: a create call is made once, on a connection of its own; other calls may be repeated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitUnknown
from genlock.providers.json_values import clean, load_json, load_object

ANSWER_BYTES_MAX = 4_000_000
UPLOAD_TIMEOUT = aiohttp.ClientTimeout(total=600.0, sock_connect=10.0, sock_read=120.0)
#: failures before anything was sent, so the provider cannot know of the order
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_UNREACHABLE_SECONDS = 5.0
CLIENT_ERRORS = range(400, 500)
_OK = range(200, 300)
#: a time-out or a conflict: the order may have been accepted
_LOST = (408, 409)
#: error codes of orders that were refused with these statuses
REFUSED = {
    401: "provider_key",
    402: "no_provider_credits",
    403: "provider_key",
    404: "model_unavailable",
    405: "model_unavailable",
    410: "model_unavailable",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_ok(self) -> bool:
        return self.status in _OK

    def object(self) -> dict[str, Any]:
        """Parse the body as a JSON object. Raises ProviderError."""
        try:
            return load_object(self.content)
        except ValueError as error:
            raise ProviderError(f"the answer is {error}") from None

    def text(self, read: Callable[[Any], str]) -> str:
        """Return what `read` finds in the body, or the reason of the status if the body is not JSON."""
        try:
            return read(load_json(self.content))
        except ValueError:
            return clean(self.reason)


class HttpClient:
    """The connections of one provider. Redirects are not followed: the key would go with them."""

    def __init__(self, headers: Mapping[str, str], timeout_seconds: float) -> None:
        self._headers = dict(headers)
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=min(10.0, timeout_seconds))
        self._creates: aiohttp.ClientSession | None = None
        self._queries: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        for session in (self._creates, self._queries):
            if session is not None:
                await session.close()

    async def create(self, url: str, body: Mapping[str, Any]) -> HttpAnswer:
        """Post an order once. Raises ProviderBusy if it was not sent, SubmitUnknown if the answer was lost.

        It goes on a new connection: a kept one may close after the order was sent, and the outcome would be unknown.
        """
        if self._creates is None:
            self._creates = self._session(aiohttp.TCPConnector(limit=0, force_close=True))
        try:
            async with self._creates.post(url, json=body, allow_redirects=False) as response:
                return await _read(response)
        except _NOT_SENT as error:
            raise ProviderBusy(_UNREACHABLE_SECONDS, f"cannot connect: {type(error).__name__}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            raise SubmitUnknown(f"the answer was lost: {type(error).__name__}") from error

    async def request(self, method: str, url: str, **options: Any) -> HttpAnswer:
        """Make a call that may be repeated. Raises ProviderError if there is no answer."""
        if self._queries is None:
            self._queries = self._session(aiohttp.TCPConnector(limit=100))
        try:
            async with self._queries.request(method, url, allow_redirects=False, **options) as response:
                return await _read(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProviderError(f"{method} {url.partition('?')[0]}: {type(error).__name__}") from error

    def _session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector, headers=self._headers, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar()
        )


def may_be_accepted(status: int) -> bool:
    """Whether an order may have been accepted although it was answered with this error."""
    return status in _LOST or status not in CLIENT_ERRORS


async def _read(response: aiohttp.ClientResponse) -> HttpAnswer:
    content = await response.content.read(ANSWER_BYTES_MAX)
    while len(content) < ANSWER_BYTES_MAX and (more := await response.content.read(ANSWER_BYTES_MAX - len(content))):
        content += more
    return HttpAnswer(status=response.status, reason=response.reason or "", headers=response.headers, content=content)
