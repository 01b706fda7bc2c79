"""Store and claim updates."""

from typing import Any

from genlock.domain.update import Received, UpdateQueue
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, update


async def stored(store: SqlDatabase, *numbers: int, queue: str = "ann", **changes: Any) -> None:
    for number in numbers:
        assert await store.store_update(update(number, queue, **changes)) is Received.FRESH


async def claim(store: SqlDatabase, limit: int = 100, *, urgent: bool = False) -> list[UpdateQueue]:
    return await store.claim_update_queues(limit, ME, bots=["bot"], urgent=urgent)


def number(queue: UpdateQueue | None) -> int:
    assert queue is not None
    assert queue.update is not None
    return queue.update.update_id
