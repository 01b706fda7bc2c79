"""A clock for tests."""

from datetime import UTC, datetime, timedelta
from time import monotonic


class ManualClock:
    """A clock that moves only when a test advances it, unless it is started with `run`."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._since: float | None = None

    def now(self) -> datetime:
        running = 0.0 if self._since is None else monotonic() - self._since
        return self._now + timedelta(seconds=running)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def run(self) -> None:
        """Let the clock run in real time, for tests of periodic tasks."""
        self._since = monotonic()
