"""What is kept of a job's history beside its row."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from genlock.domain.audit import AuditLine
from genlock.domain.inbox import Callback
from genlock.domain.job import Job
from genlock.domain.job_event import EventRow, JobEvent
from genlock.domain.money import LedgerEntry
from genlock.stores.rows import Row, Time, not_null, read_audit_line, read_callback, read_ledger_entry
from genlock.stores.session import Subject

#: earlier holds of a job have the lease token of that time in their keys; the last tokens are looked up
TOKENS_BACK = 200


class JobEvents(Subject):
    async def add_job_events(self, instance: str, rows: Sequence[EventRow]) -> None:
        items = [{"correlation_id": row.correlation_id, "number": row.number, "events": row.events} for row in rows]
        await self.session.many("add_job_events", {"instance": instance}, items)

    async def job_events(self, correlation_id: str, limit: int) -> list[JobEvent]:
        rows = await self.session.one("job_events", correlation_id=correlation_id, limit=limit)
        found = [event for row in _once(rows) for event in _read_events(row, self.session.time)]
        return sorted(found, key=lambda event: event.at)[-limit:]

    async def job_ledger_entries(self, job: Job) -> list[LedgerEntry]:
        rows = await self.session.one("job_ledger_entries", keys=self.session.array(_ledger_keys(job)))
        return [read_ledger_entry(row, self.session.time) for row in rows]

    async def job_callbacks(self, job_id: int, ids: Sequence[int], length: int) -> list[Callback]:
        rows = await self.session.one("job_callbacks", job_id=job_id, ids=self.session.array(ids), length=length)
        return [read_callback(row, self.session.time) for row in rows]

    async def audit_about(self, subjects: Sequence[str], limit: int) -> list[AuditLine]:
        rows = await self.session.one("audit_about", subjects=self.session.array(subjects), limit=limit)
        return [read_audit_line(row, self.session.time) for row in rows]


def _once(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without those that were written again after a lost connection."""
    return list({(row["instance"], row["number"]): row for row in rows}.values())


def _read_events(row: Row, time: Time) -> Iterator[JobEvent]:
    written = not_null(time(row["at"]))
    for milliseconds, event, fields in json.loads(row["events"]):
        at = written - timedelta(milliseconds=milliseconds)
        yield JobEvent(at=at, event=event, instance=row["instance"], fields=fields)


def _ledger_keys(job: Job) -> list[str]:
    """Return every key that a ledger entry of the job can have: there is no index of entries by job."""
    kinds = (f"hold:{job.id}", f"settle:{job.id}", f"repay:settle:{job.id}")
    tokens = range(max(1, job.lease_token - TOKENS_BACK), job.lease_token + 1)
    earlier = [f"{kind}:{token}" for kind in kinds for token in tokens]
    return [*kinds, *earlier, f"refund:{job.id}", f"repay:refund:{job.id}"]
