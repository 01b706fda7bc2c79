"""Post to addresses that others chose: public ones only, without redirects, and with little of the answer read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import aiohttp

from genlock.media.download import AddressRefused, FetchFailed, PublicConnector, check_target, parse_url

ANSWER_BYTES_MAX = 4096
TEXT_LENGTH_MAX = 500
#: more than posts at the same time: a post that waited for a connection would count as one to a slow receiver
CONNECTIONS_MAX = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PostAnswer:
    status: int
    headers: Mapping[str, str]
    #: the start of the body, as text without control characters
    text: str


class Posts:
    """Posts small bodies. `private` lists the `host:port` pairs that may be called although they are not public."""

    def __init__(self, *, private: Collection[str] = (), seconds: float = 15.0) -> None:
        self._private = frozenset(pair.strip().lower() for pair in private if pair.strip())
        self._seconds = seconds
        self._opened: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()
            self._opened = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> PostAnswer:
        """Post once. Raises AddressRefused, or FetchFailed if there is no answer."""
        try:
            target = parse_url(url)
            check_target(target, self._private)
            async with self._session.post(target, data=body, headers=headers, allow_redirects=False) as response:
                start = await _read_start(response.content)
                return PostAnswer(status=response.status, headers=response.headers, text=_as_text(start))
        except aiohttp.InvalidURL as error:
            raise AddressRefused(f"not a valid URL: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FetchFailed(f"{type(error).__name__}: {error}"[:200]) from error

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=PublicConnector(self._private, limit=CONNECTIONS_MAX),
                headers={"User-Agent": "genlock", "Accept-Encoding": "identity"},
                auto_decompress=False,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=self._seconds, sock_connect=10.0),
            )
        return self._opened


async def _read_start(content: aiohttp.StreamReader) -> bytes:
    """Read the first bytes of a body, however many chunks they come in."""
    start = b""
    while len(start) < ANSWER_BYTES_MAX and (chunk := await content.read(ANSWER_BYTES_MAX - len(start))):
        start += chunk
    return start


def _as_text(start: bytes) -> str:
    text = " ".join(start.decode("utf-8", "replace").split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)[:TEXT_LENGTH_MAX]
