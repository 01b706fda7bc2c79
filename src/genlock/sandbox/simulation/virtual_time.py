"""Virtual time: a clock that stands still while anything can run, then jumps to the next timer."""

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2030, 1, 1, tzinfo=UTC)


#: so many rounds of the loop without the clock moving are a circle
ROUNDS_MAX = 20_000


class TimeStandsStill(BaseException):
    """Everybody waits and no timer is set, or somebody works in a circle. No handler may take it for a failed step."""


class VirtualLoop(BaseEventLoop):
    """An event loop without sockets. It is its own selector: waiting means moving the clock."""

    def __init__(self) -> None:
        super().__init__()
        self._time = 0.0
        self._rounds = 0
        self._selector = self
        #: asked before the clock moves; True if it has given somebody something to do
        self.on_idle: Callable[[], bool] | None = None

    def time(self) -> float:
        return self._time

    def select(self, timeout: float | None) -> list[Any]:
        if timeout == 0 or (self.on_idle and self.on_idle()):
            self._rounds += 1
            if self._rounds > ROUNDS_MAX:
                self._rounds = 0
                raise TimeStandsStill
            return []
        if timeout is None:
            raise TimeStandsStill
        self._rounds = 0
        self._time += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none: nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a real selector that would have to be woken."""


class VirtualClock:
    """Wall time made of an event loop's time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.time())
