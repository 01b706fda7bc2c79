"""Orders as a CSV file, streamed page by page."""

import asyncio
import codecs
import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from genlock.dashboard.job_rows import JobRow, make_rows
from genlock.domain.job import Job
from genlock.domain.job_search import JobFilter
from genlock.domain.money import THOUSANDTHS
from genlock.ports import JobSearchStore

PAGE = 500
SEARCH_SECONDS = 0.1
#: after each page, so that a long export leaves the database to orders for most of the time
PAUSE_SECONDS = 0.1
#: what spreadsheets take for a formula when a cell begins with it
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
COLUMNS = (
    "order", "created_at", "state", "delivery", "hold", "model", "provider", "task", "account", "user", "price_credits",
    "cost_provider_credits", "submitted_at", "ended_at", "delivered_at", "seconds", "error", "needs_attention",
    "refunded",
)  # fmt: skip
PROMPT_COLUMN = "prompt"


async def export_jobs(
    store: JobSearchStore, selection: JobFilter | Sequence[int], titles: Mapping[str, str], *, see_prompts: bool
) -> AsyncIterator[bytes]:
    """Write the jobs that match filters, or that are named, newest first. Spreadsheets need the byte order mark."""
    yield codecs.BOM_UTF8 + line([*COLUMNS, *([PROMPT_COLUMN] if see_prompts else [])])
    async for jobs in _pages(store, selection):
        rows = await make_rows(store, jobs, titles, see_prompts=see_prompts)
        yield b"".join(line(cells(row, see_prompts=see_prompts)) for row in rows)


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


def cells(row: JobRow, *, see_prompts: bool) -> list[str]:
    job = row.job
    return [
        str(job.id),
        _time(job.created_at),
        job.state,
        job.delivery,
        job.hold_state,
        safe(job.model),
        safe(job.provider),
        safe(job.task_id or ""),
        str(job.account_id),
        safe(row.user),
        _amount(job.price),
        "" if job.cost is None else _amount(job.cost),
        _time(job.submitted_at),
        _time(job.ended_at),
        _time(job.delivered_at),
        f"{row.seconds:.3f}" if job.ended_at else "",
        safe(job.error_code),
        job.attention_code or "",
        "yes" if row.refunded else "",
        *([safe(row.prompt)] if see_prompts else []),
    ]


def safe(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: one that looks like it gets an apostrophe in front."""
    text = text.replace("\0", "")
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


def line(row: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(row)
    return text.getvalue().encode(errors="backslashreplace")


def _amount(thousandths: int) -> str:
    return f"{Decimal(thousandths) / THOUSANDTHS:f}"


def _time(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
