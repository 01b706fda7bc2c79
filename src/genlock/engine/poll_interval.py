"""How often running tasks are asked after: gently while callbacks come, briskly when they do not."""

from genlock.domain.retry import poll_delay

#: so many results in a row that came the same way say what to expect
PROOF = 3
#: how many times longer the pauses are: where callbacks do not come, may come, have proven to come
BRISK, WATCHFUL, GENTLE = 1.0, 2.0, 8.0


class PollInterval:
    """What one instance has seen of callbacks. All queries together keep the shared limit, whatever the pace."""

    def __init__(self, *, first: float, callbacks: bool) -> None:
        self._first = first
        self._callbacks = callbacks
        #: results in a row by callback; below zero, by a query
        self._streak = 0

    @property
    def stretch(self) -> float:
        if not self._callbacks or self._streak <= -PROOF:
            return BRISK
        return GENTLE if self._streak >= PROOF else WATCHFUL

    def delay(self, age: float, jitter: float) -> float:
        return poll_delay(age, jitter, self._first * self.stretch)

    def found(self, *, by_callback: bool) -> None:
        """A result came in, one way or the other."""
        self._streak = max(self._streak, 0) + 1 if by_callback else min(self._streak, 0) - 1
