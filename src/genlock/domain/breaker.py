"""Circuit breakers: a provider, or one model there, that fails again and again is paused for a while."""

from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value

#: failures in a row before a provider is paused
FAILURES_MAX = 5
#: after these it is paused at once: every order would fail
CERTAIN = frozenset({"no_provider_credits", "provider_key"})
#: what one model of a provider fails by, and not the whole provider
OF_MODEL = frozenset({"model_unavailable", "provider_failed", "provider_timeout"})
OPEN_SECONDS = 30.0
OPEN_SECONDS_MAX = 900.0
#: how long the order that tries the provider again has for it
PROBE_SECONDS = 120.0
#: a closed breaker without a failure for this long begins to count again
FAILURES_SECONDS = 600.0


class BreakerState(StrEnum):
    CLOSED = "closed"  #: orders go there
    OPEN = "open"  #: orders go elsewhere, if they can
    HALF_OPEN = "half_open"  #: the pause is over: one order tries it


@value
class Breaker:
    provider: str
    #: "" for the whole provider
    model: str
    #: consecutive failures
    failures: int
    #: how often it has opened since an order last succeeded there
    opened: int
    open_until: datetime | None
    probe_until: datetime | None
    #: the last failure
    reason: str
    changed_at: datetime
    #: the store's clock when the row was read
    read_at: datetime

    def state(self, now: datetime) -> BreakerState:
        if self.open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self.open_until > now else BreakerState.HALF_OPEN


def failure_key(code: str, model: str) -> tuple[str, int]:
    """Return the model that a failure counts for, "" for the whole provider, and how many open its breaker."""
    return (model if code in OF_MODEL else ""), (1 if code in CERTAIN else FAILURES_MAX)
