"""Counts, figures and invariants: how the installation is doing."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from genlock.domain.value import value


@value
class Violation:
    """A broken invariant of the data."""

    rule: str
    subject: str
    detail: str


@value
class AgedJob:
    job_id: int
    account_id: int


class InvariantStore(Protocol):
    async def counts(self) -> dict[str, int]:
        """Open jobs by state, and how many jobs are due, need attention, or callbacks wait."""

    async def violations(
        self, *, settled: bool, progress: Callable[[str, int], None] | None = None, pause_seconds: float = 0.0
    ) -> list[Violation]:
        """Check the invariants for all rows; `settled` adds those that hold only while no work is in progress.

        It runs in steps; after each, `progress` is called with the rule and the number of rows checked, and then it
        pauses.
        """

    async def next_job_id(self, after: int, count: int) -> int | None:
        """Return the id of the last of the `count` jobs after an id; None if there are none."""

    async def next_account_id(self, after: int, count: int) -> int | None:
        """Return the id of the last of the `count` accounts after an id; None if there are none."""

    async def job_violations(self, after: int, until: int) -> list[Violation]:
        """Check the money of the jobs after one id up to another."""

    async def wallet_violations(self, after: int, until: int) -> list[Violation]:
        """Compare the balances of the accounts after one id up to another with the ledger."""

    async def aged_jobs(self, after: int, older_than: float, limit: int) -> list[AgedJob]:
        """Return, of the next `limit` jobs after an id, those ordered more than `older_than` seconds ago."""

    async def save_ledger_checkpoints(self, after: int, until: int) -> None:
        """Store the ledger sums of accounts with many entries, so that their next check reads only newer entries.

        Only for accounts whose balances were just found correct.
        """


class StatsStore(Protocol):
    async def read_clock(self) -> datetime:
        """Return the time by the clock that the store's writes use."""

    async def live_instances(self, silent_seconds: float) -> list[str]:
        """Return the instances with a heartbeat in the last `silent_seconds`, the longest running first."""

    async def stats(self) -> dict[str, float]:
        """Counts and ages of open work, and how the latest jobs ended."""

    async def last_callback_id(self) -> int:
        """Return the id of the newest callback, 0 if there is none."""

    async def find_callbacks(self, after: int, mark: bytes) -> list[tuple[int | None, str]]:
        """Job and state of the callbacks after this id whose body contains a mark: the doctor's probes."""

    async def delete_callbacks(self, after: int, mark: bytes) -> int:
        """Delete them. Returns how many there were."""
