"""Circuit breakers, shared by all instances."""

from genlock.domain.breaker import FAILURES_SECONDS, OPEN_SECONDS, OPEN_SECONDS_MAX, PROBE_SECONDS, Breaker
from genlock.stores.rows import Row, Time, not_null
from genlock.stores.session import Subject


class Breakers(Subject):
    async def breakers(self) -> list[Breaker]:
        return [_read_breaker(row, self.session.time) for row in await self.session.one("breakers")]

    async def count_failure(self, provider: str, model: str, threshold: int, reason: str) -> Breaker:
        [row] = await self.session.one(
            "count_failure",
            provider=provider,
            model=model,
            threshold=threshold,
            reason=reason,
            open_seconds=OPEN_SECONDS,
            open_seconds_max=OPEN_SECONDS_MAX,
            failures_seconds=FAILURES_SECONDS,
        )
        return _read_breaker(row, self.session.time)

    async def take_probe(self, provider: str, model: str) -> bool:
        return bool(await self.session.one("take_probe", provider=provider, model=model, seconds=PROBE_SECONDS))

    async def reset_breakers(self, provider: str, model: str | None = None) -> int:
        return len(await self.session.one("reset_breakers", provider=provider, model=model))


def _read_breaker(row: Row, time: Time) -> Breaker:
    return Breaker(
        provider=row["provider"],
        model=row["model"],
        failures=row["failures"],
        opened=row["opened"],
        open_until=time(row["open_until"]),
        probe_until=time(row["probe_until"]),
        reason=row["reason"],
        changed_at=not_null(time(row["changed_at"])),
        read_at=not_null(time(row["read_at"])),
    )
