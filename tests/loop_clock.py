"""The event loop's own clock, by which the service measures its time limits and how long it may trust a lease."""

import asyncio


class LoopClock:
    """Moves the clock of the running loop, never backwards. It goes on in real time afterwards."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead = 0.0
        loop.time = self.now  # type: ignore[method-assign]

    def now(self) -> float:
        return self._real() + self._ahead

    def advance(self, seconds: float) -> None:
        """Let time pass at once. A time limit that is running now is over if it was shorter."""
        self._ahead += seconds
