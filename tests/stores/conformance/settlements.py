"""The ledger entries of jobs."""

from genlock.domain.job import Delivery, Job
from genlock.domain.money import EntryKind
from genlock.ports import Store

UNDELIVERED = (Delivery.UNDELIVERABLE, Delivery.UNKNOWN)


async def settlements(store: Store, account_id: int) -> list[EntryKind]:
    """How the holds of an account's jobs were settled, oldest first."""
    ledger_entries = await store.ledger_entries(account_id, 50)
    return [
        ledger_entry.kind
        for ledger_entry in reversed(ledger_entries)
        if ledger_entry.kind in (EntryKind.CAPTURE, EntryKind.RELEASE)
    ]


async def kinds(store: Store, job: Job) -> list[EntryKind]:
    """The kinds of a job's ledger entries."""
    return sorted(
        ledger_entry.kind
        for ledger_entry in await store.ledger_entries(job.account_id, 10)
        if ledger_entry.job_id == job.id
    )
