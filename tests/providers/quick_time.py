"""Time that passes quickly, but only while everybody waits: what the machine sleeps through or works does not count."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

from genlock.stores.database import SqlDatabase


class QuickSelector(selectors.DefaultSelector):
    """Waits a fraction of what it is asked to. The clock moves when that was in vain, so no timer is ever late."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed
        self.now = 0.0
        #: what goes on in other threads and processes: time stands still until all of it is done
        self.outside = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        while not (events := super().select(timeout / self._speed)):
            if not self.outside:
                self.now += timeout
                break
        return events


class QuickLoop(asyncio.SelectorEventLoop):
    """A real event loop, with sockets, on quick time."""

    def __init__(self, speed: float) -> None:
        self._quick = QuickSelector(speed)
        super().__init__(self._quick)

    def time(self) -> float:
        return self._quick.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self._quick.outside += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: asyncio.Future[Any]) -> None:
        self._quick.outside -= 1

    def wait_for(self, ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same call, during which time stands still."""

        async def asked(*values: Any, **named: Any) -> Any:
            self._quick.outside += 1
            try:
                return await ask(*values, **named)
            finally:
                self._quick.outside -= 1

        return asked


def on_quick_time(store: SqlDatabase) -> SqlDatabase:
    """A store whose database takes no time, however slow the machine is."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, QuickLoop)
    for gate in ("one", "many"):
        setattr(store.session, gate, loop.wait_for(getattr(store.session, gate)))
    return store


def run_quickly(main: Any, speed: float) -> None:
    with asyncio.Runner(loop_factory=lambda: QuickLoop(speed)) as runner:
        runner.run(main)
