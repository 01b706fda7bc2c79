"""Orders as rows of a CSV file, read page by page."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from genlock.dashboard.csv_export import Cell, credits_cell
from genlock.dashboard.job_money import CreditOf
from genlock.dashboard.job_rows import JobRow, make_rows
from genlock.domain.job import Job
from genlock.domain.job_search import JobFilter
from genlock.ports import JobSearchStore

PAGE = 500
SEARCH_SECONDS = 0.1
#: after each page, so that a long export leaves the database to orders for most of the time
PAUSE_SECONDS = 0.1
COLUMNS = (
    "order", "created_at", "state", "delivery", "hold", "model", "provider", "task", "account", "user", "price_credits",
    "cost_provider_credits", "submitted_at", "ended_at", "delivered_at", "seconds", "error", "needs_attention",
    "refunded", "cost_usd",
)  # fmt: skip


def header(*, see_prompts: bool) -> Sequence[str]:
    return (*COLUMNS, "prompt") if see_prompts else COLUMNS


async def export_jobs(
    store: JobSearchStore,
    selection: JobFilter | Sequence[int],
    titles: Mapping[str, str],
    credit_of: CreditOf,
    *,
    see_prompts: bool,
) -> AsyncIterator[list[Sequence[Cell]]]:
    """Yield the jobs that match filters, or that are named, newest first."""
    async for jobs in _pages(store, selection):
        rows = await make_rows(store, jobs, titles, credit_of, see_prompts=see_prompts)
        yield [_cells(row, see_prompts=see_prompts) for row in rows]


async def _pages(store: JobSearchStore, selection: JobFilter | Sequence[int]) -> AsyncIterator[Sequence[Job]]:
    if not isinstance(selection, JobFilter):
        yield await store.jobs_by_id(selection)
        return
    before: int | None = None
    while True:
        page = await store.search_jobs(selection, before=before, limit=PAGE, seconds=SEARCH_SECONDS)
        yield page.jobs
        before = page.before
        if before is None:
            return
        await asyncio.sleep(PAUSE_SECONDS)


def _cells(row: JobRow, *, see_prompts: bool) -> Sequence[Cell]:
    job = row.job
    return [
        job.id,
        job.created_at,
        job.state.value,
        job.delivery.value,
        job.hold_state.value,
        job.model,
        job.provider,
        job.task_id,
        job.account_id,
        row.user,
        credits_cell(job.price),
        None if job.cost is None else credits_cell(job.cost),
        job.submitted_at,
        job.ended_at,
        job.delivered_at,
        round(row.seconds, 3) if job.ended_at else None,
        job.error_code,
        job.attention_code,
        "yes" if row.refunded else "",
        row.cost_usd,
        *([row.prompt] if see_prompts else []),
    ]
