"""The check of the invariants: in steps of a bounded number of rows, so that it can run beside the work."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from genlock.ports import AgedJob, Violation
from genlock.stores.session import Subject

#: accounts with at least this many ledger entries since their last checkpoint get a new one
CHECKPOINT_ENTRIES_MIN = 100


@dataclass(frozen=True)
class _Steps:
    """How the rows of a check are divided: the table, how many rows one statement reads, a key before the first."""

    table: str
    size: int
    before_first: int | str = 0


_JOBS, _ACCOUNTS = _Steps("jobs", 20_000), _Steps("accounts", 1000)
_STEPS = {
    "check_wallets": _ACCOUNTS,
    "check_ledger_entries": _Steps("ledger", 20_000, ""),
    "check_hold_states": _JOBS,
    "check_ends": _JOBS,
    "check_due": _JOBS,
    "check_payments": _Steps("payments", 20_000, ""),
    "check_debts": _ACCOUNTS,
    "check_open_api_jobs": _ACCOUNTS,
    "check_gift_runs": _ACCOUNTS,
    "check_update_queues": _Steps("update_queues", 20_000),
}


class Invariants(Subject):
    async def violations(
        self, *, settled: bool, progress: Callable[[str, int], None] | None = None, pause_seconds: float = 0.0
    ) -> list[Violation]:
        prefixes = ("check_", "settled_") if settled else ("check_",)
        found: list[Violation] = []
        for name in [name for name in self.session.queries if name.startswith(prefixes)]:
            found += await self._check_all(name, progress or (lambda _rule, _rows: None), pause_seconds)
        return found

    async def _check_all(
        self, name: str, progress: Callable[[str, int], None], pause_seconds: float
    ) -> list[Violation]:
        """Check one rule for all rows."""
        if name not in _STEPS:
            return await self._check(name)
        steps, found, rows = _STEPS[name], [], 0
        after = steps.before_first
        while (step := await self._step(steps, after))[0] is not None:
            until, count = step
            found += await self._check(name, after, until)
            after, rows = until, rows + count
            progress(self.session.queries[name].description, rows)
            await asyncio.sleep(pause_seconds)
        return found

    async def _step(self, steps: _Steps, after: int | str, size: int | None = None) -> tuple[Any, int]:
        """Return the key of the last of the next rows, None after the last row, and how many rows these are."""
        [row] = await self.session.one(f"step_{steps.table}", after=after, size=size or steps.size)
        return row["until"], row["rows"]

    async def _check(
        self, name: str, after: int | str = 0, until: int | str = 0, *, whole: bool = True
    ) -> list[Violation]:
        query = self.session.queries[name]
        rows = await self.session.one(name, after=after, until=until, whole=whole)
        return [Violation(rule=query.description, subject=row["subject"], detail=row["detail"]) for row in rows]

    async def next_job_id(self, after: int, count: int) -> int | None:
        until, _ = await self._step(_JOBS, after, count)
        return None if until is None else int(until)

    async def next_account_id(self, after: int, count: int) -> int | None:
        until, _ = await self._step(_ACCOUNTS, after, count)
        return None if until is None else int(until)

    async def job_violations(self, after: int, until: int) -> list[Violation]:
        return [
            found for name in ("check_hold_states", "check_ends") for found in await self._check(name, after, until)
        ]

    async def wallet_violations(self, after: int, until: int) -> list[Violation]:
        wallets = await self._check("check_wallets", after, until, whole=False)
        return wallets + await self._check("check_debts", after, until)

    async def aged_jobs(self, after: int, older_than: float, limit: int) -> list[AgedJob]:
        rows = await self.session.one("aged_jobs", after=after, older_than=older_than, limit=limit)
        return [AgedJob(job_id=row["id"], account_id=row["account_id"]) for row in rows]

    async def save_ledger_checkpoints(self, after: int, until: int) -> None:
        await self.session.one("save_ledger_checkpoints", after=after, until=until, entries_min=CHECKPOINT_ENTRIES_MIN)
