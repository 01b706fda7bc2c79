"""How often the token of the settings may be tried: attackers can neither guess it nor keep the operators out."""

import secrets
from hashlib import sha256
from hmac import compare_digest, digest
from ipaddress import IPv6Address, ip_address, ip_network

from genlock.ports import Database

#: attempts of one source, on all instances together: a burst, then one per interval
SOURCE_BURST, SOURCE_INTERVAL_SECONDS = 10, 30.0
#: attempts of all sources together, without browsers that logged in before: the rate of fifteen sources
UNKNOWN_BURST, UNKNOWN_INTERVAL_SECONDS = 60, 2.0
#: Sources share this many limits, so that an attacker with very many addresses does not fill the table. Who shares one
#: with whom depends on the token.
SOURCES_MAX = 4096
#: an IPv6 network of which a single customer has all addresses
IPV6_PREFIX = 64
_KEY = "dashboard:token"


class TooManyAttempts(Exception):
    """The token was tried too often; `seconds` says when to try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__("too many attempts")
        self.seconds = seconds


class TokenAttempts:
    """Limits attempts by source, and those of all sources together, except of browsers that logged in before.

    Such a browser has a cookie that only the holder of the token can make, and with it attempts of its own: so an
    attacker with thousands of addresses can delay only the first login of a new browser.
    """

    def __init__(self, store: Database, token: str) -> None:
        self._store = store
        self._token = token.encode()

    async def begin(self, remote: str, device: str) -> None:
        """Count an attempt. Raises TooManyAttempts; one above its source's limit does not use up the common limit."""
        if self._knows(device):
            await self._take(f"{_KEY}:device:{device.partition('.')[0]}", SOURCE_INTERVAL_SECONDS, SOURCE_BURST)
            return
        number = int.from_bytes(self._signature(f"source {_network(remote)}")[:4], "big") % SOURCES_MAX
        await self._take(f"{_KEY}:{number}", SOURCE_INTERVAL_SECONDS, SOURCE_BURST)
        await self._take(_KEY, UNKNOWN_INTERVAL_SECONDS, UNKNOWN_BURST)

    async def _take(self, key: str, interval: float, burst: int) -> None:
        [wait] = await self._store.take_permits([key], interval, burst, 0.0)
        if wait > 0:
            raise TooManyAttempts(wait)

    def device(self, known: str) -> str:
        """Return the cookie of a browser that has just logged in: the one it has, or a new one."""
        if self._knows(known):
            return known
        name = secrets.token_hex(8)
        return f"{name}.{self._signature(f'device {name}').hex()}"

    def _knows(self, device: str) -> bool:
        name, _, signature = device.partition(".")
        return compare_digest(signature.encode(), self._signature(f"device {name}").hex().encode())

    def _signature(self, text: str) -> bytes:
        return digest(self._token, text.encode(), sha256)


def _network(remote: str) -> str:
    """Return what identifies one customer: an IPv4 address, or the first half of an IPv6 address."""
    try:
        address = ip_address(remote.partition("%")[0])
    except ValueError:
        return remote
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or ip_network((int(address), IPV6_PREFIX), strict=False))
