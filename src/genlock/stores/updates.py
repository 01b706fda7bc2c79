"""Updates and their lanes, in both databases alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from genlock.domain.poison import ISOLATED_FROM
from genlock.domain.update import NewUpdate, Received, Update, UpdateQueue, UpdateState
from genlock.ports import Lease, Settled
from genlock.stores.batch import Batch, Item, Params
from genlock.stores.rows import Row, Time, read_update

#: the same button on the same message, pressed again within so many seconds, was pressed once
REPEAT_SECONDS = 3.0


class UpdateRows(ABC):
    """The UpdateStore port over named statements."""

    time: Time

    @abstractmethod
    async def one(self, name: str, /, **params: Any) -> list[Row]: ...

    @abstractmethod
    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]: ...

    @abstractmethod
    def array(self, values: Sequence[Any]) -> Any: ...

    @abstractmethod
    def _batch(self, name: str, run: Any) -> "Batch[Item, Any]": ...

    @abstractmethod
    async def _rows(self, name: str, items: list[Item]) -> list[Row]: ...

    async def store_update(self, update: NewUpdate) -> Received:
        item = {
            "bot": update.bot,
            "update_id": update.update_id,
            "ordering_key": update.ordering_key,
            "kind": update.kind,
            "urgent": update.urgent,
            "dedup_key": update.dedup_key,
            "body": update.body,
        }
        key = (update.bot, update.update_id)
        return await self._store_update(Item(key, {"repeat_seconds": REPEAT_SECONDS}, item))  # type: ignore[no-any-return]

    @cached_property
    def _store_update(self) -> "Batch[Item, Any]":
        return self._batch("store_updates", self._run_store)

    async def _run_store(self, items: list[Item]) -> list[Received]:
        rows = await self._rows("store_updates", items)
        kept = {(row["bot"], row["update_id"]): row["state"] for row in rows}
        words = {None: Received.KNOWN, "new": Received.FRESH, "repeated": Received.REPEATED}
        return [words[kept.get(item.key)] for item in items]

    async def claim_update_queues(
        self, limit: int, lease: Lease, *, bots: Sequence[str], urgent: bool, poison: bool = False
    ) -> list[UpdateQueue]:
        which = {"bots": self.array(bots), "urgent": urgent, "poison": poison, "isolated_from": ISOLATED_FROM}
        rows = await self.one("claim_update_queues", limit=limit, **which, owner=lease.owner, seconds=lease.seconds)
        return [self._lane(row) for row in rows]

    async def next_update(self, lane: UpdateQueue) -> UpdateQueue | None:
        rows = await self.one("next_update", queue_id=lane.id, token=lane.token)
        return self._lane(rows[0]) if rows else None

    async def update_behind(self, update: int) -> Update | None:
        rows = await self.one("update_behind", id=update)
        return read_update(rows[0], self.time) if rows else None

    async def settle_update(self, lane: UpdateQueue, state: UpdateState, note: str, lease: Lease) -> Settled | None:
        assert lane.update is not None
        item = {"queue_id": lane.id, "token": lane.token, "id": lane.update.id, "state": state.value, "note": note}
        return await self._settle_update(Item(lane.id, {"seconds": lease.seconds}, item))  # type: ignore[no-any-return]

    @cached_property
    def _settle_update(self) -> "Batch[Item, Any]":
        return self._batch("settle_updates", self._run_settle_update)

    async def _run_settle_update(self, items: list[Item]) -> list[Settled | None]:
        rows = await self._rows("settle_updates", items)
        done = {row["queue_id"]: Settled(waiting=row["waiting"], lane=self._lane(row)) for row in rows}
        return [done.get(item.key) for item in items]

    async def postpone_update(self, lane: UpdateQueue, after: float, note: str) -> bool:
        assert lane.update is not None
        return bool(
            await self.one(
                "postpone_update", queue_id=lane.id, token=lane.token, id=lane.update.id, after=after, note=note
            )
        )

    async def renew_update_queues(self, queues: Sequence[UpdateQueue], lease: Lease) -> set[int]:
        items = [{"queue_id": lane.id, "token": lane.token} for lane in queues]
        return {row["id"] for row in await self.many("renew_update_queues", {"seconds": lease.seconds}, items)}

    async def release_update_queues(self, instance: str, but: Sequence[int] = (), *, died: bool = False) -> int:
        return len(
            await self.one(
                "release_update_queues", instance=instance, but=self.array(but), died=died, isolated_from=ISOLATED_FROM
            )
        )

    async def updates(self, state: UpdateState, limit: int) -> list[Update]:
        return [read_update(row, self.time) for row in await self.one("updates", state=state.value, limit=limit)]

    async def retry_update(self, update: int) -> bool:
        return bool(await self.one("retry_update", id=update))

    def _lane(self, row: Row) -> UpdateQueue:
        update = None if row["id"] is None else read_update(row, self.time)
        return UpdateQueue(id=row["queue_id"], token=row["lease_token"], update=update, crash_count=row["crash_count"])
