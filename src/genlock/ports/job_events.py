"""What is kept of a job's history beside its row: events, ledger entries, callbacks and audit lines."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.audit import AuditLine
from genlock.domain.inbox import Callback
from genlock.domain.job import Job
from genlock.domain.job_event import EventRow, JobEvent
from genlock.domain.money import LedgerEntry


class JobEventWriter(Protocol):
    """The row of a job, the ledger and the inbox are authoritative; events only show how they came to be."""

    async def add_job_events(self, instance: str, rows: Sequence[EventRow]) -> None:
        """Add rows of events in one statement. Adding a row again does no harm: it is read once."""


class JobEventStore(JobEventWriter, Protocol):
    async def job_events(self, correlation_id: str, limit: int) -> list[JobEvent]:
        """Return the newest events of a correlation id, oldest first."""

    async def job_ledger_entries(self, job: Job) -> list[LedgerEntry]:
        """Return the ledger entries of a job, oldest first."""

    async def job_callbacks(self, job_id: int, ids: Sequence[int], length: int) -> list[Callback]:
        """Return those of these callbacks that belong to a job, with up to `length` bytes of their bodies."""

    async def audit_about(self, subjects: Sequence[str], limit: int) -> list[AuditLine]:
        """Return the newest lines of the audit log about these subjects, newest first."""
