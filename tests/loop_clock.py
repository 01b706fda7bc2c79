"""The event loop's own clock, by which the service measures its time limits and how long it may trust a lease."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class LoopClock:
    """Moves the clock of the running loop, never backwards. It goes on in real time afterwards."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead = 0.0
        self._stopped_at: float | None = None
        loop.time = self.now  # type: ignore[method-assign]

    def now(self) -> float:
        return self._real() + self._ahead if self._stopped_at is None else self._stopped_at

    def turn(self, seconds: float) -> None:
        """Let time pass at once. A time limit that is running now is over if it was shorter."""
        self._ahead += seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let no time pass, however slow the machine is. No timer fires meanwhile."""
        self._stopped_at = self.now()
        try:
            yield
        finally:
            self._ahead = self._stopped_at - self._real()
            self._stopped_at = None
