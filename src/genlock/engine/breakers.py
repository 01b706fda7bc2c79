"""Which providers are paused because they failed again and again: shared in the store, cached by each instance."""

from datetime import UTC, datetime

from genlock.domain.breaker import Breaker, BreakerState, failure_key
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.ports import BreakerStore, Observer

#: how often an instance reads what the others have counted
PERIOD_SECONDS = 5.0
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class ProviderBreakers:
    """The breakers as this instance last saw them. A job that meets no failure reads and writes nothing here."""

    def __init__(self, store: BreakerStore, observer: Observer) -> None:
        self._store = store
        self._observer = observer
        self._known: dict[tuple[str, str], Breaker] = {}

    async def read(self) -> None:
        """Read what all instances have counted."""
        self._known = {(breaker.provider, breaker.model): breaker for breaker in await self._store.breakers()}

    async def allows(self, provider: str, model: str, now: datetime) -> bool:
        """Return whether an order may go there now. After a pause one order may, which tries the provider again."""
        for key in ((provider, ""), (provider, model)):
            breaker = self._known.get(key)
            state = BreakerState.CLOSED if breaker is None else breaker.state(now)
            if state is BreakerState.OPEN:
                return False
            if state is BreakerState.HALF_OPEN and not await self._store.take_probe(*key):
                return False
        return True

    def open_until(self, provider: str, model: str) -> datetime:
        """Return until when orders go elsewhere; long ago if they do not."""
        known = [self._known.get((provider, name)) for name in ("", model)]
        times = [breaker.open_until for breaker in known if breaker is not None and breaker.open_until is not None]
        return max(times, default=_LONG_AGO)

    async def failed(self, provider: str, model: str, code: str) -> None:
        """Count a failure that is the provider's fault. It must not keep the order from going on."""
        of_model, threshold = failure_key(code, model)
        try:
            breaker = await self._store.count_failure(provider, of_model, threshold, code)
        except StoreError as error:
            self._observer.event(Event.STAGE_ERROR, step="breaker", provider=provider, error=type(error).__name__)
            return
        before = self._known.get((provider, of_model))
        self._known[provider, of_model] = breaker
        if breaker.open_until is not None and (before is None or before.open_until != breaker.open_until):
            seconds = round((breaker.open_until - breaker.read_at).total_seconds())
            if seconds > 0:
                self._observer.event(
                    Event.BREAKER_OPEN, provider=provider, model=of_model, reason=code, seconds=seconds
                )

    async def accepted(self, provider: str) -> None:
        """The provider has accepted an order: it answers, and has credit."""
        await self._reset(provider, "")

    async def succeeded(self, provider: str, model: str) -> None:
        """The provider has made a result of this model."""
        await self._reset(provider, model)

    async def _reset(self, provider: str, model: str) -> None:
        breaker = self._known.pop((provider, model), None)
        if breaker is None:
            return
        try:
            await self._store.reset_breakers(provider, model)
        except StoreError as error:
            self._observer.event(Event.STAGE_ERROR, step="breaker", provider=provider, error=type(error).__name__)
            return
        if breaker.open_until is not None:
            self._observer.event(Event.BREAKER_CLOSED, provider=provider, model=model)
