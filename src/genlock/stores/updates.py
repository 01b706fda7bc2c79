"""Incoming updates and their queues."""

from collections.abc import Sequence

from genlock.domain.poison import ISOLATED_FROM
from genlock.domain.update import NewUpdate, Received, Update, UpdateQueue, UpdateState
from genlock.ports import Lease, Settled
from genlock.stores.batch import Item
from genlock.stores.due_scan import DueScan
from genlock.stores.rows import Row, not_null, read_update, read_update_queue
from genlock.stores.scan import newest_between
from genlock.stores.session import Session, Subject

#: a second press of the same button within this time is ignored, unless the user did something else in between
REPEAT_SECONDS = 3.0
#: the states that an index knows, with their statements
_INDEXED = {UpdateState.NEW: "new_updates", UpdateState.DEAD: "dead_updates"}
_RECEIVED = {None: Received.KNOWN, "new": Received.FRESH, "repeated": Received.REPEATED}


class Updates(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: by what is claimed: bots, urgency, poison
        self._due_queues: dict[tuple[str | bool, ...], DueScan] = {}
        self._store_update = session.batch("store_updates", self._run_store_update)
        self._settle_update = session.batch("settle_updates", self._run_settle_update)

    async def store_update(self, update: NewUpdate) -> Received:
        received, _ = await self.receive_update(update, None)
        return received

    async def receive_update(self, update: NewUpdate, lease: Lease | None) -> tuple[Received, UpdateQueue | None]:
        shared = {
            "repeat_seconds": REPEAT_SECONDS,
            "owner": lease.owner if lease else None,
            "seconds": lease.seconds if lease else 0.0,
        }
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
        return await self._store_update(Item(key, shared, item, update))

    async def _run_store_update(self, items: list[Item[NewUpdate]]) -> list[tuple[Received, UpdateQueue | None]]:
        rows = await self.session.rows("store_updates", items)
        added = {(row["bot"], row["update_id"]): row for row in rows if row["update_id"] is not None}
        leased = self._leased(rows) if items[0].shared["owner"] else {}
        answers: list[tuple[Received, UpdateQueue | None]] = []
        for item in items:
            row = added.get(item.key)
            queue = None if row is None else leased.get(row["id"])
            first = None if queue is None or row is None else self._new_update(item.value, row)
            answers.append(
                (
                    _RECEIVED[row["state"] if row else None],
                    None if queue is None else UpdateQueue(id=queue["id"], token=queue["lease_token"], update=first),
                )
            )
        return answers

    @staticmethod
    def _leased(rows: Sequence[Row]) -> dict[int, Row]:
        """Return the queues that the statement has leased, by the id of their first update."""
        news: dict[tuple[str, str], list[int]] = {}
        for row in rows:
            if row["state"] == UpdateState.NEW:
                news.setdefault((row["bot"], row["name"]), []).append(row["id"])
        queues = [row for row in rows if row["update_id"] is None]
        ids = {row["id"]: news[row["bot"], row["name"]] for row in queues}
        return {min(ids[row["id"]]): row for row in queues if row["waiting"] == len(ids[row["id"]])}

    def _new_update(self, update: NewUpdate, row: Row) -> Update:
        return Update(
            id=row["id"],
            bot=update.bot,
            update_id=update.update_id,
            kind=update.kind,
            body=update.body,
            state=UpdateState.NEW,
            note="",
            received_at=not_null(self.session.time(row["received_at"])),
            attempts=1,
        )

    async def claim_update_queues(
        self, limit: int, lease: Lease, *, bots: Sequence[str], urgent: bool, poison: bool = False
    ) -> list[UpdateQueue]:
        scan = self._due_queues.setdefault((*bots, urgent, poison), DueScan(self.session, "claim_update_queues"))
        rows = await scan.claim(
            limit,
            bots=self.session.array(bots),
            urgent=urgent,
            poison=poison,
            isolated_from=ISOLATED_FROM,
            owner=lease.owner,
            seconds=lease.seconds,
        )
        return [read_update_queue(row, self.session.time) for row in rows]

    async def next_update(self, queue: UpdateQueue) -> UpdateQueue | None:
        rows = await self.session.one("next_update", queue_id=queue.id, token=queue.token)
        return read_update_queue(rows[0], self.session.time) if rows else None

    async def is_update_open(self, update: int) -> bool:
        return bool(await self.session.one("is_update_open", id=update))

    async def following_update(self, update: int) -> Update | None:
        rows = await self.session.one("following_update", id=update)
        return read_update(rows[0], self.session.time) if rows else None

    async def settle_update(self, queue: UpdateQueue, state: UpdateState, note: str, lease: Lease) -> Settled | None:
        assert queue.update is not None
        item = {"queue_id": queue.id, "token": queue.token, "id": queue.update.id, "state": state.value, "note": note}
        return await self._settle_update(Item(queue.id, {"seconds": lease.seconds}, item, None))

    async def _run_settle_update(self, items: list[Item[None]]) -> list[Settled | None]:
        time = self.session.time
        done = {
            row["queue_id"]: Settled(waiting=row["waiting"], queue=read_update_queue(row, time))
            for row in await self.session.rows("settle_updates", items)
        }
        return [done.get(item.key) for item in items]

    async def postpone_update(self, queue: UpdateQueue, after: float, note: str) -> bool:
        assert queue.update is not None
        rows = await self.session.one(
            "postpone_update", queue_id=queue.id, token=queue.token, id=queue.update.id, after=after, note=note
        )
        return bool(rows)

    async def renew_update_queues(self, queues: Sequence[UpdateQueue], lease: Lease) -> set[int]:
        items = [{"queue_id": queue.id, "token": queue.token} for queue in queues]
        rows = await self.session.many("renew_update_queues", {"seconds": lease.seconds}, items)
        return {row["id"] for row in rows}

    async def release_update_queues(self, instance: str, keep: Sequence[int] = (), *, crashed: bool = False) -> int:
        rows = await self.session.one(
            "release_update_queues",
            instance=instance,
            keep=self.session.array(keep),
            crashed=crashed,
            isolated_from=ISOLATED_FROM,
        )
        return len(rows)

    async def updates(self, state: UpdateState, limit: int) -> list[Update]:
        if state in _INDEXED:
            rows = await self.session.one(_INDEXED[state], limit=limit)
        else:
            rows = await newest_between(
                self.session, "updates_between", "update_row_range", limit=limit, state=state.value
            )
        return [read_update(row, self.session.time) for row in rows]

    async def retry_update(self, update: int) -> bool:
        return bool(await self.session.one("retry_update", id=update))
