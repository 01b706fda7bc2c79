"""The adaptive poll interval: long while callbacks arrive, short when they do not."""

from genlock.domain.retry import poll_delay

#: after this many results in a row by the same way, the next one is expected that way too
STREAK = 3
#: factors of the first interval: callbacks do not arrive, may arrive, have been arriving
WITHOUT_CALLBACKS, UNCERTAIN, WITH_CALLBACKS = 1.0, 2.0, 8.0


class PollInterval:
    """What one instance has seen of a provider's callbacks. The shared rate limit bounds all instances' queries."""

    def __init__(self, *, first: float, callbacks: bool) -> None:
        self._first = first
        self._callbacks = callbacks
        #: results in a row by callback; negative: by a status query
        self._streak = 0

    @property
    def factor(self) -> float:
        if not self._callbacks or self._streak <= -STREAK:
            return WITHOUT_CALLBACKS
        return WITH_CALLBACKS if self._streak >= STREAK else UNCERTAIN

    def delay(self, age: float, jitter: float) -> float:
        """Return the seconds until the next status query of a task that has run for `age` seconds."""
        return poll_delay(age, jitter, self._first * self.factor)

    def record_result(self, *, by_callback: bool) -> None:
        """Count a result by the way it arrived: a callback or a status query."""
        self._streak = max(self._streak, 0) + 1 if by_callback else min(self._streak, 0) - 1
