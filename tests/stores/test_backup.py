"""Backups of both databases, restored into both: rehearsed with real rows of every table."""
# ruff: noqa: ASYNC240 - nothing else runs in these event loops while a test reads a file

import asyncio
import gzip
import json
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from genlock.app.backups import back_up, restore
from genlock.app.databases import open_store
from genlock.domain.backup import RestoreSummary
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import BackupFailed, BackupUnusable, GenlockError, Refusal, StoreInUse
from genlock.domain.job import AttentionCode, Notice, State
from genlock.domain.money import EntryKind
from genlock.domain.update import UpdateState
from genlock.domain.upload import Upload
from genlock.stores.backups import restore as restore_module
from genlock.stores.backups.postgres import postgres_snapshot, postgres_target
from genlock.stores.backups.sqlite import sqlite_snapshot
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import Migration, shipped
from genlock.stores.sqlite import SqliteStore
from tests.stores.builders import ManualClock, account_with, delivered, end, queued, running, see, submitting, update
from tests.stores.conftest import RecordingObserver
from tests.stores.test_queries import use_jobs, use_updates

Lines = dict[str, list[list[Any]]]
NewUrl = Callable[[], str]


def url_of(store: SqlDatabase, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if isinstance(store, SqliteStore):
        return f"sqlite:///{tmp_path}/genlock.db"
    return str(request.getfixturevalue("shared_postgres_url"))


@pytest.fixture
def url(store: SqlDatabase, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of the database that is backed up."""
    return url_of(store, tmp_path, request)


def empty_database(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/restored/genlock.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def new_url(store: SqlDatabase, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An empty database of the same kind, to restore into."""
    return empty_database("sqlite" if isinstance(store, SqliteStore) else "postgres", tmp_path, request)


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind, to restore into."""
    return empty_database(request.param, tmp_path, request)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "genlock.backup"


async def backed_up(url: str, file: Path) -> None:
    await back_up(url, file, overwrite=False)


async def restored(url: str, file: Path, *, force: bool = False, resume: bool = False) -> RestoreSummary:
    return await restore(url, file, observer=RecordingObserver(), force=force, resume=resume)


@pytest.fixture
async def opened(new_url: str) -> AsyncIterator[Callable[[], Awaitable[SqlDatabase]]]:
    """Open the restored database, and close it at the end."""
    stores: list[SqlDatabase] = []

    async def open_it() -> SqlDatabase:
        stores.append(await open_store(new_url, observer=RecordingObserver(), clock=ManualClock()))
        return stores[-1]

    yield open_it
    for store in stores:
        await store.close()


async def rows_of(url: str, folder: Path) -> Lines:
    """Every row of every table, in the form of a backup and in one order."""
    source = sqlite_snapshot(url.removeprefix("sqlite:///"), folder) if "sqlite" in url else postgres_snapshot(url)
    found: Lines = {}
    async with source as snapshot:
        for table, columns in snapshot.tables.items():
            pieces: list[bytes] = []
            await snapshot.dump(table, pieces.append)
            rows = [[plain(value) for value in json.loads(line)] for line in b"".join(pieces).split(b"\n")[:-1]]
            by_name = [dict(zip(columns, row, strict=True)) for row in rows]
            found[table] = sorted(([one[name] for name in sorted(one)] for one in by_name), key=repr)
    return found


def plain(value: Any) -> Any:
    """An array of texts as its elements: the databases write it with other spaces."""
    return json.loads(value) if isinstance(value, str) and value.startswith('["') else value


async def fill(store: SqlDatabase, clock: ManualClock) -> None:
    """Put rows into every table, with texts and bytes that are hard to copy."""
    await use_jobs(store, clock)
    await use_updates(store)
    account_id = await account_with(store)
    body = json.dumps({"text": 'back\\slash "quote"\ttab\nline\r\x01 \u2028 кот 🐈 {} \\.'}, ensure_ascii=False)
    await store.save_draft(account_id, 8, SavedDraft(version=0, message=None, body=body, uploads=('a"b', "c\\d,é")))
    await store.store_callback("kie", None, "", bytes(range(256)))
    await store.transfer(account_id, EntryKind.TOPUP, 1, "stars:charge")  # the payment that use_jobs added
    await store.take_free_run(account_id, "key", 1)
    await store.add_upload(Upload(address="a", account_id=1, file="f", kind="image", seconds=None, age_seconds=0))
    await store.kv_put("key", "\\N")
    await store.kv_put("other", "")


# what is restored


async def test_a_restore_brings_every_row_back_into_either_database(
    store: SqlDatabase, clock: ManualClock, url: str, any_url: str, file: Path, tmp_path: Path
) -> None:
    await fill(store, clock)
    before = await rows_of(url, tmp_path)
    assert sum(bool(rows) for rows in before.values()) >= 19

    await backed_up(url, file)
    summary = await restored(any_url, file, resume=True)

    after = await rows_of(any_url, tmp_path)
    assert len(after["audit"]) == len(before["audit"]) + 1  # the restore itself
    assert {**after, "audit": []} == {**before, "audit": []}
    assert summary.rows == {table: len(rows) for table, rows in before.items()}
    assert summary.violations == ()
    assert summary.left_out == summary.migrated == ()


async def test_the_restored_database_works(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    job = await queued(store)
    await backed_up(url, file)
    await restored(new_url, file)

    again = await opened()
    assert again.applied == []
    new = await queued(again)
    assert new.id > job.id
    assert (await see(again, job)).price == job.price
    assert await again.violations(settled=False) == []


async def test_postgresql_does_not_give_out_ids_again_that_chats_may_still_name(
    postgres: SqlDatabase, shared_postgres_url: str, postgres_url: str, file: Path
) -> None:
    job = await queued(postgres)
    await backed_up(shared_postgres_url, file)
    later = await queued(postgres)
    await restored(postgres_url, file)

    store = await open_store(postgres_url, observer=RecordingObserver())
    new = await queued(store)
    await store.close()

    assert new.id > later.id > job.id


# what was open


async def test_open_work_waits_for_the_operator_after_a_restore(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    waiting = [await queued(store), await submitting(store), await running(store), await queued(store, None)]
    notice_due = await delivered(store, notice=Notice.WANTED)
    assert notice_due.notice is Notice.DUE
    await store.store_update(update(1))
    await store.store_callback("kie", None, "", b"{}")
    await store.begin_broadcast("text", bot="bot", author="me", request_key="key")
    await backed_up(url, file)

    summary = await restored(new_url, file)

    assert (summary.parked_jobs, summary.parked_updates, summary.stopped_broadcasts) == (4, 1, 1)
    again = await opened()
    listed = await again.jobs_needing_attention(10)
    assert [job.id for job in listed] == [job.id for job in waiting]
    assert {job.attention_code for job in listed} == {AttentionCode.PARKED}
    assert all("restored from the backup of 20" in str(job.attention_reason) for job in listed)
    assert (await see(again, notice_due)).notice is Notice.SENT
    assert [one.note[:22] for one in await again.updates(UpdateState.DEAD, 10)] == ["restored from the back"]
    assert await again.running_broadcast() is None
    assert await again.violations(settled=True) == []


async def test_the_operator_continues_or_cancels_a_restored_job(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    account_id = await account_with(store, 1000)
    polled = await running(store, account_id=account_id)
    dropped = await queued(store, account_id=account_id)
    await backed_up(url, file)
    await restored(new_url, file)

    again = await opened()
    assert await again.retry_job(polled.id)
    assert (await see(again, polled)).attention_reason is None
    assert (await see(again, polled)).state is State.RUNNING
    assert (await again.wallet(account_id)).held == 200
    await end(again, dropped, State.CANCELLED)
    assert (await again.wallet(account_id)).held == 100
    assert await again.violations(settled=False) == []


async def test_resume_leaves_open_work_as_it_was(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    job = await running(store)
    await store.store_update(update(1))
    await backed_up(url, file)

    await restored(new_url, file, resume=True)

    again = await opened()
    assert (await see(again, job)).due_at == job.due_at
    assert len(await again.updates(UpdateState.NEW, 10)) == 1


# a consistent file


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


# a file that cannot be restored


def rewritten(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = change(gzip.decompress(file.read_bytes()).splitlines(keepends=True))
    file.write_bytes(gzip.compress(b"".join(lines)))


def with_header(file: Path, **changes: Any) -> None:
    rewritten(file, lambda lines: [json.dumps({**json.loads(lines[0]), **changes}).encode() + b"\n", *lines[1:]])


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-200] ^= 0x55
    file.write_bytes(content)


def with_account_row(lines: list[bytes], *rows: bytes) -> list[bytes]:
    """Replace the first row of the accounts."""
    place = lines.index(b'{"table":"accounts"}\n') + 1
    return [*lines[:place], *rows, *lines[place + 1 :]]


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut in the middle": (lambda file: os.truncate(file, file.stat().st_size // 2), "cannot be read"),
    "without its last line": (lambda file: rewritten(file, lambda lines: lines[:-1]), "incomplete"),
    "without a row": (lambda file: rewritten(file, with_account_row), "incomplete"),
    "with a flipped byte": (flip_a_byte, "cannot be read|incomplete|damaged"),
    "with a row too short": (
        lambda file: rewritten(file, lambda lines: with_account_row(lines, b"[1]\n")),
        "a row of accounts has 1 of",
    ),
    "not gzip": (lambda file: file.write_bytes(b"SQLite format 3\0"), "cannot be read"),
    "another file": (lambda file: file.write_bytes(gzip.compress(b'{"a":1}\n')), "is not a backup made by"),
    "of a later format": (lambda file: with_header(file, version=2), "newer version of genlock"),
    "of a later schema": (
        lambda file: with_header(file, migrations=[[9999, "future", "x"]]),
        "9999_future.*upgrade genlock first",
    ),
    "of another schema": (lambda file: with_header(file, migrations=[[1, "other", "x"]]), "does not belong"),
    "absent": (lambda file: file.unlink(), "cannot be opened"),
}  # fmt: skip


async def test_a_file_that_is_damaged_or_newer_changes_nothing(
    store: SqlDatabase, url: str, new_url: str, file: Path, tmp_path: Path
) -> None:
    account_id = await account_with(store, 500)
    await backed_up(url, file)
    whole = file.read_bytes()
    await restored(new_url, file)
    before = await rows_of(new_url, tmp_path)
    for name, (damage, words) in DAMAGES.items():
        file.write_bytes(whole)
        damage(file)
        with pytest.raises(BackupUnusable, match=words):
            await restored(new_url, file, force=True)
        assert await rows_of(new_url, tmp_path) == before, name
    assert account_id


async def test_a_failed_restore_leaves_no_new_sqlite_file(sqlite: SqliteStore, tmp_path: Path, file: Path) -> None:
    await account_with(sqlite)
    await backed_up(f"sqlite:///{tmp_path}/genlock.db", file)
    rewritten(file, lambda lines: lines[:-1])

    with pytest.raises(BackupUnusable):
        await restored(f"sqlite:///{tmp_path}/new/genlock.db", file)

    assert [path.name for path in (tmp_path / "new").iterdir()] == ["genlock.db.lock"]


# an older backup, a database in use


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
    with pytest.raises(StoreInUse, match="1 instances are running"):
        await restored(postgres_url, file, force=True)


async def test_an_instance_that_starts_during_a_restore_waits_for_its_end(postgres_url: str) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    watcher = await asyncpg.connect(postgres_url)
    async with postgres_target(postgres_url, observer=RecordingObserver()):
        starting = asyncio.create_task(open_store(postgres_url, observer=RecordingObserver()))
        async with asyncio.timeout(10):
            while not await watcher.fetchval(waiting):  # noqa: ASYNC110 - the server sets no event of ours
                await asyncio.sleep(0.01)
        assert not starting.done()
    await (await starting).close()
    await watcher.close()


async def test_tables_and_columns_of_the_operator_are_left_out_and_named(
    store: SqlDatabase, url: str, new_url: str, file: Path
) -> None:
    account_id = await account_with(store, 700)
    await backed_up(url, file)

    def add(lines: list[bytes]) -> list[bytes]:
        header = json.loads(lines[0])
        header["tables"]["notes"] = ["id"]
        header["tables"]["accounts"].append("mine")
        rows = [json.loads(line) for line in lines[1:]]
        at = rows.index({"table": "accounts"})
        rows[at + 1].append("x")
        end = {"rows": {**rows[-1]["rows"], "notes": 1}}
        return [json.dumps(line).encode() + b"\n" for line in (header, *rows[:-1], {"table": "notes"}, [1], end)]

    rewritten(file, add)
    summary = await restored(new_url, file)

    assert summary.left_out == ("accounts.mine", "notes")
    assert summary.rows["accounts"] == 1
    assert account_id


async def test_a_pooler_may_stand_in_between(pgbouncer_url: str, file: Path) -> None:
    store = await open_store(pgbouncer_url, observer=RecordingObserver())
    account_id = await account_with(store, 700)
    await store.close()

    await backed_up(pgbouncer_url, file)
    await restored(pgbouncer_url, file, force=True)

    store = await open_store(pgbouncer_url, observer=RecordingObserver())
    assert (await store.wallet(account_id)).available == 700
    await store.close()


async def test_a_postgresql_column_of_an_unknown_type_stops_the_backup(postgres_url: str, file: Path) -> None:
    store = await open_store(postgres_url, observer=RecordingObserver())
    await store.close()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("ALTER TABLE accounts ADD COLUMN place point")
    await connection.close()
    with pytest.raises(BackupFailed, match=r"accounts.place has the type point"):
        await backed_up(postgres_url, file)
