"""Download results: from public addresses only, within limits of size and time, to disk instead of memory."""

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

from genlock.media.name_lookup import NameLookup
from genlock.media.transfers import Transfers

#: some hosts refuse the User-Agent values of HTTP libraries
AGENT = "Mozilla/5.0 (compatible; genlock)"
REDIRECTS_MAX = 5
CONNECTIONS_MAX = 32
HEAD_BYTES = 65_536
WRITE_BYTES = 1024 * 1024
PEEK_SECONDS = 15.0
FETCH_SECONDS = 180.0
READ_SECONDS = 30.0
_NAT64 = 0x64FF9B << 96
#: networks that are not public although the standard library may call them global: cloud services, site-local, examples
_NOT_PUBLIC = tuple(map(ip_network, ("168.63.129.16/32", "192.0.0.0/24", "fec0::/10", "3fff::/20")))
_SCHEMES = frozenset({"http", "https"})


class AddressRefused(Exception):
    """The URL is not http(s), or its host is not a public address."""


class FetchFailed(Exception):
    """The download failed; `status` is the HTTP status, if the server answered."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def missing(self) -> bool:
        """Whether the server states that the file does not exist, as opposed to a failure that may pass."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in (408, 425, 429)  # noqa: PLR2004


class TooLarge(Exception):
    """The file is larger than the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeekedFile:
    """The first bytes of a file and what the response headers state."""

    head: bytes
    content_type: str
    #: None if the server does not state it
    size: int | None
    #: any host on the internet can fetch it, by https
    public: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchedFile:
    #: has no name on disk, so a crash leaves nothing behind
    file: IO[bytes]
    head: bytes
    content_type: str
    size: int


def is_public(address: str) -> bool:
    """Whether an IP address is public, also when it is embedded in an IPv6 address (mapped, NAT64, 6to4, Teredo)."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped:
            return _is_public(found.ipv4_mapped)
        if int(found) >> 32 == _NAT64 >> 32:
            return _is_public(IPv4Address(int(found) & 0xFFFFFFFF))
        inner = (found.sixtofour, *(found.teredo or ()))
        if any(embedded is not None and not _is_public(embedded) for embedded in inner):
            return False
    return _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    return address.is_global and not special and not any(address in network for network in _NOT_PUBLIC)


class _PublicResolver(AbstractResolver):
    """Resolve names and check the addresses. The connection uses these addresses, so DNS rebinding has no effect."""

    def __init__(self, private: Collection[str]) -> None:
        self._private = private
        self._names = NameLookup()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._names.addresses(host, port, family)
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
        self._names.close()


