"""The doctor: every fault is named with what to do, and the installation is left as it was."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

import pytest

from genlock.api.webhook_secrets import WebhookSecrets
from genlock.app.clock import SystemClock
from genlock.app.databases import open_store
from genlock.doctor import doctor as module
from genlock.doctor.doctor import Doctor
from genlock.domain.doctor_phase import Phase
from genlock.domain.money import EntryKind
from genlock.domain.webhook import NewWebhook
from genlock.log import Silent
from genlock.sandbox.fleet import simulator_settings
from genlock.sandbox.instance import Instance, running_instance
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.processes import find_free_port
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from genlock.settings import Settings
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite
from tests.packaged import CATALOG
from tests.settings import environment
from tests.shared_postgres import FIGURE_TABLES, TABLES
from tests.stores.builders import queued, update

NAMES = ["store", "atomic operations", "callback endpoint", "channel", "migrations", "idempotency", "money", "plug-ins"]
TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
KEY = "whsec-5f2b8c1d9e3a4706"
#: for tests of what is the same on every database
ON_ONE_DATABASE = pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
#: what begins with `chat:` is written by the bot: its commands and descriptions, the last reconciliation
WRITTEN_BY_THE_LEADER = ("active_seen", "ledger_violations", "money_check", "provider_credit:kie", "retention:last")


@dataclass
class Installation:
    """A world that may be made failed, and what the doctor says of it."""

    url: str
    folder: Path
    telegram: TelegramSimulator
    kie: KieSimulator
    settings: dict[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time

    def environment(self) -> dict[str, str]:
        return simulator_settings(self.telegram.url, self.telegram.token, self.kie, self.url) | self.settings

    async def examine(self) -> dict[str, Phase]:
        with environment(self.environment()):
            phases = await Doctor(Settings(), now=self.now).examine()
        assert [phase.name for phase in phases] == NAMES
        for phase in phases:
            assert not any(secret in phase.detail for secret in (TOKEN, self.kie.key, KEY)), phase
        return {phase.name: phase for phase in phases}

    async def failures(self) -> dict[str, str]:
        return {phase.name: phase.detail for phase in (await self.examine()).values() if not phase.ok}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Instance]:
        port = str(find_free_port())
        self.settings |= {"GENLOCK_PORT": port, "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}"}
        async with running_instance(self.environment()) as instance:
            await instance.wait_for_event("WEBHOOK_SET")
            yield instance

    @asynccontextmanager
    async def store(self) -> AsyncIterator[SqlDatabase]:
        """Open the store in addition to the service that uses it."""
        store: SqlDatabase
        if self.url.startswith("sqlite"):
            path = self.url.removeprefix("sqlite:///")
            store = await SqliteStore.open(path, clock=SystemClock(), observer=Silent(), without_lock=True)
        else:
            store = await PostgresStore.open(self.url, observer=Silent(), migrate=False)
        yield store
        await store.close()

    async def raw(self, statement: str) -> list[tuple[Any, ...]]:
        async with self.store() as store:
            if isinstance(store, SqliteStore):
                return await store.session.call(lambda connection: list(map(tuple, connection.execute(statement))))
            assert isinstance(store, PostgresStore)
            return [tuple(row) for row in await store.session.pool.fetch(statement)]

    async def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all rows except those that a running instance keeps writing."""
        written = ("instances", "roles", *FIGURE_TABLES)
        tables = [table for table in TABLES if table not in written] + ["migrations"]
        rows = {table: await self.raw(f"SELECT * FROM {table} ORDER BY 1") for table in tables}  # noqa: S608
        rows["kv"] = [
            row for row in rows["kv"] if row[0] not in WRITTEN_BY_THE_LEADER and not row[0].startswith("chat:")
        ]
        return rows


@pytest.fixture(params=["sqlite", "postgres"])
async def installation(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Installation]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{new_sqlite(tmp_path)}" if is_sqlite else request.getfixturevalue("migrated_postgres_url")
    store = await open_store(url, observer=Silent())
    account_id = await store.ensure_account("telegram", "1", "2")
    await store.transfer(account_id, EntryKind.TOPUP, 5000, "payment")
    await store.close()
    async with running_telegram(token=TOKEN) as telegram, running_kie(catalog=CATALOG) as kie:
        yield Installation(url, tmp_path, telegram, kie)


async def test_a_working_installation_passes_and_is_left_as_it_was(installation: Installation) -> None:
    before = await installation.everything()
    phases = await installation.examine()
    assert [phase.detail for phase in phases.values() if not phase.ok] == []
    assert await installation.everything() == before


@pytest.mark.usefixtures("forked_services")
@pytest.mark.parametrize("key", [None, KEY])
async def test_a_running_service_receives_callbacks_and_is_left_as_it_was(
    installation: Installation, key: str | None
) -> None:
    if key:
        installation.settings["GENLOCK_KIE_WEBHOOK_KEY"] = key
    async with installation.serving() as instance:
        before = await installation.everything()
        phases = await installation.examine()
        assert [phase.detail for phase in phases.values() if not phase.ok] == []
        assert "reach this database" in phases["callback endpoint"].detail
        assert ("forged one was refused" if key else "not trusted") in phases["callback endpoint"].detail
        assert await installation.everything() == before
        assert instance.status is None


