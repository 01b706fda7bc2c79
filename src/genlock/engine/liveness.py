"""Liveness: whether this instance had no gap in its heartbeat since it leased something, by its own clock.

The other instances take over what an instance has leased when its heartbeat is silent for too long. An instance that
was paused cannot see this in the database before its next statement, but its clock tells that it was silent.
"""

from collections.abc import Callable


class Liveness:
    def __init__(self, silent_seconds: float, clock: Callable[[], float]) -> None:
        self._silent_seconds = silent_seconds
        self._clock = clock
        #: the time before the last recorded heartbeat was sent; None before the first
        self._recorded_at: float | None = None
        self._gaps = 0

    def note_heartbeat(self, sent_at: float) -> None:
        """Note that a heartbeat is recorded. It was sent at `sent_at`, and recorded at an unknown time since then."""
        if self._is_silent():
            self._gaps += 1
        self._recorded_at = sent_at

    def watch(self) -> Callable[[], bool]:
        """Return a function that tells whether the heartbeat had no gap from now until it is called.

        Called before the statement that leases something: the process may be paused while it waits for the answer.
        """
        gaps = self._gaps
        return lambda: gaps == self._gaps and not self._is_silent()

    def _is_silent(self) -> bool:
        return self._recorded_at is not None and self._clock() - self._recorded_at >= self._silent_seconds
