"""What waits for an operator, by reason."""

from collections.abc import Mapping

from genlock.domain.anomaly import Anomaly, AnomalyKind
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import AttentionCode, Job
from genlock.domain.update import Update
from genlock.ports import KvEntry
from genlock.stores.rows import read_anomaly, read_callback, read_job, read_kv_entry, read_update
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject


class Attention(Subject):
    async def attention_counts(self, limit: int, refund_seconds: float) -> Mapping[str, int]:
        rows = await self.session.one("attention_counts", limit=limit, refund_seconds=refund_seconds)
        return {row["name"]: int(row["number"]) for row in rows}

    async def jobs_with_attention(self, code: AttentionCode, limit: int, before: int | None = None) -> list[Job]:
        rows = await self.session.one("jobs_with_attention", code=code.value, before=_upper(before), limit=limit)
        return [read_job(row, self.session.time) for row in rows]

    async def clear_attention(self, job_id: int, token: int) -> bool:
        return bool(await self.session.one("clear_attention", job_id=job_id, token=token))

    async def kept_callbacks(
        self, state: InboxState, limit: int, length: int, before: int | None = None
    ) -> list[Callback]:
        rows = await self.session.one(
            "kept_callbacks", state=state.value, before=_upper(before), limit=limit, length=length
        )
        return [read_callback(row, self.session.time) for row in rows]

    async def retry_callback(self, callback_id: int) -> bool:
        return bool(await self.session.one("retry_callback", callback_id=callback_id))

    async def close_callback(self, callback_id: int, note: str) -> bool:
        return bool(await self.session.one("close_callback", callback_id=callback_id, note=note))

    async def dead_updates(self, limit: int, before: int | None = None) -> list[Update]:
        rows = await self.session.one("dead_updates_before", before=_upper(before), limit=limit)
        return [read_update(row, self.session.time) for row in rows]

    async def discard_update(self, update: int, note: str) -> bool:
        return bool(await self.session.one("discard_update", id=update, note=note))

    async def anomalies(self, kind: AnomalyKind, limit: int, before: int | None = None) -> list[Anomaly]:
        rows = await self.session.one("anomalies", kind=kind.value, before=_upper(before), limit=limit)
        return [read_anomaly(row, self.session.time) for row in rows]

    async def job_anomalies(self, job_id: int) -> list[Anomaly]:
        rows = await self.session.one("job_anomalies", job_id=job_id)
        return [read_anomaly(row, self.session.time) for row in rows]

    async def handle_anomaly(self, anomaly_id: int) -> bool:
        return bool(await self.session.one("handle_anomaly", anomaly_id=anomaly_id))

    async def kv_list_of_all_bots(self, beginning: str, limit: int) -> list[KvEntry]:
        rows = await self.session.one("kv_list_of_all_bots", beginning=beginning, limit=limit)
        return [read_kv_entry(row, self.session.time) for row in rows]


def _upper(before: int | None) -> int:
    return NEWEST if before is None else min(before, NEWEST)