@ON_ONE_DATABASE
@pytest.mark.process
async def test_it_runs_as_a_command(installation: Installation) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "genlock", "doctor", "--json"),
        env={**os.environ, **installation.environment()},
        cwd=installation.folder,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    report = json.loads(out)
    assert (process.returncode, report["ok"]) == (0, True)
    assert [phase["name"] for phase in report["phases"]] == NAMES
    assert all(phase.keys() == {"name", "ok", "detail"} for phase in report["phases"])
    assert report["warnings"] == []


@ON_ONE_DATABASE
@pytest.mark.process
async def test_an_unknown_setting_is_named_without_its_value(installation: Installation) -> None:
    installation.settings["GENLOCK_KIE_WEBHOOK_KEYS"] = KEY
    (installation.folder / ".env").write_text(f"GENLOCK_ADMIN_ID={KEY}\n")
    for as_json in (True, False):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "genlock", "doctor", *(["--json"] if as_json else [])),
            env={**os.environ, **installation.environment()},
            cwd=installation.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        report = (await process.communicate())[0].decode()
        assert process.returncode == 0, "an unknown setting is a warning, not a fault"
        assert "Unknown setting GENLOCK_ADMIN_ID: did you mean GENLOCK_ADMIN_IDS?" in report
        assert "did you mean GENLOCK_KIE_WEBHOOK_KEY?" in report
        assert KEY not in report
        assert not as_json or len(json.loads(report)["warnings"]) == 2


# faults


@ON_ONE_DATABASE
async def test_a_wrong_token_is_named(installation: Installation) -> None:
    installation.settings["GENLOCK_TELEGRAM_TOKEN"] = f"1{TOKEN}"
    failed = await installation.failures()
    assert failed.keys() == {"channel"}
    assert "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather" in failed["channel"]
    assert "credits are left at Kie.ai" in failed["channel"], "the part that works is reported, too"


@ON_ONE_DATABASE
async def test_webhook_secrets_that_no_key_opens_are_named(installation: Installation) -> None:
    async with installation.store() as store:
        for number, token in enumerate((TOKEN, "7123456789:another-token-of-the-same-bot")):
            _, sealed = WebhookSecrets.of_installation([], token).make(f"we_{number}", 1)
            url = "https://example.org"
            new = NewWebhook(account_id=1, public_id=f"we_{number}", url=url, secret=sealed)
            assert await store.add_webhook(new, most=5)
    failed = await installation.failures()
    assert "webhooks that get no events because their secret cannot be read: 1." in failed["store"]
    installation.settings["GENLOCK_SEALING_KEYS"] = "7123456789:another-token-of-the-same-bot"
    assert "store" not in await installation.failures()


@ON_ONE_DATABASE
async def test_a_wrong_provider_key_is_named(installation: Installation) -> None:
    installation.settings["GENLOCK_KIE_API_KEY"] = "wrong-key-of-kie"
    failed = await installation.failures()
    assert failed.keys() == {"channel"}
    assert "check GENLOCK_KIE_API_KEY" in failed["channel"]


@ON_ONE_DATABASE
@pytest.mark.parametrize("name", ["TELEGRAM", "KIE"])
async def test_an_api_url_without_an_answer_is_named(installation: Installation, name: str) -> None:
    installation.settings[f"GENLOCK_{name}_API_URL"] = "http://127.0.0.1:1"
    failed = await installation.failures()
    assert failed.keys() == {"channel"}
    assert f"GENLOCK_{name}_API_URL" in failed["channel"]


@ON_ONE_DATABASE
async def test_a_public_url_without_an_answer_is_named(installation: Installation) -> None:
    installation.settings["GENLOCK_PUBLIC_URL"] = "http://127.0.0.1:1"
    failed = await installation.failures()
    assert failed.keys() == {"callback endpoint"}
    assert "no answer from http://127.0.0.1:1" in failed["callback endpoint"]
    assert "genlock serve" in failed["callback endpoint"]


@ON_ONE_DATABASE
async def test_another_program_at_the_public_url_is_named(installation: Installation) -> None:
    installation.settings["GENLOCK_PUBLIC_URL"] = installation.kie.url
    assert "something in front of genlock answers instead" in (await installation.failures())["callback endpoint"]


