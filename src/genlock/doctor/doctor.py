"""The doctor: checks the whole installation by doing what the service does, and leaves nothing behind."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from time import time

from genlock.api.webhook_secret_check import is_lost
from genlock.app.channels import make_channels
from genlock.app.databases import open_database_check
from genlock.app.plugin_checks import close_plugin
from genlock.app.plugins import find_plugins
from genlock.app.providers import load_catalog, make_bundles
from genlock.app.webhook_secrets import make_webhook_secrets
from genlock.bot.order.job_texts import JobTexts
from genlock.doctor.check_failed import SKEW_SECONDS_MAX, CheckFailed, require
from genlock.doctor.network_checks import NetworkChecks
from genlock.doctor.provider_checks import ProviderChecks
from genlock.doctor.store_checks import TrialClock, check_leases, check_replays
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.doctor_phase import Phase
from genlock.domain.errors import GenlockError
from genlock.log import Mask, Silent
from genlock.ports import ChannelContext, DatabaseCheck, ProviderBundle
from genlock.settings import Settings

#: an instance without a heartbeat for this long is not counted as running
SILENT_SECONDS = 10.0
ARRIVAL_SECONDS = 5.0
WEBHOOKS_AT_ONCE = 500


class Doctor:
    """Runs eight phases. Each is run whatever the earlier ones found."""

    def __init__(self, settings: Settings, *, now: Callable[[], float] = time) -> None:
        self._settings = settings
        self._now = now
        self._plugins = find_plugins()
        self._mask = Mask([*settings.secrets(), *self._plugins.secrets()])
        catalog = load_catalog(settings, self._plugins)
        self._bundles = make_bundles(self._plugins, catalog, now=now)
        self._channels = make_channels(
            self._plugins,
            ChannelContext(texts=JobTexts(CurrentCatalog(catalog)), now=now, public_url=settings.public_url),
        )
        self._network = NetworkChecks(settings, self._plugins, Silent(), now)
        self._providers = ProviderChecks(self._bundles, catalog, self._plugins)
        self._database: DatabaseCheck | None = None
        self._missing: list[str] = []

    async def examine(self) -> list[Phase]:
        return [phase async for phase in self.phases()]

    async def phases(self) -> AsyncIterator[Phase]:
        """Run the phases, and yield each as soon as it has ended."""
        checks: dict[str, Callable[[], Awaitable[str]]] = {
            "store": self.store,
            "atomic operations": self.atomic_operations,
            "callback endpoint": self.callback_endpoint,
            "channel": self.channel,
            "migrations": self.migrations,
            "idempotency": self.idempotency,
            "money": self.money,
            "plug-ins": self.plugins,
        }
        try:
            for name, check in checks.items():
                yield await self._phase(name, check)
        finally:
            await self._close()

    async def _close(self) -> None:
        closes = {name: bundle.close for name, bundle in self._bundles.items()}
        closes |= {f"channel {name}": bundle.close for name, bundle in self._channels.items()}
        for name, close in closes.items():
            await close_plugin(name, close, Silent())
        if self._database is not None:
            await self._database.close()

    async def _phase(self, name: str, check: Callable[[], Awaitable[str]]) -> Phase:
        try:
            return Phase(name=name, ok=True, detail=self._mask(await check()))
        except (CheckFailed, GenlockError) as error:
            return Phase(name=name, ok=False, detail=self._mask(str(error)))
        except Exception as error:  # noqa: BLE001 - the other phases must still run
            return Phase(name=name, ok=False, detail=self._mask(f"unexpected error: {type(error).__name__}: {error}"))

    def _opened(self) -> DatabaseCheck:
        if self._database is None:
            raise CheckFailed("not checked: the database could not be opened")
        return self._database

    def _migrated(self) -> DatabaseCheck:
        require(not self._missing, "not checked: the schema is not up to date; run `genlock migrate`")
        return self._opened()

    async def store(self) -> str:
        """Write, read and roll back; compare the clocks; count the running instances."""
        self._database = database = await open_database_check(self._settings.database_url, observer=Silent())
        skew = abs((await database.store.read_clock()).timestamp() - self._now())
        require(
            skew <= SKEW_SECONDS_MAX,
            f"the database's clock and this machine's differ by {skew:.0f} s: set both by NTP (`timedatectl`)",
        )
        self._missing = await database.missing()
        if self._missing:
            return f"{database.description()}; its schema is not up to date, see migrations"
        await self._check_rollback(database)
        running = await database.store.live_instances(SILENT_SECONDS)
        require(
            database.dialect != "sqlite" or len(running) <= 1,
            f"{len(running)} instances run on one SQLite file, which serves only one: stop all but one, or set "
            "GENLOCK_DATABASE_URL to a postgresql:// address",
        )
        await self._check_webhook_secrets(database)
        return f"{database.description()}; written, read and rolled back; clocks agree; {_instances(len(running))}"

    async def _check_webhook_secrets(self, database: DatabaseCheck) -> None:
        """Open the sealed secret of every endpoint, as the sender of webhooks does."""
        secrets_, lost, after = make_webhook_secrets(self._settings), 0, 0
        while page := await database.store.webhooks_after(after, WEBHOOKS_AT_ONCE):
            after = page[-1].id
            lost += sum(is_lost(secrets_, webhook) for webhook in page)
        require(
            not lost,
            f"webhooks that get no events because their secret cannot be read: {lost}. The bot's token or "
            "GENLOCK_SEALING_KEYS has changed. Add the former token or key at the end of GENLOCK_SEALING_KEYS, or ask "
            "the owners to make new secrets",
        )

    async def _check_rollback(self, database: DatabaseCheck) -> None:
        key = f"doctor:{secrets.token_hex(4)}"
        async with database.rehearsal(TrialClock()) as store:
            await store.kv_put(key, "written")
            entry = await store.kv_get(key)
            require(entry is not None and entry.value == "written", "a written value cannot be read back")
        require(
            await database.store.kv_get(key) is None, "a rolled back value is still there: transactions do not work"
        )

    async def atomic_operations(self) -> str:
        clock = TrialClock()
        async with self._migrated().rehearsal(clock) as store:
            return await check_leases(store, clock)

    async def callback_endpoint(self) -> str:
        """Send callbacks to our own public URL and look for them in the store."""
        public_url = self._settings.public_url
        if public_url is None:
            return "GENLOCK_PUBLIC_URL is not set, so there are no callbacks: Telegram and the providers are polled"
        database = self._migrated()
        bundles = [bundle for bundle in self._bundles.values() if bundle.sample_callback is not None]
        details = [await self._check_callbacks(database, public_url, bundle) for bundle in bundles]
        signing = [
            bundle for bundle in self._bundles.values() if bundle not in bundles and bundle.verify_callback is not None
        ]
        details += [await self._network.check_unsigned_callback(public_url, bundle) for bundle in signing]
        await self._network.check_webhook_secret(public_url)
        return "; ".join([f"callbacks to {public_url} reach this database", *details])

    async def _check_callbacks(self, database: DatabaseCheck, public_url: str, bundle: ProviderBundle) -> str:
        store = database.store
        mark, after = f"doctor-{secrets.token_hex(8)}", await store.last_callback_id()
        try:
            count = await self._network.send_callbacks(public_url, bundle, mark)
            stored = await self._wait_for_callbacks(database, after, mark, count)
        finally:
            await store.delete_callbacks(after, mark.encode())
        require(all(job is None for job, _ in stored), "a forged callback was matched to a job")
        title = self._plugins.title(bundle.name)
        if bundle.verify_callback is None:
            return f"{title}: a callback was stored, a forged one was not trusted"
        return f"{title}: a signed callback was stored, a forged one was refused"

    async def _wait_for_callbacks(
        self, database: DatabaseCheck, after: int, mark: str, count: int
    ) -> list[tuple[int | None, str]]:
        for _ in range(int(ARRIVAL_SECONDS / 0.1)):
            stored = await database.store.find_callbacks(after, mark.encode())
            if len(stored) >= count:
                return stored
            await asyncio.sleep(0.1)
        raise CheckFailed(
            "the service at the public address accepts callbacks but does not store them in this database: it uses "
            "another one, such as a second instance with its own SQLite file. Set the same GENLOCK_DATABASE_URL"
        )

    async def channel(self) -> str:
        """Ask Telegram for the bot's name and the providers for the credit left; report the faults of both."""
        answers = await asyncio.gather(self._network.telegram(), self._providers.check(), return_exceptions=True)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        unexpected = [error for error in errors if not isinstance(error, CheckFailed | GenlockError)]
        if unexpected:
            raise unexpected[0]
        details = "; ".join(str(answer) for answer in answers)
        require(not errors, details)
        return details

    async def migrations(self) -> str:
        database = self._opened()
        missing = await database.missing()
        require(not missing, f"the schema is old, {', '.join(missing)} not applied: run `genlock migrate`")
        differences = await database.differences()
        require(
            not differences,
            f"all migrations are applied, but the schema differs: {'; '.join(differences[:5])}. It was changed by "
            "hand; restore these objects as in stores/sql, or restore a backup",
        )
        return "all migrations are applied; every table, constraint and index is as in a new database"

    async def idempotency(self) -> str:
        async with self._migrated().rehearsal(TrialClock()) as store:
            return await check_replays(store)

    async def money(self) -> str:
        violations = await self._migrated().store.violations(settled=False)
        require(
            not violations,
            f"amounts that do not add up: {len(violations)}; the first: {violations[0] if violations else ''}. Run "
            "`genlock jobs check` for all of them, and copy the database before changing anything",
        )
        return "the ledger sums to zero; every balance is the sum of its entries; every job's hold matches its state"

    def warnings(self) -> list[tuple[str, str | None]]:
        """Return the settings that no plug-in knows, each with the closest known name."""
        return list(self._plugins.unknown_settings())

    async def plugins(self) -> str:
        """Say what became of every installed plug-in, and ask the channels among them whether they work."""
        broken = [
            f"the {plugin.kind} {plugin.name}: {plugin.reason}: {plugin.remedy}" for plugin in self._plugins.left_out
        ]
        healthy = []
        for name, bundle in self._channels.items():
            problem = await self._network.channel_problem(name, bundle)
            broken += [problem] if problem else []
        require(not broken, "; ".join(broken))
        for plugin in self._plugins.installed:
            state = f"waits for {', '.join(plugin.missing)}" if plugin.missing else "in use"
            healthy.append(f"the {plugin.kind} {plugin.name} of {plugin.package} {plugin.version}: {state}")
        return "; ".join(healthy) or "no plug-ins are installed"


def _instances(count: int) -> str:
    return {0: "no instance is running", 1: "one instance is running"}.get(count, f"{count} instances are running")
