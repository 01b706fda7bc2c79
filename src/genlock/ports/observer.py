"""The observer port."""

from typing import Any, Protocol

from genlock.domain.events import Event


class Observer(Protocol):
    """Receives events and counts: writes log lines, metrics or a simulation's history."""

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None: ...

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None: ...
