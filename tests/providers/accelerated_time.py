"""An event loop with accelerated time that advances only while every task waits, however slow the machine is."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

from genlock.app.databases import open_store
from genlock.ports import Clock, Observer
from genlock.stores.database import SqlDatabase


class AcceleratedSelector(selectors.DefaultSelector):
    """Waits a fraction of the requested time and advances the clock when nothing happened, so no timer is ever late."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed
        self.now = 0.0
        #: operations in other threads and processes: time stands still until all are finished
        self.outside = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        while not (events := super().select(timeout / self._speed)):
            if not self.outside:
                self.now += timeout
                break
        return events


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """A real event loop with sockets and accelerated time."""

    def __init__(self, speed: float) -> None:
        self._quick = AcceleratedSelector(speed)
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
        """Return the same function, during whose calls time stands still."""

        async def asked(*values: Any, **named: Any) -> Any:
            self._quick.outside += 1
            try:
                return await ask(*values, **named)
            finally:
                self._quick.outside -= 1

        return asked


async def open_on_accelerated_time(url: str, observer: Observer, clock: Clock) -> SqlDatabase:
    """Return the store at a URL; neither its connections nor its statements take time on the accelerated clock."""
    return on_accelerated_time(await _accelerated_loop().wait_for(open_store)(url, observer=observer, clock=clock))


def on_accelerated_time(store: SqlDatabase) -> SqlDatabase:
    """Return the store with statements that take no time on the accelerated clock."""
    loop = _accelerated_loop()
    for gate in ("one", "many"):
        setattr(store.session, gate, loop.wait_for(getattr(store.session, gate)))
    return store


def _accelerated_loop() -> AcceleratedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, AcceleratedLoop)
    return loop


def run_accelerated(main: Any, speed: float) -> None:
    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(speed)) as runner:
        runner.run(main)
