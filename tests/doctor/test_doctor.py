"""The doctor: every illness is named with its remedy, and a healthy world is left as it was."""

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

from genlock.app import SystemClock, open_store
from genlock.doctor import doctor as module
from genlock.doctor.doctor import Doctor
from genlock.doctor.finding import Phase
from genlock.domain.money import EntryKind
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
from tests.packaged import CATALOG
from tests.stores.builders import queued, update
from tests.stores.conftest import TABLES

NAMES = ["store", "atomic operations", "callback door", "channel", "migrations", "idempotency", "money"]
TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
KEY = "whsec-5f2b8c1d9e3a4706"


@dataclass
class Clinic:
    """A world that may be made ill, and what the doctor says of it."""

    url: str
    folder: Path
    telegram: TelegramSimulator
    kie: KieSimulator
    settings: dict[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time

    def environment(self) -> dict[str, str]:
        return simulator_settings(self.telegram.url, self.telegram.token, self.kie, self.url) | self.settings

    async def examine(self) -> dict[str, Phase]:
        named = {name.removeprefix("GENLOCK_").lower(): value for name, value in self.environment().items()}
        settings = Settings(**named)  # type: ignore[arg-type]
        phases = await Doctor(settings, now=self.now).examine()
        assert [phase.name for phase in phases] == NAMES
        for phase in phases:
            assert not any(secret in phase.detail for secret in (TOKEN, self.kie.key, KEY)), phase
        return {phase.name: phase for phase in phases}

    async def ill(self) -> dict[str, str]:
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
        """Beside whoever has it."""
        store: SqlDatabase
        if self.url.startswith("sqlite"):
            path = self.url.removeprefix("sqlite:///")
            store = await SqliteStore.open(path, clock=SystemClock(), observer=Silent(), beside=True)
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
        """All rows but those that a living instance keeps writing."""
        tables = [table for table in TABLES if table not in ("instances", "roles")] + ["migrations"]
        rows = {table: await self.raw(f"SELECT * FROM {table} ORDER BY 1") for table in tables}  # noqa: S608
        rows["facts"] = [row for row in rows["facts"] if row[0] not in ("active_seen", "ledger_violations")]
        return rows


@pytest.fixture(params=["sqlite", "postgres"])
async def clinic(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Clinic]:
    url = f"sqlite:///{tmp_path}/genlock.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    store = await open_store(url, observer=Silent())
    person = await store.ensure_account("telegram", "1", "2")
    await store.transfer(person, EntryKind.TOPUP, 5000, "payment")
    await store.close()
    async with running_telegram(token=TOKEN) as telegram, running_kie(catalog=CATALOG) as kie:
        yield Clinic(url, tmp_path, telegram, kie)


async def test_a_healthy_world_is_healthy_and_left_as_it_was(clinic: Clinic) -> None:
    before = await clinic.everything()
    phases = await clinic.examine()
    assert [phase.detail for phase in phases.values() if not phase.ok] == []
    assert await clinic.everything() == before


@pytest.mark.parametrize("key", [None, KEY])
async def test_a_running_service_is_called_back_and_left_as_it_was(clinic: Clinic, key: str | None) -> None:
    if key:
        clinic.settings["GENLOCK_KIE_WEBHOOK_KEY"] = key
    async with clinic.serving() as instance:
        before = await clinic.everything()
        phases = await clinic.examine()
        assert [phase.detail for phase in phases.values() if not phase.ok] == []
        assert "reach this database" in phases["callback door"].detail
        assert ("forged one refused" if key else "not believed") in phases["callback door"].detail
        assert await clinic.everything() == before
        assert instance.status is None


async def test_it_runs_as_a_command(clinic: Clinic) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "genlock", "doctor", "--json"),
        env={**os.environ, **clinic.environment()},
        cwd=clinic.folder,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    said = json.loads(out)
    assert (process.returncode, said["ok"]) == (0, True)
    assert [phase["name"] for phase in said["phases"]] == NAMES
    assert all(phase.keys() == {"name", "ok", "detail"} for phase in said["phases"])
    assert said["warnings"] == []


