"""Fetching results: from public addresses only, within limits of size and time, never a whole film in memory."""

import asyncio
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from tempfile import TemporaryFile
from typing import IO, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

#: some hosts of results refuse libraries that name themselves
AGENT = "Mozilla/5.0 (compatible; genlock)"
REDIRECTS_MAX = 5
HEAD_BYTES = 65_536
PIECE_BYTES = 1024 * 1024
LOOK_SECONDS = 15.0
FETCH_SECONDS = 180.0
SILENT_SECONDS = 30.0
_NAT64 = 0x64FF9B << 96
#: whatever the standard library calls them: clouds' own services, sites of old, examples
_NOT_PUBLIC = tuple(map(ip_network, ("168.63.129.16/32", "192.0.0.0/24", "fec0::/10", "3fff::/20")))
_SCHEMES = frozenset({"http", "https"})


class AddressRefused(Exception):
    """We do not go there: not the web, or not public."""


class FetchFailed(Exception):
    """It could not be fetched; `status` is what the server said, if it did."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def missing(self) -> bool:
        """Whether the server says that it is not there, rather than being ill."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in (408, 425, 429)  # noqa: PLR2004


class TooLarge(Exception):
    """There is more than we take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What the first bytes and the headers say."""

    head: bytes
    content_type: str
    #: None where the server does not say
    size: int | None
    #: everybody may fetch it, by https
    public: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    #: without a name on the disk: nothing is left behind, however we end
    file: IO[bytes]
    head: bytes
    content_type: str
    size: int


