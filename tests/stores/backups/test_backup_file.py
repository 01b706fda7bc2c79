"""A backup is of one moment, readable by its owner only, and replaces no other file unasked."""
# ruff: noqa: ASYNC240 - nothing else runs in these event loops while a test reads a file

import asyncio
import gzip
import os
import stat
from pathlib import Path

import asyncpg
import pytest

from genlock.app.backups import back_up
from genlock.app.databases import open_store
from genlock.domain.errors import BackupFailed, GenlockError
from genlock.domain.money import EntryKind
from genlock.stores.database import SqlDatabase
from genlock.stores.sqlite import SqliteStore
from tests.stores.backups.copies import backed_up, restored
from tests.stores.builders import account_with, delivered, queued
from tests.stores.conftest import RecordingObserver


async def test_a_backup_under_load_is_of_one_moment(store: SqlDatabase, url: str, new_url: str, file: Path) -> None:
    """Orders and payments are made all the time; a backup that mixed two moments would not add up."""
    accounts = [await account_with(store, 10_000) for _ in range(5)]
    stop = asyncio.Event()

    async def load(number: int) -> int:
        count = 0
        while not stop.is_set():
            account_id = accounts[(number + count) % 5]
            await delivered(store, account_id=account_id, price=1)
            await store.transfer(account_id, EntryKind.GRANT, 7, f"load:{number}:{count}")
            count += 1
        return count

    writers = [asyncio.create_task(load(number)) for number in range(4)]
    try:
        for number in range(3):
            path = file.with_name(f"{number}.backup")
            await asyncio.to_thread(asyncio.run, backed_up(url, path))
            assert (await restored(new_url, path, force=True)).violations == ()
    finally:
        stop.set()
        made = await asyncio.gather(*writers)
    assert min(made) > 0


async def test_a_backup_can_be_read_by_its_owner_only_whatever_the_umask(
    url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        modes.extend(stat.S_IMODE(part.stat().st_mode) for part in file.parent.glob("*.part"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    before = os.umask(0)
    try:
        await backed_up(url, file)
    finally:
        os.umask(before)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert modes
    assert set(modes) == {0o600}


async def test_a_backup_does_not_replace_a_file_unless_told(url: str, file: Path) -> None:
    file.write_text("precious")

    with pytest.raises(BackupFailed, match="exists already: choose another name, or allow it with --overwrite"):
        await backed_up(url, file)
    assert file.read_text() == "precious"

    await back_up(url, file, overwrite=True)
    assert gzip.decompress(file.read_bytes()).startswith(b'{"format":"genlock backup"')


@pytest.mark.usefixtures("sqlite")
async def test_a_backup_is_not_written_into_a_file_that_another_user_prepared(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that all may write to, it could be read by its owner, or be a link to a file of ours."""
    url, part, ours = f"sqlite:///{tmp_path}/genlock.db", tmp_path / "genlock.backup.part", tmp_path / "ours"
    ours.write_text("ours")
    part.hardlink_to(ours)
    with pytest.raises(BackupFailed, match="has a second name"):
        await backed_up(url, file)
    assert ours.read_text() == "ours"

    part.unlink()
    part.touch()
    fstat = os.fstat

    def of_another_user(descriptor: int) -> os.stat_result:
        found = list(fstat(descriptor))
        found[stat.ST_UID] += 1
        return os.stat_result(found)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", of_another_user)
        with pytest.raises(BackupFailed, match="of another user"):
            await backed_up(url, file)
    await backed_up(url, file)  # what a crash left
    assert not part.exists()


async def test_a_failed_backup_leaves_the_old_file_and_nothing_else(
    url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backed_up(url, file)
    before, folder = file.read_bytes(), sorted(file.parent.iterdir())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BackupFailed, match=r"could not be written: .*No space left"):
        await back_up(url, file, overwrite=True)

    assert file.read_bytes() == before
    assert sorted(file.parent.iterdir()) == folder


async def test_an_empty_database_is_not_backed_up(postgres_url: str, file: Path) -> None:
    with pytest.raises(BackupFailed, match="the database is empty"):
        await backed_up(postgres_url, file)
    assert not file.exists()


async def test_a_damaged_sqlite_file_is_not_backed_up(sqlite: SqliteStore, tmp_path: Path, file: Path) -> None:
    for _ in range(50):
        await queued(sqlite)
    await sqlite.close()
    database = tmp_path / "genlock.db"
    content = bytearray(database.read_bytes())
    content[8192:20480] = b"\xff" * 12288
    database.write_bytes(content)

    with pytest.raises(GenlockError, match=r"damaged|malformed"):
        await backed_up(f"sqlite:///{database}", file)
    assert not file.exists()


async def test_a_postgresql_column_of_an_unknown_type_stops_the_backup(postgres_url: str, file: Path) -> None:
    store = await open_store(postgres_url, observer=RecordingObserver())
    await store.close()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("ALTER TABLE accounts ADD COLUMN place point")
    await connection.close()
    with pytest.raises(BackupFailed, match=r"accounts.place has the type point"):
        await backed_up(postgres_url, file)
