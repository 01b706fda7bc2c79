"""Alarms: which figures an operator must know about. The texts are in `i18n/<language>/alarms.toml`, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: the figures of the installation by their names in `metrics.GAUGES`
Gauges = Mapping[str, float]
ORPHANS_MANY = 20
UNDELIVERED_SECONDS = 300
QUEUED_SECONDS = 300
FAILURES_LEAST = 5
FAILURES_SHARE = 0.5
#: long enough for several retries of a refund whose answer was lost
REFUND_SECONDS = 900
#: how long there may be no leader before operators are notified
INACTIVE_SECONDS = 30
#: The money check runs every few seconds. Without a completed round for this long, it fails or does not run.
LEDGER_CHECK_SECONDS = 1800
#: the kv entry that an instance writes while the channel refuses the whole bot
BOT_REFUSED_KEY = "bot_refused"
#: the beginning of the kv entry of a provider that does not answer
PROVIDER_SILENT_KEY = "provider_silent:"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong, in figures. `text` names the sentence of the alarm's texts that describes it."""

    text: str = "found"
    numbers: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        """For the log."""
        figures = {**self.numbers, **({"seconds": round(self.seconds)} if self.seconds else {})}
        return " ".join(f"{name}={number}" for name, number in figures.items())


@dataclass(frozen=True, kw_only=True)
class Alarm:
    name: str
    #: returns None if these figures are fine
    check: Callable[[Gauges], Finding | None]


@dataclass(frozen=True, kw_only=True)
class AlarmNotice:
    """A notification to operators: an incident began, or (without a finding) ended after a number of seconds."""

    name: str
    finding: Finding | None = None
    #: whether the incident had already ended when it was detected
    late: bool = False
    seconds: float = 0.0


def _orphans(stats: Gauges) -> Finding | None:
    count = round(stats.get("orphans_fresh", 0))
    return Finding(numbers={"count": count}) if count >= ORPHANS_MANY else None


def _undelivered(stats: Gauges) -> Finding | None:
    return _waiting_too_long(stats, "undelivered", "undelivered_age", UNDELIVERED_SECONDS)


def _ledger(stats: Gauges) -> Finding | None:
    count = round(stats.get("ledger_violations", 0))
    return Finding(numbers={"count": count}) if count else None


def _ledger_unchecked(stats: Gauges) -> Finding | None:
    seconds = stats.get("ledger_check_age", 0)
    return Finding(seconds=seconds) if seconds > LEDGER_CHECK_SECONDS else None


def _provider(stats: Gauges) -> Finding | None:
    failed, ended, queued = (stats.get(name, 0) for name in ("lately_failed", "lately_ended", "queued_age"))
    if failed >= FAILURES_LEAST and failed >= ended * FAILURES_SHARE:
        return Finding(text="found_failures", numbers={"failed": round(failed), "ended": round(ended)})
    return Finding(text="found_queue", seconds=queued) if queued > QUEUED_SECONDS else None


def _updates_dead(stats: Gauges) -> Finding | None:
    count = round(stats.get("updates_dead", 0))
    return Finding(numbers={"count": count}) if count else None


def _refunds(stats: Gauges) -> Finding | None:
    return _waiting_too_long(stats, "refunds_open", "refund_age", REFUND_SECONDS)


def _cost_above_price(stats: Gauges) -> Finding | None:
    count, job = (round(stats.get(name, 0)) for name in ("costs_above_price", "cost_above_price_job"))
    return Finding(numbers={"count": count, "job": job}) if count else None


def _external_refunds(stats: Gauges) -> Finding | None:
    count = round(stats.get("external_refunds", 0))
    return Finding(numbers={"count": count}) if count else None


def _bot_refused(stats: Gauges) -> Finding | None:
    return Finding() if stats.get("bot_refused", 0) else None


def _provider_paused(stats: Gauges) -> Finding | None:
    count = round(stats.get("breakers_open", 0))
    return Finding(numbers={"count": count}) if count else None


def _provider_silent(stats: Gauges) -> Finding | None:
    count = round(stats.get("providers_silent", 0))
    return Finding(numbers={"count": count}) if count else None


def _waiting_too_long(stats: Gauges, count: str, age: str, seconds_max: float) -> Finding | None:
    seconds = stats.get(age, 0)
    if seconds <= seconds_max:
        return None
    return Finding(numbers={"count": round(stats.get(count, 0))}, seconds=seconds)


ALARMS = (
    Alarm(name="orphan_spike", check=_orphans),
    Alarm(name="undelivered", check=_undelivered),
    Alarm(name="ledger_mismatch", check=_ledger),
    Alarm(name="ledger_unchecked", check=_ledger_unchecked),
    Alarm(name="provider_failing", check=_provider),
    Alarm(name="provider_paused", check=_provider_paused),
    Alarm(name="provider_silent", check=_provider_silent),
    Alarm(name="updates_dead", check=_updates_dead),
    Alarm(name="refund_open", check=_refunds),
    Alarm(name="cost_above_price", check=_cost_above_price),
    Alarm(name="external_refund", check=_external_refunds),
    Alarm(name="bot_refused", check=_bot_refused),
)
#: raised by the instance that becomes active, about the time before: no figure shows it while it lasts
NO_ACTIVE = Alarm(name="no_active", check=lambda _: None)
