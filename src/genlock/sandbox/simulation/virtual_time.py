"""Virtual time: a clock that stands still while anything can run, then jumps to the next timer."""

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

#: at noon: no clock that is wrong by minutes reaches another day
START = datetime(2030, 1, 1, 12, tzinfo=UTC)


#: after this many iterations without the clock moving, the loop is taken to be endless
ITERATIONS_MAX = 20_000


class TimeDoesNotAdvance(BaseException):
    """Every task waits and no timer is set, or a task loops forever. A BaseException: no handler swallows it."""


class VirtualLoop(BaseEventLoop):
    """An event loop without sockets. It is its own selector: waiting means moving the clock."""

    def __init__(self) -> None:
        super().__init__()
        self._time = 0.0
        self._iterations = 0
        self._selector = self
        #: by how many seconds the database's clock is wrong
        self.clock_offset = 0.0
        #: called before the clock moves; returns True if it made a task runnable
        self.on_idle: Callable[[], bool] | None = None

    def time(self) -> float:
        return self._time

    def select(self, timeout: float | None) -> list[Any]:
        if timeout == 0 or (self.on_idle and self.on_idle()):
            self._iterations += 1
            if self._iterations > ITERATIONS_MAX:
                self._iterations = 0
                raise TimeDoesNotAdvance
            return []
        if timeout is None:
            raise TimeDoesNotAdvance
        self._iterations = 0
        self._time += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no I/O events."""

    def _write_to_self(self) -> None:
        """There is no real selector to wake."""


class VirtualClock:
    """Wall time derived from an event loop's time, wrong by some seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, offset: Callable[[], float] = lambda: 0.0) -> None:
        self._loop = loop
        self._offset = offset

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.time() + self._offset())
