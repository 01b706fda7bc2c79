"""Requests per key: permits from the store, taken in blocks, so that all instances together keep the limit."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from genlock.api.problems import Problem, too_many
from genlock.ports import PermitBlockStore

#: the share of a second's requests that is taken from the store at a time
BLOCK_SHARE = 0.1
#: permits of a block that were not used after this time are given up
BLOCK_SECONDS = 1.0
KEYS_MAX = 10_000


@dataclass(kw_only=True)
class _Block:
    left: int = 0
    #: permits that the store still had when the block was taken
    remaining: int = 0
    until: float = 0.0
    blocked_until: float = 0.0
    #: requests that wait for permits of the store
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class BlockedSender(NamedTuple):
    """A sender whose next request would be refused anyway."""

    account_id: int
    refusal: Problem


class RequestLimits:
    def __init__(self, store: PermitBlockStore, per_second: int, clock: Callable[[], float]) -> None:
        self._store = store
        self._interval = 1 / per_second
        self._burst = 2 * per_second
        self._block_size = max(1, round(per_second * BLOCK_SHARE))
        self._clock = clock
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        #: the keys of which a request was refused, and their accounts, by the hash of the secret
        self._refused: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def note_refused(self, secret_hash: str, key_id: int, account_id: int) -> None:
        """Remember whose secret it is, so that further requests are refused without reading the key."""
        self._refused[secret_hash] = key_id, account_id
        self._refused.move_to_end(secret_hash)
        if len(self._refused) > KEYS_MAX:
            self._refused.popitem(last=False)

    def find_blocked(self, secret_hash: str) -> BlockedSender | None:
        """Return the sender of a secret if the store had no permit for it and will have none yet."""
        if (known := self._refused.get(secret_hash)) is None:
            return None
        key_id, account_id = known
        block = self._block(key_id)
        if self._clock() >= block.blocked_until or self._spendable(block):
            return None
        return BlockedSender(account_id, self._refusal(block))

    def _spendable(self, block: _Block) -> int:
        return block.left if self._clock() < block.until else 0

    @property
    def _policy(self) -> str:
        return f'"requests";q={self._burst};w={ceil(self._burst * self._interval)}'

    async def take(self, key_id: int, permits: int = 1) -> dict[str, str]:
        """Take permits, at most a burst of them, and return the RateLimit headers. Raises Problem 429."""
        block, count = self._block(key_id), min(permits, self._burst)
        if not self._spend(block, count):
            if block.waiting >= self._burst:  # they would wait for seconds
                raise self._refusal(block)
            block.waiting += 1
            try:
                async with block.lock:
                    if not self._spend(block, count) and not await self._refill_and_spend(block, key_id, count):
                        raise self._refusal(block)
            finally:
                block.waiting -= 1
        return self._headers(block)

    async def charge(self, key_id: int, permits: int) -> dict[str, str]:
        """Take permits for an answer that is ready, if necessary of the next seconds. Raises Problem 429.

        The next requests wait for them. If it were refused, it would be made anew at each attempt, and a large one
        might never find enough permits.
        """
        block, count = self._block(key_id), min(permits, self._burst)
        async with block.lock:
            kept = min(self._spendable(block), count)
            block.left -= kept
            if kept < count:
                await self._borrow(block, key_id, count - kept)
        return self._headers(block)

    async def _borrow(self, block: _Block, key_id: int, count: int) -> None:
        ahead = self._burst * self._interval
        taken = await self._store.take_block(f"api:{key_id}", count, self._interval, self._burst, ahead)
        block.remaining = taken.remaining
        if not taken.granted:
            block.blocked_until = self._clock() + taken.wait
            raise self._refusal(block)

    def _spend(self, block: _Block, count: int) -> bool:
        """Take permits of the block, if it has enough that have not expired."""
        if block.left < count or self._clock() >= block.until:
            return False
        block.left -= count
        return True

    async def _refill_and_spend(self, block: _Block, key_id: int, count: int) -> bool:
        """Take permits from the store and the first of them for this request, even if they expire meanwhile."""
        if self._clock() < block.blocked_until:
            return False
        await self._refill(block, key_id, count)
        if block.left < count:
            return False
        block.left -= count
        return True

    def _refusal(self, block: _Block) -> Problem:
        wait = max(block.blocked_until - self._clock(), self._interval)
        refused = too_many("too_many_requests", f"this key may send {1 / self._interval:.0f} requests per second", wait)
        refused.headers = {**refused.headers, **self._headers(block)}
        return refused

    def _block(self, key_id: int) -> _Block:
        if (block := self._blocks.get(key_id)) is not None:
            self._blocks.move_to_end(key_id)
            return block
        self._blocks[key_id] = block = _Block()
        if len(self._blocks) > KEYS_MAX:
            self._blocks.popitem(last=False)
        return block

    async def _refill(self, block: _Block, key_id: int, count: int) -> None:
        kept = self._spendable(block)
        wanted = max(self._block_size, count - kept)
        taken = await self._store.take_block(f"api:{key_id}", wanted, self._interval, self._burst)
        now = self._clock()
        block.left, block.remaining, block.until = kept + taken.granted, taken.remaining, now + BLOCK_SECONDS
        if not taken.granted:
            block.blocked_until = now + taken.wait

    def _headers(self, block: _Block) -> dict[str, str]:
        """Return the headers of draft-ietf-httpapi-ratelimit-headers: permits left, and seconds until all are back."""
        left = max(0, block.left) + block.remaining
        reset = ceil(max(0, self._burst - left) * self._interval)
        return {
            "RateLimit-Policy": self._policy,
            "RateLimit": f'"requests";r={left};t={reset}',
        }
