"""Updates and their lanes, in both databases alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from genlock.domain.suspicion import OFTEN
from genlock.domain.update import Lane, NewUpdate, Received, Update, UpdateState
from genlock.ports import Lease, Settled
from genlock.stores.batch import Batch, Item, Params
from genlock.stores.rows import Row, Time, read_update

#: the same button on the same message, pressed again within so many seconds, was pressed once
PRESS_SECONDS = 3.0


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
            "lane": update.lane,
            "kind": update.kind,
            "urgent": update.urgent,
            "press": update.press,
            "body": update.body,
        }
        key = (update.bot, update.update_id)
        return await self._store_update(Item(key, {"press_seconds": PRESS_SECONDS}, item))  # type: ignore[no-any-return]

    @cached_property
    def _store_update(self) -> "Batch[Item, Any]":
        return self._batch("store_updates", self._run_store)

    async def _run_store(self, items: list[Item]) -> list[Received]:
        rows = await self._rows("store_updates", items)
        kept = {(row["bot"], row["update_id"]): row["state"] for row in rows}
        words = {None: Received.KNOWN, "new": Received.FRESH, "repeated": Received.REPEATED}
        return [words[kept.get(item.key)] for item in items]

    async def claim_lanes(self, limit: int, lease: Lease, *, urgent: bool, suspects: bool = False) -> list[Lane]:
        which = {"urgent": urgent, "suspects": suspects, "often": OFTEN}
        rows = await self.one("claim_lanes", limit=limit, **which, owner=lease.owner, seconds=lease.seconds)
        return [self._lane(row) for row in rows]

    async def next_update(self, lane: Lane) -> Lane | None:
        rows = await self.one("next_update", lane_id=lane.id, token=lane.token)
        return self._lane(rows[0]) if rows else None

    async def update_behind(self, update: int) -> Update | None:
        rows = await self.one("update_behind", id=update)
        return read_update(rows[0], self.time) if rows else None

    async def settle_update(self, lane: Lane, state: UpdateState, note: str, lease: Lease) -> Settled | None:
        assert lane.update is not None
        item = {"lane_id": lane.id, "token": lane.token, "id": lane.update.id, "state": state.value, "note": note}
        return await self._settle_update(Item(lane.id, {"seconds": lease.seconds}, item))  # type: ignore[no-any-return]

    @cached_property
    def _settle_update(self) -> "Batch[Item, Any]":
        return self._batch("settle_updates", self._run_settle_update)

    async def _run_settle_update(self, items: list[Item]) -> list[Settled | None]:
        rows = await self._rows("settle_updates", items)
        done = {row["lane_id"]: Settled(waiting=row["waiting"], lane=self._lane(row)) for row in rows}
        return [done.get(item.key) for item in items]

    async def postpone_update(self, lane: Lane, after: float, note: str) -> bool:
        assert lane.update is not None
        return bool(
            await self.one(
                "postpone_update", lane_id=lane.id, token=lane.token, id=lane.update.id, after=after, note=note
            )
        )

    async def renew_lanes(self, lanes: Sequence[Lane], lease: Lease) -> set[int]:
        items = [{"lane_id": lane.id, "token": lane.token} for lane in lanes]
        return {row["id"] for row in await self.many("renew_lanes", {"seconds": lease.seconds}, items)}

    async def rescue_lanes(self, instance: str, but: Sequence[int] = (), *, died: bool = False) -> int:
        return len(await self.one("rescue_lanes", instance=instance, but=self.array(but), died=died, often=OFTEN))

    async def updates(self, state: UpdateState, limit: int) -> list[Update]:
        return [read_update(row, self.time) for row in await self.one("updates", state=state.value, limit=limit)]

    async def retry_update(self, update: int) -> bool:
        return bool(await self.one("retry_update", id=update))

    def _lane(self, row: Row) -> Lane:
        update = None if row["id"] is None else read_update(row, self.time)
        return Lane(id=row["lane_id"], token=row["lease_token"], update=update, deaths=row["deaths"])
