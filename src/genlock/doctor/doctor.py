"""The doctor: is this world fit for service? It tries everything out, and leaves nothing behind."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from time import time

from genlock.app import examine_store
from genlock.doctor.external import Outside
from genlock.doctor.finding import SKEW_SECONDS_MAX, Ill, Phase, need
from genlock.doctor.store_trials import LongAgo, try_atomic, try_replays
from genlock.domain.errors import GenlockError
from genlock.log import Mask, Silent
from genlock.ports import DatabaseCheck
from genlock.settings import Settings

SILENT_SECONDS = 10.0
ARRIVAL_SECONDS = 5.0


class Doctor:
    """Seven phases; a later one is tried whatever became of those before."""

    def __init__(self, settings: Settings, *, now: Callable[[], float] = time) -> None:
        self._settings = settings
        self._now = now
        self._mask = Mask(settings.secrets())
        self._outside = Outside(settings, Silent(), now)
        self._examined: DatabaseCheck | None = None
        self._missing: list[str] = []

    async def examine(self) -> list[Phase]:
        checks: dict[str, Callable[[], Awaitable[str]]] = {
            "store": self.store,
            "atomic operations": self.atomic,
            "callback door": self.endpoint,
            "channel": self.channel,
            "migrations": self.migrations,
            "idempotency": self.idempotency,
            "money": self.money,
        }
        try:
            return [await self._phase(name, check) for name, check in checks.items()]
        finally:
            if self._examined is not None:
                await self._examined.close()

    async def _phase(self, name: str, check: Callable[[], Awaitable[str]]) -> Phase:
        try:
            return Phase(name=name, ok=True, detail=self._mask(await check()))
        except (Ill, GenlockError) as error:
            return Phase(name=name, ok=False, detail=self._mask(str(error)))
        except Exception as error:  # noqa: BLE001 - the other phases are still worth knowing
            return Phase(name=name, ok=False, detail=self._mask(f"unforeseen: {type(error).__name__}: {error}"))

    def _opened(self) -> DatabaseCheck:
        if self._examined is None:
            raise Ill("cannot be checked without the store")
        return self._examined

    def _current(self) -> DatabaseCheck:
        need(not self._missing, "cannot be checked before the schema is up to date: run `genlock migrate`")
        return self._opened()

    async def store(self) -> str:
        """Write, read, roll back; compare the clocks; see who is there."""
        self._examined = examined = await examine_store(self._settings.database_url, observer=Silent())
        skew = abs((await examined.store.read_clock()).timestamp() - self._now())
        need(
            skew <= SKEW_SECONDS_MAX,
            f"the database's clock and this machine's differ by {skew:.0f} s: let both be set by NTP (`timedatectl`)",
        )
        self._missing = await examined.missing()
        if self._missing:
            return f"{examined.description()}; its schema is not up to date, see migrations"
        key = f"doctor:{secrets.token_hex(4)}"
        async with examined.rehearsal(LongAgo()) as rehearsal:
            await rehearsal.kv_put(key, "written")
            fact = await rehearsal.kv_get(key)
            need(fact is not None and fact.value == "written", "what is written cannot be read back")
        need(await examined.store.kv_get(key) is None, "what is rolled back stays: the database keeps no transactions")
        living = await examined.store.live_instances(SILENT_SECONDS)
        need(
            examined.dialect != "sqlite" or len(living) <= 1,
            f"{len(living)} instances run on one SQLite file, which serves one: stop all but one, or set "
            "GENLOCK_DATABASE_URL to a postgresql:// address",
        )
        return f"{examined.description()}; written and rolled back; clocks agree; {_instances(len(living))}"

    async def atomic(self) -> str:
        clock = LongAgo()
        async with self._current().rehearsal(clock) as store:
            return await try_atomic(store, clock)

    async def endpoint(self) -> str:
        """Call ourselves back, and see in the store what came of it."""
        public = self._settings.public_url
        if public is None:
            return "no public address: Telegram and the provider are asked, they cannot call (GENLOCK_PUBLIC_URL)"
        store = self._current().store
        mark, after = f"doctor-{secrets.token_hex(8)}", await store.last_callback_id()
        try:
            count = await self._outside.knock(public, mark)
            kept = await self._kept(after, mark, count)
        finally:
            await store.delete_callbacks(after, mark.encode())
        need(all(job is None for job, _ in kept), "a forged callback was believed: it was given to a job")
        signed = self._settings.kie_webhook_key is not None
        told = "a signed one was kept, a forged one refused" if signed else "one was kept, a forged one not believed"
        return f"callbacks to {public} reach this database; {told}"

    async def _kept(self, after: int, mark: str, count: int) -> list[tuple[int | None, str]]:
        for _ in range(int(ARRIVAL_SECONDS / 0.1)):
            kept = await self._opened().store.find_callbacks(after, mark.encode())
            if len(kept) >= count:
                return kept
            await asyncio.sleep(0.1)
        raise Ill(
            "callbacks are acknowledged there, but do not come to this database: the service at the public address "
            "uses another one, such as a second instance with an SQLite file of its own. Set GENLOCK_DATABASE_URL alike"
        )

    async def channel(self) -> str:
        """Ask Telegram who we are, and Kie.ai what credit is left; what is wrong with one hides not the other."""
        said = await asyncio.gather(self._outside.telegram(), self._outside.kie(), return_exceptions=True)
        wrong = [one for one in said if isinstance(one, BaseException)]
        strange = [one for one in wrong if not isinstance(one, Ill | GenlockError)]
        if strange:
            raise strange[0]
        need(not wrong, "; ".join(str(one) for one in said))
        return "; ".join(str(one) for one in said)

    async def migrations(self) -> str:
        examined = self._opened()
        missing = await examined.missing()
        need(not missing, f"the schema is old, {', '.join(missing)} not applied: run `genlock migrate`")
        differences = await examined.differences()
        need(
            not differences,
            f"all migrations are applied, and yet this is missing: {'; '.join(differences[:5])}. The schema was "
            "changed by hand; make it again as in stores/sql, or restore a backup",
        )
        return "all are applied; every table, constraint and index is as in a fresh schema"

    async def idempotency(self) -> str:
        async with self._current().rehearsal(LongAgo()) as store:
            return await try_replays(store)

    async def money(self) -> str:
        violations = await self._current().store.violations(settled=False)
        need(
            not violations,
            f"{len(violations)} things do not add up, the first: {violations[0] if violations else ''}. Run `genlock "
            "jobs check` for all, and keep a copy of the database before anything is changed",
        )
        return (
            "the ledger sums to zero; every balance is the sum of its movements; every job's money is where it belongs"
        )


def _instances(count: int) -> str:
    return {0: "no instance runs", 1: "one instance runs"}.get(count, f"{count} instances run")
