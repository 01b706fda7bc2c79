"""The inbox: callbacks of providers, stored before they are parsed."""

from itertools import count

from genlock.domain.inbox import Callback, InboxState
from genlock.ports import Role
from genlock.stores.batch import Item, Params
from genlock.stores.due_scan import DueScan
from genlock.stores.rows import Row, read_callback, read_new_callback
from genlock.stores.scan import newest_between
from genlock.stores.session import Session, Subject

#: how long a new callback is hidden from other instances, while the instance that received it applies it
CALLBACK_HOLD_SECONDS = 3.0
#: an unauthenticated callback about the same task as an earlier one in this time is kept without its body
REPEAT_SECONDS = 3600.0
_NO_SHARED_PARAMS: Params = {}
#: the states that an index knows, with their statements
_INDEXED = {InboxState.NEW: "new_callbacks", InboxState.ORPHAN: "orphan_callbacks"}


class Callbacks(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._store = session.batch("store_callback", self._run_store)
        self._settle = session.batch("settle_callback", self._run_settle)
        self._arrivals = count()
        self._due_callbacks = DueScan(session, "claim_callbacks")

    async def store_callback(self, provider: str, job_id: int | None, secret_hash: str, body: bytes) -> Callback:
        item = {"provider": provider, "job_id": job_id, "secret_hash": secret_hash, "body": body}
        row = await self._store(Item(next(self._arrivals), {"hold_seconds": CALLBACK_HOLD_SECONDS}, item, None))
        return read_new_callback(row, self.session.time, provider, body)

    async def _run_store(self, items: list[Item[None]]) -> list[Row]:
        for index, item in enumerate(items):
            item.params["ord"] = index
        rows = {row["ord"]: row for row in await self.session.rows("store_callback", items)}
        return [rows[item.params["ord"]] for item in items]

    async def is_callback_secret(self, job_id: int, provider: str, secret_hash: str) -> bool:
        return bool(
            await self.session.one("is_callback_secret", job_id=job_id, provider=provider, secret_hash=secret_hash)
        )

    async def count_unauthenticated_callbacks(self, seconds: float, limit: int) -> int:
        rows = await self.session.one("count_unauthenticated_callbacks", older_than=seconds, limit=limit)
        return int(rows[0]["number"])

    async def claim_callbacks(self, limit: int, hold_seconds: float) -> list[Callback]:
        rows = await self._due_callbacks.claim(limit, hold_seconds=hold_seconds)
        return [read_callback(row, self.session.time) for row in rows]

    async def settle_callback(
        self, callback_id: int, state: InboxState, task_id: str | None = None, note: str = ""
    ) -> None:
        item = {"callback_id": callback_id, "state": state.value, "task_id": task_id, "note": note}
        await self._settle(Item(callback_id, _NO_SHARED_PARAMS, item, None))

    async def _run_settle(self, items: list[Item[None]]) -> list[None]:
        await self.session.rows("settle_callback", items)
        return [None] * len(items)

    async def expire_callback(self, callback_id: int, older_than: float, note: str) -> bool:
        return bool(
            await self.session.one("expire_callback", callback_id=callback_id, older_than=older_than, note=note)
        )

    async def note_untrusted_callback(self, callback_id: int, provider: str, task_id: str) -> int | None:
        rows = await self.session.one(
            "note_untrusted_callback",
            callback_id=callback_id,
            provider=provider,
            task_id=task_id,
            repeat_seconds=REPEAT_SECONDS,
        )
        job_id: int | None = rows[0]["job_id"]
        return job_id

    async def match_orphans(self, limit: int) -> list[tuple[int, int]]:
        return [(row["callback_id"], row["job_id"]) for row in await self.session.one("match_orphans", limit=limit)]

    async def expire_orphans(self, older_than: float, role: Role) -> list[int]:
        rows = await self.session.one("expire_orphans", older_than=older_than, holder=role.holder, epoch=role.epoch)
        return [row["id"] for row in rows]

    async def callbacks(self, state: InboxState, limit: int) -> list[Callback]:
        if state in _INDEXED:
            rows = await self.session.one(_INDEXED[state], limit=limit)
        else:
            rows = await newest_between(
                self.session, "callbacks_between", "callback_id_range", limit=limit, state=state.value
            )
        return [read_callback(row, self.session.time) for row in rows]