@pytest.mark.usefixtures("forked_services")
async def test_a_service_on_another_database_is_named(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ARRIVAL_SECONDS", 0.3)
    ours, installation.url = installation.url, f"sqlite:///{tmp_path}/other.db"
    async with installation.serving():
        installation.url = ours
        failed = await installation.failures()
    assert "uses another one, such as a second instance with its own SQLite file" in failed["callback endpoint"]


@ON_ONE_DATABASE
@pytest.mark.usefixtures("forked_services")
@pytest.mark.parametrize("mine", [None, "another-key-than-theirs"])
async def test_another_webhook_key_is_named(installation: Installation, mine: str | None) -> None:
    installation.settings["GENLOCK_KIE_WEBHOOK_KEY"] = KEY
    async with installation.serving():
        del installation.settings["GENLOCK_KIE_WEBHOOK_KEY"]
        if mine:
            installation.settings["GENLOCK_KIE_WEBHOOK_KEY"] = mine
        failed = await installation.failures()
    assert "has another webhook key for Kie.ai" in failed["callback endpoint"]


@ON_ONE_DATABASE
@pytest.mark.usefixtures("forked_services")
async def test_a_key_that_the_service_lacks_is_named(installation: Installation) -> None:
    async with installation.serving():
        installation.settings["GENLOCK_KIE_WEBHOOK_KEY"] = KEY
        failed = await installation.failures()
        assert "a forged callback was accepted" in failed["callback endpoint"]
        assert await installation.raw("SELECT count(*) FROM inbox") == [(0,)]


@ON_ONE_DATABASE
@pytest.mark.usefixtures("forked_services")
async def test_a_webhook_with_another_url_is_named(installation: Installation) -> None:
    async with installation.serving():
        pass
    installation.settings["GENLOCK_PUBLIC_URL"] = "http://127.0.0.1:2"
    assert "Telegram sends updates to http://127.0.0.1:" in (await installation.failures())["channel"]


async def test_an_old_schema_is_named_and_not_changed(installation: Installation) -> None:
    await installation.raw("DELETE FROM migrations")
    failed = await installation.failures()
    assert "0001_schema" in failed["migrations"]
    assert "run `genlock migrate`" in failed["migrations"]
    assert "genlock migrate" in failed["money"]
    assert "store" not in failed
    assert await installation.raw("SELECT count(*) FROM migrations") == [(0,)]


async def test_a_migration_changed_after_it_was_applied_is_named(installation: Installation) -> None:
    await installation.raw("UPDATE migrations SET checksum = 'x' WHERE number = 1")
    assert "was changed after it had been applied" in (await installation.failures())["migrations"]


async def test_a_schema_that_was_changed_by_hand_is_named(installation: Installation) -> None:
    await installation.raw("DROP INDEX jobs_due")
    failed = await installation.failures()
    assert failed.keys() == {"migrations"}
    assert "index jobs_due" in failed["migrations"]


@pytest.mark.parametrize("seconds", [-30, 30])
async def test_a_clock_that_is_wrong_is_named(installation: Installation, seconds: int) -> None:
    installation.now = lambda: time() + seconds
    failed = await installation.failures()
    assert "differ by 30 s: set both by NTP" in failed["store"]
    assert "that of Telegram differ by" in failed["channel"]


async def test_a_wrong_balance_is_named(installation: Installation) -> None:
    await installation.raw("UPDATE accounts SET available = available + 1")
    failed = await installation.failures()
    assert failed.keys() == {"money"}
    assert "genlock jobs check" in failed["money"]


@ON_ONE_DATABASE
async def test_a_provider_account_without_credit_is_named(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: object) -> int:
        return 0

    monkeypatch.setattr("genlock.providers.kie.client.Kie.credits", nothing)
    assert "no credit is left there: top up" in (await installation.failures())["channel"]


@ON_ONE_DATABASE
async def test_missing_settings_are_named(installation: Installation) -> None:
    installation.settings |= {"GENLOCK_TELEGRAM_TOKEN": "", "GENLOCK_KIE_API_KEY": ""}
    with environment(installation.environment()):
        phases = await Doctor(Settings()).examine()
    [channel] = [phase for phase in phases if phase.name == "channel"]
    assert "GENLOCK_TELEGRAM_TOKEN is not set" in channel.detail
    assert "no provider is configured: set the API key of at least one: GENLOCK_KIE_API_KEY" in channel.detail


async def test_two_instances_on_one_sqlite_file_are_named(installation: Installation) -> None:
    async with installation.store() as store:
        for name in ("first", "second"):
            await store.heartbeat(name, 3.0)
    failed = await installation.failures()
    if installation.url.startswith("sqlite"):
        assert "2 instances run on one SQLite file, which serves only one" in failed["store"]
    else:
        assert failed == {}


@ON_ONE_DATABASE
async def test_an_unreachable_database_is_named(installation: Installation) -> None:
    installation.url = "postgresql://me:hunter2secret@127.0.0.1:1/x"
    failed = await installation.failures()
    assert "cannot connect to PostgreSQL at 127.0.0.1:1/x" in failed["store"]
    assert "hunter2" not in str(failed)
    assert "channel" not in failed


@ON_ONE_DATABASE
async def test_a_missing_database_file_is_not_created(installation: Installation, tmp_path: Path) -> None:
    installation.url = f"sqlite:///{tmp_path}/nothing.db"
    assert "does not exist: set GENLOCK_DATABASE_URL" in (await installation.failures())["store"]
    assert not (tmp_path / "nothing.db").exists()


async def test_due_work_is_not_touched_by_the_checks(installation: Installation) -> None:
    """Leases and queues are checked on a clock at which no real job was due."""
    async with installation.store() as store:
        job = await queued(store, lease=None)
        await store.store_update(update(1))
        before = await installation.everything()
        assert await installation.failures() == {}
        assert await installation.everything() == before
        assert (await store.job(job.id)) is not None
