"""Circuit breakers, shared by all instances."""

from typing import Protocol

from genlock.domain.breaker import Breaker


class BreakerStore(Protocol):
    async def breakers(self) -> list[Breaker]:
        """Return all breakers that have counted a failure."""

    async def count_failure(self, provider: str, model: str, threshold: int, reason: str) -> Breaker:
        """Count a failure; the breaker opens after `threshold` in a row, or if a trial order has failed."""

    async def take_probe(self, provider: str, model: str) -> bool:
        """Let one order try a provider again whose pause is over. False if another order does, or it is too early."""

    async def reset_breakers(self, provider: str, model: str | None = None) -> int:
        """Delete the failures of a provider, or of one model there. Returns how many breakers there were."""
