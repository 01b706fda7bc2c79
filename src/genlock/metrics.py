"""Counts and events as Prometheus metrics."""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from genlock.domain.events import Event
from genlock.domain.job import State

#: every counter of the engine and the stores: its description and its labels
COUNTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "store_statements": ("Statements that the store ran.", ("operation",)),
    "store_batches": ("Statements that served a batch of callers.", ("operation",)),
    "store_batch_items": ("Callers served by those statements.", ("operation",)),
    "store_timeouts": ("Statements that took too long, were cut and not run again.", ("operation",)),
    "store_retries": ("Statements repeated after a temporary failure.", ("operation", "reason")),
    "submits_unknown": ("Create calls with an unknown outcome.", ("provider",)),
    "callbacks": ("Callbacks by outcome.", ("outcome",)),
    "provider_errors": ("Failed calls to a provider.", ("provider", "call", "reason")),
    "failovers": ("Orders that went on from a provider to another one.", ("provider", "reason")),
    "results": ("Terminal reports by verdict.", ("verdict",)),
    "unknown_states": ("State words that are not in the table.", ("word",)),
    "progress": ("Progress edits by outcome.", ("outcome",)),
    "channel_errors": ("Failed calls to the channel by reason.", ("reason",)),
    "deliveries": ("Delivery attempts by outcome and level.", ("outcome", "level")),
    "stage_errors": ("Unexpected errors in a stage or a periodic task.", ("state",)),
    "updates": ("Received updates by kind and by whether they were new.", ("kind", "arrival")),
    "job_events_dropped": ("Events of jobs that were not kept, because they came faster than they were written.", ()),
    "api_requests": ("Requests to the API by operation and class of status.", ("operation", "status")),
    "takeovers": ("Jobs taken over from dead instances.", ()),
}


#: gauges from the statistics of the store: name and description
GAUGES: dict[str, str] = {
    "due": "Jobs whose next step is due now.",
    "due_age": "Seconds since the oldest of these became due.",
    "queued_age": "Seconds since the oldest job was accepted that is not submitted yet.",
    "undelivered": "Ended jobs whose result is not in the chat yet.",
    "undelivered_age": "Seconds since the oldest of these ended.",
    "callbacks_waiting": "Callbacks that are not processed yet.",
    "callback_age": "Seconds since the oldest of these was received.",
    "orphans": "Callbacks whose job is not known.",
    "orphans_fresh": "Orphaned callbacks received in the last ten minutes.",
    "attention": "Jobs that need an operator's attention.",
    "updates_waiting": "Updates that are not handled yet.",
    "update_age": "Seconds since the oldest waiting update queue became due.",
    "updates_dead": "Dead-lettered updates: their handler failed in every attempt.",
    "refunds_open": "Refunds of Stars that Telegram has not confirmed yet.",
    "refund_age": "Seconds since the oldest of these was started.",
    "costs_above_price": "Models with a job in the last hour that cost more than its price was made from.",
    "external_refunds": "Refunds of Stars in the last hour that Telegram made without us.",
    "bot_refused": "1 if Telegram refused the token or the whole bot in the last ten minutes.",
    "providers_silent": "Providers that have not told the credit left for more than five minutes.",
    "breakers_open": "Providers, and models of providers, that are paused after failures.",
    "instances": "Running instances.",
    "ledger_check_age": "Seconds since the leader's money check last completed a round.",
    "ledger_violations": "Ledger violations found by the leader's last check.",
    "lately_ended": "Recent jobs that ended in the last ten minutes.",
    "lately_failed": "Recent jobs that failed at the provider in the last ten minutes.",
}
#: gauges that have another name in the statistics
STATS_NAMES = {"callbacks_waiting": "callbacks", "updates_waiting": "updates"}
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)


class MetricsObserver:
    """Counts into a registry. An unknown counter raises KeyError. An event with `seconds` also fills a histogram."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._events = Counter("genlock_events", "Events by name.", ("event",), registry=registry)
        self._seconds = Histogram(
            "genlock_event_seconds",
            "Duration of what an event reports.",
            ("event",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._counts = {
            name: Counter(f"genlock_{name}", text, labels, registry=registry) for name, (text, labels) in COUNTS.items()
        }
        #: the counters by event, and by name and labels: finding them in the registry costs more than counting
        self._event_children: dict[Event, Counter] = {}
        self._count_children: dict[tuple[Any, ...], Counter] = {}
        self._jobs = Gauge("genlock_jobs", "Jobs in progress by state.", ("state",), registry=registry)
        self._plugins = Gauge(
            "genlock_plugin",
            "1 for each installed plug-in; its state is in_use, not_configured or left_out.",
            ("kind", "name", "version", "state"),
            registry=registry,
        )
        self._active = Gauge("genlock_active", "1 if this instance is the leader.", registry=registry)
        self._gauges = {name: Gauge(f"genlock_{name}", text, registry=registry) for name, text in GAUGES.items()}

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        counter = self._event_children.get(event)
        if counter is None:
            counter = self._event_children[event] = self._events.labels(event.value)
        counter.inc()
        seconds = fields.get("seconds")
        if seconds is not None:
            self._seconds.labels(event.value).observe(seconds)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        key = (name, *labels.items())
        counter = self._count_children.get(key)
        if counter is None:
            found = self._counts[name]
            counter = self._count_children[key] = found.labels(**labels) if labels else found
        counter.inc(amount)

    def show_plugin(self, **labels: str) -> None:
        """Show an installed plug-in: its kind, name, version and state."""
        self._plugins.labels(**labels).set(1)

    def render(self, stats: Mapping[str, float], *, active: bool) -> bytes:
        """Return all metrics in the Prometheus text format."""
        self._active.set(active)
        for state in State:
            self._jobs.labels(state.value).set(stats.get(state.value, 0.0))
        for name, gauge in self._gauges.items():
            gauge.set(stats.get(STATS_NAMES.get(name, name), 0.0))
        return generate_latest(self._registry)


class Observers:
    """Several observers as one. Those that ignore counts are not asked to count."""

    def __init__(self, *observers: Any) -> None:
        self._observers = observers
        self._counting = tuple(observer for observer in observers if not getattr(observer, "ignores_counts", False))

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        for observer in self._observers:
            observer.event(event, correlation_id, **fields)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        for observer in self._counting:
            observer.count(name, amount, **labels)
