"""Unauthenticated callbacks. They are stored, too, because they may be genuine, but only up to a limit."""

from genlock.domain.inbox import Callback
from genlock.domain.job import hash_secret
from genlock.engine.collect import read_token, store_callback
from genlock.engine.context import EngineContext

#: for all instances together, within the time for which an orphan waits
UNAUTHENTICATED_MAX = 1000
#: how long further ones are refused without counting again
FULL_SECONDS = 1.0


class TooManyUnauthenticated(Exception):
    """Too many stored callbacks carry neither a job's secret nor a valid signature."""


class UnauthenticatedCallbacks:
    """Stores callbacks without a valid signature, within the limit if they carry no job's secret either.

    One instance keeps the limit exactly. Several may exceed it by the callbacks that the others are storing at the
    moment when one of them counts: an exact limit would need a lock that all instances wait for.
    """

    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        #: callbacks that this instance is storing, and has stored
        self._storing = self._stored = 0
        #: on the event loop's clock
        self._full_until = float("-inf")

    async def store(self, provider: str, token: str | None, body: bytes) -> Callback:
        """Store a callback. Raises TooManyUnauthenticated."""
        if await self._has_secret(provider, token):
            return await store_callback(self._ctx, provider, token, body)
        await self._check_limit()
        self._storing += 1
        try:
            return await store_callback(self._ctx, provider, token, body)
        finally:
            self._storing -= 1
            self._stored += 1

    async def _has_secret(self, provider: str, token: str | None) -> bool:
        job_id, secret = read_token(token)
        return job_id is not None and await self._ctx.store.is_callback_secret(job_id, provider, hash_secret(secret))

    async def _check_limit(self) -> None:
        ctx, stored_before = self._ctx, self._stored
        if ctx.loop.time() >= self._full_until:
            counted = await ctx.store.count_unauthenticated_callbacks(
                ctx.rules.orphan_expire_seconds, UNAUTHENTICATED_MAX
            )
            # The count may lack those that were stored after it began.
            if counted + self._stored - stored_before + self._storing < UNAUTHENTICATED_MAX:
                return
            if counted >= UNAUTHENTICATED_MAX:
                self._full_until = ctx.loop.time() + FULL_SECONDS
        raise TooManyUnauthenticated
