"""Counts and events as Prometheus metrics."""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from genlock.domain.events import Event
from genlock.domain.job import State

#: every count the engine and the stores make: what it says, and its labels
COUNTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "store_batches": ("Statements that served a batch of callers.", ("operation",)),
    "store_batch_items": ("Callers served by those statements.", ("operation",)),
    "store_retries": ("Statements tried again after a passing failure.", ("operation", "reason")),
    "submits_unknown": ("Create calls whose outcome stayed unknown.", ("provider",)),
    "callbacks": ("Callbacks, by what became of them.", ("outcome",)),
    "provider_errors": ("Calls to a provider that failed, by kind.", ("provider", "call", "reason")),
    "results": ("Terminal reports, by what became of them.", ("verdict",)),
    "unknown_states": ("State words that are not in the table.", ("word",)),
    "progress": ("Progress edits, by what became of them.", ("outcome",)),
    "channel_errors": ("Calls to the channel that failed, by what it means.", ("reason",)),
    "deliveries": ("Delivery attempts, by how they ended and at which level.", ("outcome", "level")),
    "stage_errors": ("Failures of a stage that nobody foresaw.", ("state",)),
    "updates": ("Updates of the chat, by kind and by whether they were new.", ("kind", "arrival")),
    "takeovers": ("Jobs taken over from dead instances.", ()),
}


#: what the store counts, as gauges: the name in its pulse, what it says
GAUGES: dict[str, str] = {
    "due": "Jobs that need somebody now.",
    "due_age": "Seconds that the longest waiting of them has waited.",
    "queued_age": "Seconds since the oldest job was accepted that no provider has taken.",
    "undelivered": "Ended jobs whose result is not in the chat yet.",
    "undelivered_age": "Seconds since the oldest of them ended.",
    "callbacks_waiting": "Callbacks that nobody has understood yet.",
    "callback_age": "Seconds since the oldest of them came.",
    "orphans": "Callbacks whose job is not known.",
    "orphans_fresh": "Those of them that came in the last ten minutes.",
    "attention": "Jobs on the operator's list.",
    "updates_waiting": "Updates of the chat that are not worked off yet.",
    "update_age": "Seconds that the longest waiting lane has waited.",
    "updates_dead": "Updates that nobody could handle.",
    "refunds_open": "Refunds of stars that have begun and Telegram has not confirmed.",
    "refund_age": "Seconds since the oldest of them began.",
    "instances": "Instances that live.",
    "ledger_violations": "Money that does not add up, as the active instance found it last.",
    "lately_ended": "Jobs among the newest that ended in the last ten minutes.",
    "lately_failed": "Those of them that the provider failed.",
}
#: where the pulse says it otherwise
_PULSE_NAMES = {"callbacks_waiting": "callbacks", "updates_waiting": "updates"}
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)


class MetricsObserver:
    """Counts into a registry. An unknown count is a bug and says so. An event that took time says its `seconds`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._events = Counter("genlock_events", "Events by name.", ("event",), registry=registry)
        self._seconds = Histogram(
            "genlock_event_seconds",
            "How long what an event tells of has taken.",
            ("event",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._counts = {
            name: Counter(f"genlock_{name}", text, labels, registry=registry) for name, (text, labels) in COUNTS.items()
        }
        self._jobs = Gauge("genlock_jobs", "Jobs in progress by state.", ("state",), registry=registry)
        self._active = Gauge("genlock_active", "1 if this instance is the active one.", registry=registry)
        self._gauges = {name: Gauge(f"genlock_{name}", text, registry=registry) for name, text in GAUGES.items()}

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None:
        self._events.labels(event.value).inc()
        seconds = facts.get("seconds")
        if seconds is not None:
            self._seconds.labels(event.value).observe(seconds)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        counter = self._counts[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def render(self, stats: Mapping[str, float], *, active: bool) -> bytes:
        """Everything as Prometheus reads it."""
        self._active.set(active)
        for state in State:
            self._jobs.labels(state.value).set(stats.get(state.value, 0.0))
        for name, gauge in self._gauges.items():
            gauge.set(stats.get(_PULSE_NAMES.get(name, name), 0.0))
        return generate_latest(self._registry)


class Observers:
    """Several observers as one."""

    def __init__(self, *observers: Any) -> None:
        self._observers = observers

    def event(self, event: Event, correlation_id: str = "", /, **facts: Any) -> None:
        for observer in self._observers:
            observer.event(event, correlation_id, **facts)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        for observer in self._observers:
            observer.count(name, amount, **labels)
