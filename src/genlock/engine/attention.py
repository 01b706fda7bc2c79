"""What waits for an operator: the counts by reason, read at most every few seconds, and the actions on it."""

import asyncio
from collections.abc import Mapping

from genlock.domain.anomaly import INFORMS_ONLY
from genlock.domain.errors import ActionNotAllowed
from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.ports import AttentionStore, Database

CACHE_SECONDS = 5.0
#: counting stops at this number in every group
COUNT_MAX = 1000
#: a refund that the payment service has not confirmed for longer needs an operator
REFUND_OVERDUE_SECONDS = 600.0
COST_ABOVE_PRICE = "cost_above_price:"


class AttentionCounts:
    """The counts of every group, shared by all pages of this instance."""

    def __init__(self, ctx: EngineContext, store: AttentionStore) -> None:
        self._ctx = ctx
        self._store = store
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._counts: Mapping[str, int] = {}

    async def read(self, *, reload: bool = False) -> Mapping[str, int]:
        """Return the counts, a few seconds old unless `reload`."""
        async with self._lock:
            if reload or self._ctx.loop.time() - self._read_at >= CACHE_SECONDS:
                self._counts = await self._store.attention_counts(COUNT_MAX, REFUND_OVERDUE_SECONDS)
                self._read_at = self._ctx.loop.time()
            return self._counts

    async def total(self) -> int:
        """Return how many entries wait for an operator; those that only inform do not."""
        return sum(count for name, count in (await self.read()).items() if name not in INFORMS_ONLY)


async def retry_update(store: Database, ctx: EngineContext, update: int, by: str) -> None:
    """Have a dead update handled again. Raises ActionNotAllowed."""
    _done(await store.retry_update(update), "update", update)
    ctx.observer.event(Event.OPERATOR_ACTION, action="retry_update", update=update, by=by)


async def discard_update(store: Database, ctx: EngineContext, update: int, by: str) -> None:
    """Give up a dead update. Raises ActionNotAllowed."""
    _done(await store.discard_update(update, f"discarded by {by}"), "update", update)
    ctx.observer.event(Event.OPERATOR_ACTION, action="discard_update", update=update, by=by)


async def retry_callback(store: Database, ctx: EngineContext, callback: int, by: str) -> None:
    """Have a callback that was kept read again. Raises ActionNotAllowed."""
    _done(await store.retry_callback(callback), "callback", callback)
    ctx.observer.event(Event.OPERATOR_ACTION, action="retry_callback", callback=callback, by=by)


async def close_callback(store: Database, ctx: EngineContext, callback: int, by: str) -> None:
    """Take a callback that was kept off the list. Raises ActionNotAllowed."""
    _done(await store.close_callback(callback, f"closed by {by}"), "callback", callback)
    ctx.observer.event(Event.OPERATOR_ACTION, action="close_callback", callback=callback, by=by)


async def handle_anomaly(store: Database, ctx: EngineContext, anomaly: int, by: str) -> None:
    """Take an anomaly off the list. Raises ActionNotAllowed."""
    _done(await store.handle_anomaly(anomaly), "anomaly", anomaly)
    ctx.observer.event(Event.OPERATOR_ACTION, action="handle_anomaly", anomaly=anomaly, by=by)


async def accept_cost(store: Database, ctx: EngineContext, model: str, job_id: int, by: str) -> None:
    """Take a model that costs more than its price off the list, until it does so again. Raises ActionNotAllowed.

    `job_id` is the newest such job that the operator saw: if there is a newer one, the model stays on the list.
    """
    key = f"{COST_ABOVE_PRICE}{model}"
    entry = await store.kv_get(key)
    _done(entry is not None and entry.value == str(job_id), "model", model)
    await store.kv_delete(key)
    ctx.observer.event(Event.OPERATOR_ACTION, action="accept_cost", model=model, by=by)


def _done(done: bool, what: str, which: object) -> None:  # noqa: FBT001 - the answer of a store
    if not done:
        raise ActionNotAllowed(f"{what} {which} does not wait for an operator any more")