class PublicConnector(aiohttp.TCPConnector):
    """Second check: verify the address of the connected peer before a request is sent."""

    def __init__(self, private: Collection[str], *, limit: int = CONNECTIONS_MAX) -> None:
        self._names = _PublicResolver(private)
        super().__init__(resolver=self._names, use_dns_cache=False, limit=limit)
        self._private = private

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=abort_ssl)
        await self._names.close()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        try:
            if _host_and_port(req.url) not in self._private:
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
    """Downloads results. `private` lists the `host:port` pairs that may be fetched although they are not public."""

    def __init__(self, *, private: Collection[str] = (), transfers: Transfers | None = None) -> None:
        self._private = frozenset(pair.strip().lower() for pair in private if pair.strip())
        self.transfers = transfers or Transfers()
        self._opened: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()
            self._opened = None

    async def peek(self, url: str) -> PeekedFile:
        """Read the first bytes and the headers of a file. Raises ChannelBusy if the instance stops meanwhile."""
        async with self.transfers.interruptible(), _within(PEEK_SECONDS), self._get(url) as (response, final):
            head = await _read_head(response)
            public = final.scheme == "https" and _host_and_port(final) not in self._private
            return PeekedFile(head=head, content_type=response.content_type, size=_size(response), public=public)

    @asynccontextmanager
    async def fetch(self, url: str, limit: int) -> AsyncIterator[FetchedFile]:
        """Download the whole file to disk for as long as the block lasts. Raises TooLarge as early as possible.

        Raises ChannelBusy if the instance stops before the file is there.
        """
        with TemporaryFile() as file:
            async with self.transfers.interruptible(), _within(FETCH_SECONDS), self._get(url) as (response, _):
                announced = _size(response)
                if announced is not None and announced > limit:
                    raise TooLarge(f"{announced} bytes")
                head = await _read_head(response)
                size = await _write(response, head, file, limit)
                if announced is not None and size < announced:
                    raise FetchFailed(f"only {size} of {announced} bytes arrived")
                content_type = response.content_type
            yield FetchedFile(file=file, head=head, content_type=content_type, size=size)

    @asynccontextmanager
    async def _get(self, url: str) -> AsyncIterator[tuple[aiohttp.ClientResponse, URL]]:
        """Follow redirects, checking each target like the first URL, and yield the last response."""
        try:
            target = parse_url(url)
            for _ in range(REDIRECTS_MAX + 1):
                check_target(target, self._private)
                async with self._session.get(target, allow_redirects=False) as response:
                    if response.status in (301, 302, 303, 307, 308) and (location := response.headers.get("Location")):
                        target = target.join(parse_url(location))
                        continue
                    if response.status != 200:  # noqa: PLR2004 - a partial or empty response is no file
                        raise FetchFailed(f"the server answered {response.status}", response.status)
                    yield response, target
                    return
            raise FetchFailed(f"more than {REDIRECTS_MAX} redirects", 400)
        except aiohttp.InvalidURL as error:
            raise AddressRefused(f"not a valid URL: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FetchFailed(f"{type(error).__name__}: {error}"[:200]) from error

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            connector = PublicConnector(self._private)
            self._opened = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": AGENT, "Accept": "*/*", "Accept-Encoding": "identity"},
                auto_decompress=False,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=READ_SECONDS),
            )
        return self._opened


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise FetchFailed(f"it took more than {seconds:.0f} seconds") from error


def parse_url(url: str) -> URL:
    """Parse a URL once, so that the checked URL is the requested one. Raises AddressRefused."""
    try:
        return URL(url)
    except ValueError as error:
        raise AddressRefused(f"not a valid URL: {error}") from error


def check_target(target: URL, private: Collection[str]) -> None:
    """Raise AddressRefused unless the URL is http(s) and its host, if it is an IP address, is public."""
    host = target.raw_host  # normalised as the connection uses it: digits of other scripts are ASCII digits here
    if target.scheme not in _SCHEMES or not host:
        raise AddressRefused("only http and https URLs are fetched")
    if not host.isascii() or not _is_encodable(host):
        raise AddressRefused("the host name is not valid")
    if _host_and_port(target) not in private and _is_ip_address(host):
        _check_public(host, host)


def _host_and_port(target: URL) -> str:
    return f"{target.raw_host}:{target.port}"


def _is_encodable(host: str) -> bool:
    """Whether a name can be looked up at all: none of its parts is empty or too long."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _size(response: aiohttp.ClientResponse) -> int | None:
    """Return the stated size of the file. Raises FetchFailed if the body is compressed."""
    encoding: Any = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise FetchFailed(f"the server sent it compressed as {encoding[:20]!r}, although identity was requested", 400)
    return response.content_length


async def _read_head(response: aiohttp.ClientResponse) -> bytes:
    head = b""
    while len(head) < HEAD_BYTES and (chunk := await response.content.read(HEAD_BYTES - len(head))):
        head += chunk
    return head


async def _write(response: aiohttp.ClientResponse, head: bytes, file: IO[bytes], limit: int) -> int:
    """Write the body to disk chunk by chunk, in a thread."""
    size = len(head)
    chunks, pending = [head], len(head)
    while chunk := await response.content.read(HEAD_BYTES):
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"more than {limit} bytes")
        chunks.append(chunk)
        pending += len(chunk)
        if pending >= WRITE_BYTES:
            await asyncio.to_thread(file.writelines, chunks)
            chunks, pending = [], 0
    await asyncio.to_thread(file.writelines, chunks)
    file.seek(0)
    return size
