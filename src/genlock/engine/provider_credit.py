"""The credit left at each provider: read by the leader once a minute, for all instances."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from genlock.domain.alarm import PROVIDER_SILENT_KEY
from genlock.domain.events import Event
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.ports import KvStore, ProviderBundle

#: shorter than the time for which an amount is good, so that a new leader need not wait for it
PERIOD_SECONDS = 15.0
CACHE_SECONDS = 60.0
ANSWER_SECONDS = 10.0
KEY = "provider_credit:"


@dataclass(frozen=True)
class ProviderCredit:
    """What a provider said last."""

    provider: str
    #: in thousandths of its credit
    credit: int
    #: seconds since it was read
    age: float


@dataclass(frozen=True)
class ProviderCreditReader:
    ctx: EngineContext
    leader: Leader
    store: KvStore
    bundles: Mapping[str, ProviderBundle]

    async def read(self) -> None:
        """Ask every provider whose amount is old. One that does not answer keeps its last amount."""
        known = {stored_credit.provider: stored_credit for stored_credit in await provider_credits(self.store)}
        silent = await self._silent()
        for name, bundle in self.bundles.items():
            if bundle.credit is None or (name in known and known[name].age < CACHE_SECONDS):
                continue
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    credit = await bundle.credit()
            except Exception as error:  # noqa: BLE001 - an adapter's fault must not keep the others from being asked
                await self._note_silence(name, f"{type(error).__name__}: {error}"[:200], silent)
                continue
            if self.leader.role is not None:
                await self.store.kv_put(f"{KEY}{name}", json.dumps({"credit": credit}))
                await self._end_silence(name, silent)

    async def _silent(self) -> set[str]:
        """Return the providers that do not answer. The entries of those that are not asked any more are deleted."""
        names = {entry.key.removeprefix(PROVIDER_SILENT_KEY) for entry in await self.store.kv_list(PROVIDER_SILENT_KEY)}
        asked = {name for name, bundle in self.bundles.items() if bundle.credit is not None}
        if self.leader.role is not None:
            for name in names - asked:
                await self.store.kv_delete(f"{PROVIDER_SILENT_KEY}{name}")
        return names & asked

    async def _note_silence(self, name: str, reason: str, silent: set[str]) -> None:
        """Log the beginning of a silence, for which an alarm follows if it lasts. Repeats are not logged."""
        if name not in silent and self.leader.role is not None:
            await self.store.kv_put_if_absent(f"{PROVIDER_SILENT_KEY}{name}", reason)
            self.ctx.observer.event(Event.PROVIDER_SILENT, provider=name, reason=reason)

    async def _end_silence(self, name: str, silent: set[str]) -> None:
        if name in silent:
            await self.store.kv_delete(f"{PROVIDER_SILENT_KEY}{name}")
            self.ctx.observer.event(Event.PROVIDER_ANSWERS, provider=name)


async def provider_credits(store: KvStore) -> list[ProviderCredit]:
    """Return what is known of every provider's credit."""
    return [
        ProviderCredit(
            provider=entry.key.removeprefix(KEY), credit=int(json.loads(entry.value)["credit"]), age=entry.age
        )
        for entry in await store.kv_list(KEY)
    ]
