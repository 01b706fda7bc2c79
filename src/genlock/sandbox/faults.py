"""Which faults of a simulated provider happen: switched on, with a probability, or queued for the next order."""

from collections import deque
from enum import StrEnum
from random import Random
from typing import Generic, TypeVar

FaultT = TypeVar("FaultT", bound=StrEnum)


class Faults(Generic[FaultT]):
    """Decides from a seeded random generator which faults happen."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._on: set[FaultT] = set()
        self._probabilities: dict[FaultT, float] = {}
        self._coming: deque[frozenset[FaultT]] = deque()

    def switch(self, *faults: FaultT, on: bool = True) -> None:
        """Switch faults on or off for all calls from now on."""
        self._on = self._on | set(faults) if on else self._on - set(faults)

    def set_probability(self, fault: FaultT, probability: float) -> None:
        self._probabilities[fault] = probability

    def order(self, *faults: FaultT) -> None:
        """Queue faults for the next order that has none queued. An empty set makes that order run without faults."""
        self._coming.append(frozenset(faults))

    def clear(self) -> None:
        self._on.clear()
        self._probabilities.clear()
        self._coming.clear()

    def draw(self) -> set[FaultT]:
        """Return faults of one order."""
        return self.draw_common("") | set(self._coming.popleft() if self._coming else ())

    def draw_status(self, of_task: set[FaultT]) -> set[FaultT]:
        """Return the faults of one status query. Those set for the task itself happen once and are removed from it."""
        return self._draw_once(of_task, "status_")

    def draw_result(self, of_task: set[FaultT]) -> set[FaultT]:
        """Return the faults of one call that fetches a result; as `draw_status`, but for errors of the server only."""
        return self._draw_once(of_task, "result_5")

    def _draw_once(self, of_task: set[FaultT], prefix: str) -> set[FaultT]:
        mine = {fault for fault in of_task if fault.startswith(prefix)}
        of_task -= mine
        return mine | self.draw_common(prefix)

    def draw_common(self, prefix: str) -> set[FaultT]:
        """Return the faults of a call whose names begin with `prefix`, apart from those queued for an order."""
        faults = self._on | {
            fault for fault, probability in self._probabilities.items() if self._rng.random() < probability
        }
        return {fault for fault in faults if fault.startswith(prefix)}

    def as_json(self) -> dict[str, object]:
        return {
            "on": sorted(self._on),
            "chances": dict(self._probabilities),
            "coming": [sorted(faults) for faults in self._coming],
        }