async def test_a_variable_that_is_no_setting_is_named_and_its_value_is_not(clinic: Clinic) -> None:
    clinic.settings["GENLOCK_KIE_WEBHOOK_KEYS"] = KEY
    (clinic.folder / ".env").write_text(f"GENLOCK_ADMIN_ID={KEY}\n")
    for as_json in (True, False):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "genlock", "doctor", *(["--json"] if as_json else [])),
            env={**os.environ, **clinic.environment()},
            cwd=clinic.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode()
        assert process.returncode == 0, "it is worth a word, but nothing is broken"
        assert "GENLOCK_ADMIN_ID is no setting and has no effect: did you mean GENLOCK_ADMIN_IDS?" in said
        assert "did you mean GENLOCK_KIE_WEBHOOK_KEY?" in said
        assert KEY not in said
        assert not as_json or len(json.loads(said)["warnings"]) == 2


# illnesses


async def test_a_wrong_token_is_named(clinic: Clinic) -> None:
    clinic.settings["GENLOCK_TELEGRAM_TOKEN"] = f"1{TOKEN}"
    ill = await clinic.ill()
    assert ill.keys() == {"channel"}
    assert "Telegram does not know GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather" in ill["channel"]
    assert "credits of ours" in ill["channel"], "what is well is said, too"


async def test_a_wrong_provider_key_is_named(clinic: Clinic) -> None:
    clinic.settings["GENLOCK_KIE_API_KEY"] = "wrong-key-of-kie"
    ill = await clinic.ill()
    assert ill.keys() == {"channel"}
    assert "check GENLOCK_KIE_API_KEY" in ill["channel"]


@pytest.mark.parametrize("name", ["TELEGRAM", "KIE"])
async def test_an_address_that_nobody_answers_at_is_named(clinic: Clinic, name: str) -> None:
    clinic.settings[f"GENLOCK_{name}_API_URL"] = "http://127.0.0.1:1"
    ill = await clinic.ill()
    assert ill.keys() == {"channel"}
    assert f"GENLOCK_{name}_API_URL" in ill["channel"]


async def test_a_public_address_that_nobody_answers_at_is_named(clinic: Clinic) -> None:
    clinic.settings["GENLOCK_PUBLIC_URL"] = "http://127.0.0.1:1"
    ill = await clinic.ill()
    assert ill.keys() == {"callback door"}
    assert "nobody answers at http://127.0.0.1:1" in ill["callback door"]
    assert "genlock serve" in ill["callback door"]


async def test_a_stranger_at_the_public_address_is_named(clinic: Clinic) -> None:
    clinic.settings["GENLOCK_PUBLIC_URL"] = clinic.kie.url
    assert "something in front of genlock answers instead" in (await clinic.ill())["callback door"]


