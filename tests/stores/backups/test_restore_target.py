"""Databases that a backup is restored into: of another version, with rows, in use, behind a pooler."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from genlock.app.databases import open_store
from genlock.domain.errors import Refusal, StoreInUse
from genlock.stores.backups import restore as restore_module
from genlock.stores.backups.postgres import postgres_target
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import Migration, shipped
from tests.changes import poll_until
from tests.stores.backups.copies import backed_up, restored, rows_of
from tests.stores.builders import account_with
from tests.stores.conftest import RecordingObserver


async def test_an_older_backup_is_migrated_after_it_was_restored(
    store: SqlDatabase, url: str, new_url: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await account_with(store, 700)
    await backed_up(url, file)
    text = f"""
        ALTER TABLE accounts ADD COLUMN later integer NOT NULL DEFAULT 0;
        UPDATE accounts SET later = available / 100;
        CREATE INDEX {"" if "sqlite" in url else "CONCURRENTLY"} IF NOT EXISTS accounts_later ON accounts (later);
    """  # noqa: S608 - no value of a user is in it
    later = Migration(number=9000, name="later", checksum="sum", text=text)
    monkeypatch.setattr(restore_module, "shipped", lambda dialect: [*shipped(dialect), later])

    summary = await restored(new_url, file)

    assert summary.migrated == ("9000_later",)
    rows = (await rows_of(new_url, tmp_path))["accounts"]
    assert [7 in row for row in rows] == [True]


async def test_a_database_with_rows_is_replaced_only_by_force(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    account_id = await account_with(store, 700)
    await backed_up(url, file)
    other = await opened()
    for _ in range(3):
        await account_with(other, 1)
    await other.close()

    with pytest.raises(Refusal, match=r"not empty \(3 in accounts.*--force"):
        await restored(new_url, file)
    await restored(new_url, file, force=True)

    again = await opened()
    assert (await again.wallet(account_id)).available == 700
    assert len(await again.account_summaries(None, 10)) == 1


async def test_a_database_of_a_newer_version_is_not_replaced(
    url: str, new_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backed_up(url, file)
    future = Migration(number=9000, name="future", checksum="sum", text="CREATE TABLE future (id integer);")
    monkeypatch.setattr(restore_module, "shipped", lambda dialect: [*shipped(dialect), future])
    await restored(new_url, file)
    monkeypatch.undo()

    with pytest.raises(Refusal, match=r"9000_future.*restore into an empty database"):
        await restored(new_url, file, force=True)


@pytest.mark.usefixtures("sqlite")
async def test_nothing_is_restored_under_a_running_sqlite_service(tmp_path: Path, file: Path) -> None:
    url = f"sqlite:///{tmp_path}/genlock.db"
    await backed_up(url, file)
    with pytest.raises(StoreInUse, match="in use by another genlock process"):
        await restored(url, file, force=True)


@pytest.mark.usefixtures("sqlite")
async def test_nothing_is_restored_under_a_running_postgresql_instance(
    tmp_path: Path, postgres_url: str, file: Path
) -> None:
    await backed_up(f"sqlite:///{tmp_path}/genlock.db", file)
    live = await open_store(postgres_url, observer=RecordingObserver())
    await live.heartbeat("alive", 3.0)
    await live.close()
    with pytest.raises(StoreInUse, match=r"instances are running on this database \(1\)"):
        await restored(postgres_url, file, force=True)


async def test_an_instance_that_starts_during_a_restore_waits_for_its_end(postgres_url: str) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    watcher = await asyncpg.connect(postgres_url)
    async with postgres_target(postgres_url, observer=RecordingObserver()):
        starting = asyncio.create_task(open_store(postgres_url, observer=RecordingObserver()))
        await poll_until(lambda: watcher.fetchval(waiting))
        assert not starting.done()
    await (await starting).close()
    await watcher.close()


async def test_a_pooler_may_stand_in_between(pgbouncer_url: str, file: Path) -> None:
    store = await open_store(pgbouncer_url, observer=RecordingObserver())
    account_id = await account_with(store, 700)
    await store.close()

    await backed_up(pgbouncer_url, file)
    await restored(pgbouncer_url, file, force=True)

    store = await open_store(pgbouncer_url, observer=RecordingObserver())
    assert (await store.wallet(account_id)).available == 700
    await store.close()
