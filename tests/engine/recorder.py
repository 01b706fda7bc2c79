"""An observer that records, and lets a test wait for an event."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from genlock.domain.events import Event
from tests.changes import Changes


@dataclass(frozen=True)
class Seen:
    event: Event
    correlation_id: str
    facts: dict[str, Any]


class Recorder:
    """Records every event and count, and lets a test wait for an event."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._counts: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()
        self.changes = Changes()

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None:
        self.seen.append(Seen(event, correlation_id, facts))
        self.changes.note()

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self._counts[name, frozenset(labels.items())] += int(amount)

    def total(self, name: str, **labels: str) -> int:
        return sum(
            amount for (known, having), amount in self._counts.items() if known == name and labels.items() <= having
        )

    def of(self, event: Event, **facts: Any) -> list[Seen]:
        return [seen for seen in self.seen if seen.event is event and facts.items() <= seen.facts.items()]

    async def until(self, event: Event, times: int = 1, **facts: Any) -> None:
        """Wait until the event was recorded `times` times."""
        await self.changes.until(lambda: len(self.of(event, **facts)) >= times)
