"""Time that passes quickly, but only while everybody waits: what the machine sleeps through or works does not count."""

import asyncio
import selectors
from typing import Any


class QuickSelector(selectors.DefaultSelector):
    """Waits a fraction of what it is asked to. The clock moves when that was in vain, so no timer is ever late."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        events = super().select(timeout / self._speed)
        if not events:
            self.now += timeout
        return events


class QuickLoop(asyncio.SelectorEventLoop):
    """A real event loop, with sockets, on quick time."""

    def __init__(self, speed: float) -> None:
        self._quick = QuickSelector(speed)
        super().__init__(self._quick)

    def time(self) -> float:
        return self._quick.now


def run_quickly(main: Any, speed: float) -> None:
    with asyncio.Runner(loop_factory=lambda: QuickLoop(speed)) as runner:
        runner.run(main)
