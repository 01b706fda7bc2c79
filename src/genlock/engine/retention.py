"""Retention: the leader deletes rows past their retention period, a page at a time."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.ports import RetentionStore

DAY = 86_400.0
#: How long rows are kept. A channel repeats updates for a day, a provider its callbacks for an hour. An operator may
#: look at callbacks two weeks later, but anyone can send any number of unauthenticated ones. A provider keeps an
#: upload for a few days; one that an order uses can be uploaded again from the chat while its row is there.
KEEP_SECONDS: Mapping[str, float] = {
    "updates": 7 * DAY,
    "unauthenticated_callbacks": DAY,
    "callbacks": 14 * DAY,
    "uploads": 14 * DAY,
    "ordered_uploads": 365 * DAY,
    "upload_copies": DAY,
    "audit": 730 * DAY,
    "bulk_failures": 90 * DAY,
    "job_events": 14 * DAY,
    "webhook_deliveries": 30 * DAY,
    "anomalies": 90 * DAY,
    "promo_uses": 365 * DAY,
    "free_runs": 30 * DAY,
    "drafts": 180 * DAY,
    "update_queues": 0.0,
}
#: tables without an index by age, and files that drafts use: each round looks at the next rows only
ROLLING = ("uploads", "free_runs", "drafts", "update_queues")
PAGE = 500
PAUSE_SECONDS = 0.1
PERIOD_SECONDS = 60.0
#: the entry that says what the last round deleted, by table
LAST_PRUNE = "retention:last"


@dataclass(frozen=True)
class Retention:
    ctx: EngineContext
    leader: Leader
    store: RetentionStore
    #: in seconds by table; a table that is missing is kept forever
    keep: Mapping[str, float] = field(default_factory=lambda: KEEP_SECONDS)

    async def prune(self) -> None:
        """Delete every row that is too old, in small steps that other statements can pass; record what was deleted."""
        deleted: Counter[str] = Counter()
        for table, seconds in self.keep.items():
            prune = self.store.prune_next if table in ROLLING else self.store.prune
            while (role := self.leader.role) and (rows := await prune(table, seconds, PAGE, role)):
                deleted[table] += rows
                self.ctx.observer.event(Event.ROWS_PRUNED, what=table, rows=rows)
                await asyncio.sleep(PAUSE_SECONDS)
        if self.leader.role:
            await self.ctx.store.kv_put(LAST_PRUNE, json.dumps(deleted))


def keep_seconds(days: Mapping[str, int]) -> dict[str, float]:
    """Return how long rows are kept, with an operator's own numbers of days; 0 days: forever."""
    own = {table: number * DAY for table, number in days.items()}
    return {table: seconds for table, seconds in {**KEEP_SECONDS, **own}.items() if table not in own or own[table]}