async def test_a_service_on_another_database_is_named(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ARRIVAL_SECONDS", 0.3)
    ours, clinic.url = clinic.url, f"sqlite:///{tmp_path}/other.db"
    async with clinic.serving():
        clinic.url = ours
        ill = await clinic.ill()
    assert "uses another one, such as a second instance with an SQLite file" in ill["callback door"]


@pytest.mark.parametrize("mine", [None, "another-key-than-theirs"])
async def test_another_webhook_key_is_named(clinic: Clinic, mine: str | None) -> None:
    clinic.settings["GENLOCK_KIE_WEBHOOK_KEY"] = KEY
    async with clinic.serving():
        del clinic.settings["GENLOCK_KIE_WEBHOOK_KEY"]
        if mine:
            clinic.settings["GENLOCK_KIE_WEBHOOK_KEY"] = mine
        ill = await clinic.ill()
    assert "has another GENLOCK_KIE_WEBHOOK_KEY" in ill["callback door"]


async def test_a_key_that_the_service_lacks_is_named(clinic: Clinic) -> None:
    async with clinic.serving():
        clinic.settings["GENLOCK_KIE_WEBHOOK_KEY"] = KEY
        ill = await clinic.ill()
        assert "a forged callback was taken" in ill["callback door"]
        assert await clinic.raw("SELECT count(*) FROM inbox") == [(0,)]


async def test_a_webhook_that_leads_elsewhere_is_named(clinic: Clinic) -> None:
    async with clinic.serving():
        pass
    clinic.settings["GENLOCK_PUBLIC_URL"] = "http://127.0.0.1:2"
    assert "Telegram brings updates to http://127.0.0.1:" in (await clinic.ill())["channel"]


async def test_an_old_schema_is_named_and_not_touched(clinic: Clinic) -> None:
    await clinic.raw("DELETE FROM migrations WHERE number >= 2")
    ill = await clinic.ill()
    assert "0002_updates" in ill["migrations"]
    assert "run `genlock migrate`" in ill["migrations"]
    assert "genlock migrate" in ill["money"]
    assert "store" not in ill
    assert await clinic.raw("SELECT count(*) FROM migrations") == [(1,)]


async def test_a_changed_past_is_named(clinic: Clinic) -> None:
    await clinic.raw("UPDATE migrations SET checksum = 'x' WHERE number = 1")
    assert "was changed after it had been applied" in (await clinic.ill())["migrations"]


async def test_a_schema_that_was_changed_by_hand_is_named(clinic: Clinic) -> None:
    await clinic.raw("DROP INDEX jobs_due")
    ill = await clinic.ill()
    assert ill.keys() == {"migrations"}
    assert "index jobs_due" in ill["migrations"]


@pytest.mark.parametrize("seconds", [-30, 30])
async def test_a_clock_that_is_wrong_is_named(clinic: Clinic, seconds: int) -> None:
    clinic.now = lambda: time() + seconds
    ill = await clinic.ill()
    assert "differ by 30 s: let both be set by NTP" in ill["store"]
    assert "that of Telegram differ by" in ill["channel"]


async def test_money_that_does_not_add_up_is_named(clinic: Clinic) -> None:
    await clinic.raw("UPDATE accounts SET available = available + 1")
    ill = await clinic.ill()
    assert ill.keys() == {"money"}
    assert "genlock jobs check" in ill["money"]


async def test_an_empty_account_is_named(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object) -> int:
        return 0

    monkeypatch.setattr("genlock.providers.kie.client.Kie.credits", nothing)
    assert "no credit is left there: top up" in (await clinic.ill())["channel"]


async def test_settings_that_are_missing_are_named(clinic: Clinic) -> None:
    clinic.settings |= {"GENLOCK_TELEGRAM_TOKEN": "", "GENLOCK_KIE_API_KEY": ""}
    environment = clinic.environment()
    named = {name.removeprefix("GENLOCK_").lower(): value for name, value in environment.items() if value}
    phases = await Doctor(Settings(**named)).examine()  # type: ignore[arg-type]
    [channel] = [phase for phase in phases if phase.name == "channel"]
    assert "GENLOCK_TELEGRAM_TOKEN is not set" in channel.detail
    assert "GENLOCK_KIE_API_KEY is not set" in channel.detail


async def test_two_instances_on_one_sqlite_file_are_named(clinic: Clinic) -> None:
    async with clinic.store() as store:
        for name in ("first", "second"):
            await store.heartbeat(name, 3.0)
    ill = await clinic.ill()
    if clinic.url.startswith("sqlite"):
        assert "2 instances run on one SQLite file, which serves one" in ill["store"]
    else:
        assert ill == {}


async def test_a_database_that_is_away_is_named(clinic: Clinic) -> None:
    clinic.url = "postgresql://me:hunter2secret@127.0.0.1:1/x"
    ill = await clinic.ill()
    assert "cannot connect to PostgreSQL at 127.0.0.1:1/x" in ill["store"]
    assert "hunter2" not in str(ill)
    assert "channel" not in ill


async def test_a_file_that_does_not_exist_is_not_made(clinic: Clinic, tmp_path: Path) -> None:
    clinic.url = f"sqlite:///{tmp_path}/nothing.db"
    assert "does not exist: set GENLOCK_DATABASE_URL" in (await clinic.ill())["store"]
    assert not (tmp_path / "nothing.db").exists()


async def test_work_that_is_due_is_not_touched_by_what_is_tried_out(clinic: Clinic) -> None:
    """Leases and lanes are tried in a time when nothing real was due."""
    async with clinic.store() as store:
        job = await queued(store, lease=None)
        await store.store_update(update(1))
        before = await clinic.everything()
        assert await clinic.ill() == {}
        assert await clinic.everything() == before
        assert (await store.job(job.id)) is not None