def is_public(address: str) -> bool:
    """Whether an IP address is out on the internet, seen through every way of writing one inside another."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped:
            return _is_public(found.ipv4_mapped)
        if int(found) >> 32 == _NAT64 >> 32:
            return _is_public(IPv4Address(int(found) & 0xFFFFFFFF))
        inner = (found.sixtofour, *(found.teredo or ()))
        if any(one is not None and not _is_public(one) for one in inner):
            return False
    return _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    return address.is_global and not special and not any(address in network for network in _NOT_PUBLIC)


class _PublicResolver(AbstractResolver):
    """Names become addresses here, and the connection goes to what was checked here: no second answer counts."""

    def __init__(self, private: Collection[str]) -> None:
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        addresses = {str(answer[4][0]): answer[0] for answer in found}
        if f"{host}:{port}" not in self._private:
            for address in addresses:
                _check_public(address, host)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=family,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address, family in addresses.items()
        ]

    async def close(self) -> None:
        """Nothing is kept open."""


class _PublicConnector(aiohttp.TCPConnector):
    """The second line: before anything is asked, whoever is at the other end is one we may go to."""

    def __init__(self, private: Collection[str]) -> None:
        super().__init__(resolver=_PublicResolver(private), use_dns_cache=False, limit=32)
        self._private = private

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        try:
            if _pair(req.url) not in self._private:
                assert connection.transport is not None
                _check_public(connection.transport.get_extra_info("peername")[0], req.url.raw_host or "")
        except BaseException:
            connection.close()
            raise
        return connection


def _check_public(address: str, host: str) -> None:
    if not is_public(address):
        raise AddressRefused(f"{host} is not a public address")


class Downloads:
    """Fetches what providers call results. `private` names the `host:port` pairs that may be fetched all the same."""

    def __init__(self, *, private: Collection[str] = ()) -> None:
        self._private = frozenset(pair.strip().lower() for pair in private if pair.strip())
        self._opened: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()
            self._opened = None

    async def look(self, url: str) -> Look:
        """The first bytes of a file, and what its server says of it."""
        async with _within(LOOK_SECONDS), self._get(url) as (response, final):
            head = await _read_head(response)
            public = final.scheme == "https" and _pair(final) not in self._private
            return Look(head=head, content_type=response.content_type, size=_size(response), public=public)

    @asynccontextmanager
    async def fetch(self, url: str, limit: int) -> AsyncIterator[Fetched]:
        """The whole file, on disk as long as the block lasts. Raises TooLarge as soon as it is known to be."""
        with TemporaryFile() as file:
            async with _within(FETCH_SECONDS), self._get(url) as (response, _):
                announced = _size(response)
                if announced is not None and announced > limit:
                    raise TooLarge(f"{announced} bytes")
                head = await _read_head(response)
                size = await _write(response, head, file, limit)
                if announced is not None and size < announced:
                    raise FetchFailed(f"only {size} of {announced} bytes came")
                content_type = response.content_type
            yield Fetched(file=file, head=head, content_type=content_type, size=size)

    @asynccontextmanager
    async def _get(self, url: str) -> AsyncIterator[tuple[aiohttp.ClientResponse, URL]]:
        """The answer of the last of the redirects, each of which is checked like the first."""
        try:
            target = _read(url)
            for _ in range(REDIRECTS_MAX + 1):
                self._check(target)
                async with self._session.get(target, allow_redirects=False) as response:
                    if response.status in (301, 302, 303, 307, 308) and (place := response.headers.get("Location")):
                        target = target.join(_read(place))
                        continue
                    if response.status != 200:  # noqa: PLR2004 - no part of it, nothing else will do
                        raise FetchFailed(f"the server answered {response.status}", response.status)
                    yield response, target
                    return
            raise FetchFailed(f"more than {REDIRECTS_MAX} redirects", 400)
        except aiohttp.InvalidURL as error:
            raise AddressRefused(f"not an address: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FetchFailed(f"{type(error).__name__}: {error}"[:200]) from error

    def _check(self, target: URL) -> None:
        """Raises AddressRefused for what is not the web; hosts that are numbers are not asked of the resolver."""
        host = target.raw_host  # as the connection is made to it: digits of other scripts are plain ones here
        if target.scheme not in _SCHEMES or not host:
            raise AddressRefused("only http and https addresses are fetched")
        if not host.isascii():
            raise AddressRefused("the host's name is not one")
        if _pair(target) not in self._private and _is_number(host):
            _check_public(host, host)

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            connector = _PublicConnector(self._private)
            self._opened = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": AGENT, "Accept": "*/*", "Accept-Encoding": "identity"},
                auto_decompress=False,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=SILENT_SECONDS),
            )
        return self._opened


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise FetchFailed(f"it took more than {seconds:.0f} seconds") from error


def _read(url: str) -> URL:
    """Read once: what is checked is what is connected to. Raises AddressRefused."""
    try:
        return URL(url)
    except ValueError as error:
        raise AddressRefused(f"not an address: {error}") from error


def _pair(target: URL) -> str:
    return f"{target.raw_host}:{target.port}"


def _is_number(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _size(response: aiohttp.ClientResponse) -> int | None:
    """What the server says the file's size is, if what it sends is the file as it is."""
    packed: Any = response.headers.get("Content-Encoding", "identity")
    if packed != "identity":
        raise FetchFailed(f"the server packs it as {packed[:20]!r}, which nobody asked for", 400)
    return response.content_length


async def _read_head(response: aiohttp.ClientResponse) -> bytes:
    head = b""
    while len(head) < HEAD_BYTES and (piece := await response.content.read(HEAD_BYTES - len(head))):
        head += piece
    return head


async def _write(response: aiohttp.ClientResponse, head: bytes, file: IO[bytes], limit: int) -> int:
    """Piece by piece to the disk, off the event loop."""
    size = len(head)
    pieces, waiting = [head], len(head)
    while piece := await response.content.read(HEAD_BYTES):
        size += len(piece)
        if size > limit:
            raise TooLarge(f"more than {limit} bytes")
        pieces.append(piece)
        waiting += len(piece)
        if waiting >= PIECE_BYTES:
            await asyncio.to_thread(file.writelines, pieces)
            pieces, waiting = [], 0
    await asyncio.to_thread(file.writelines, pieces)
    file.seek(0)
    return size
