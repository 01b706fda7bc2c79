"""Rate limits that all instances share."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.value import value


@value
class SharedLimit:
    """A limit on the calls to all chats together."""

    key: str
    interval: float
    burst: int
    #: how many seconds ahead its permits are reserved
    horizon: float


@value
class TakenPermits:
    granted: int
    #: further permits that are free now
    remaining: int
    #: seconds until the next permit, if none was granted
    wait: float


class LimitStore(Protocol):
    """Rate limits by key: when the next permit of each is free."""

    async def reserve_permits(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        """Reserve up to `count` permits. Returns the seconds until each may be used, at most `horizon`."""

    async def take_permits(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        """Take a permit of each limit that has one now. Returns for each key 0, or the seconds until one is free.

        Only permits that have been free for `spare` seconds are taken.
        """

    async def take_call_permits(
        self, keys: Sequence[str], interval: float, burst: int, *, shared: SharedLimit
    ) -> tuple[list[float | None], list[float]]:
        """Take a permit of each limit that has one now, together with one of the shared limit.

        Returns for each key 0, or the seconds until one is free, or None if the shared limit has no permit for it; and
        for each permit that was taken the seconds until the shared limit allows its use. No permit of a key is spent
        for which the shared limit has none.
        """

    async def block_limit(self, key: str, seconds: float) -> None:
        """Grant no permit of this limit for `seconds`."""


class PermitBlockStore(Protocol):
    """Rate limits whose permits are taken in blocks."""

    async def take_block(self, key: str, count: int, interval: float, burst: int, ahead: float = 0.0) -> TakenPermits:
        """Take up to `count` permits that are free now, or will be within `ahead` seconds."""
