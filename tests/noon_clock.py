"""A clock for tests of what counts by the day."""

from datetime import UTC, datetime


class NoonClock:
    """The machine's clock, moved so that a test begins at noon: no midnight passes while it runs."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self._ahead = now.replace(hour=12, minute=0, second=0, microsecond=0) - now

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead
