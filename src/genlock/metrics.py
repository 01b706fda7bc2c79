"""Counts and events as Prometheus metrics."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter

from genlock.domain.events import Event

#: every count the engine and the stores make: what it says, and its labels
COUNTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "store_batches": ("Statements that served a batch of callers.", ("operation",)),
    "store_batch_items": ("Callers served by those statements.", ("operation",)),
    "store_retries": ("Statements tried again after a passing failure.", ("operation", "reason")),
    "submits_unknown": ("Create calls whose outcome stayed unknown.", ("provider",)),
    "results": ("Terminal reports, by what became of them.", ("verdict",)),
    "unknown_states": ("State words that are not in the table.", ("word",)),
    "progress": ("Progress edits, by what became of them.", ("outcome",)),
    "channel_errors": ("Calls to the channel that failed, by what it means.", ("reason",)),
    "deliveries": ("Delivery attempts, by how they ended.", ("outcome",)),
    "stage_errors": ("Failures of a stage that nobody foresaw.", ("state",)),
    "takeovers": ("Jobs taken over from dead instances.", ()),
}


class MetricsObserver:
    """Counts into a registry. An unknown count is a bug and says so."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._events = Counter("genlock_events", "Events by name.", ("event",), registry=registry)
        self._counts = {
            name: Counter(f"genlock_{name}", text, labels, registry=registry) for name, (text, labels) in COUNTS.items()
        }

    def event(self, event: Event, correlation: str = "", /, **facts: Any) -> None:
        self._events.labels(event.value).inc()

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        counter = self._counts[name]
        (counter.labels(**labels) if labels else counter).inc(amount)


class Observers:
    """Several observers as one."""

    def __init__(self, *observers: Any) -> None:
        self._observers = observers

    def event(self, event: Event, correlation: str = "", /, **facts: Any) -> None:
        for observer in self._observers:
            observer.event(event, correlation, **facts)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        for observer in self._observers:
            observer.count(name, amount, **labels)
