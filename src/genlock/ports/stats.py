"""Counts, figures and invariants: how the installation is doing."""

from datetime import datetime
from typing import Protocol

from genlock.domain.figures import Figures
from genlock.domain.value import value


@value
class Violation:
    """A broken invariant of the data."""

    rule: str
    subject: str
    detail: str


class InvariantStore(Protocol):
    async def counts(self) -> dict[str, int]:
        """Open jobs by state, and how many jobs are due, need attention, or callbacks wait."""

    async def violations(self, *, settled: bool) -> list[Violation]:
        """Check the invariants; `settled` adds those that hold only while no work is in progress."""


class StatsStore(Protocol):
    async def read_clock(self) -> datetime:
        """Return the time by the clock that the store's writes use."""

    async def live_instances(self, silent_seconds: float) -> list[str]:
        """Return the instances with a heartbeat in the last `silent_seconds`, the longest running first."""

    async def stats(self) -> dict[str, float]:
        """Counts and ages of open work, and how the latest jobs ended."""

    async def figures(self, bot: str, seconds: float) -> Figures:
        """Orders, users and revenue of a bot in the last `seconds`."""

    async def money_violations(self) -> list[Violation]:
        """Check the invariants of wallets and ledger."""

    async def last_callback_id(self) -> int:
        """Return the id of the newest callback, 0 if there is none."""

    async def find_callbacks(self, after: int, mark: bytes) -> list[tuple[int | None, str]]:
        """Job and state of the callbacks after this id whose body contains a mark: the doctor's probes."""

    async def delete_callbacks(self, after: int, mark: bytes) -> int:
        """Delete them. Returns how many there were."""
