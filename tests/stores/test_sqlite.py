"""What only SQLite has: one process, durable commits, a thread outside the event loop."""

import asyncio
import os
import re
import signal
import sqlite3
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import pytest

from genlock.domain.errors import StoreError, StoreInUse, StoreUnavailable
from genlock.domain.money import EntryKind
from genlock.ports import Accepted
from genlock.stores.sqlite import SqliteStore
from tests.changes import PATIENCE_SECONDS
from tests.stores.builders import ME, ManualClock, account_with, order, queued, until
from tests.stores.conftest import RecordingObserver

#: Opens the store at argv[1], credits an account, prints a line, and continues crediting until it is killed.
HOLDER = """
import asyncio, sys
from genlock.domain.money import EntryKind
from genlock.stores.sqlite import SqliteStore
from tests.stores.conftest import RecordingObserver
from tests.stores.builders import ManualClock

async def main():
    store = await SqliteStore.open(sys.argv[1], clock=ManualClock(), observer=RecordingObserver())
    account_id = await store.ensure_account("chat", "bot", "7")
    for number in range(1, 10**9):
        await store.transfer(account_id, EntryKind.TOPUP, 1, f"topup:{number}")
        print(number, flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def holder(path: str) -> AsyncIterator[Process]:
    """Another process that has the file and writes to it."""
    root = str(Path(__file__).parents[2])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, path, stdout=PIPE, env={**os.environ, "PYTHONPATH": root}
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"1\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


class Held:
    """A statement that blocks the store's thread until the test releases it."""

    def __init__(self, store: SqliteStore) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        self.task = asyncio.create_task(store.session.call(self._work))

    @classmethod
    async def by(cls, store: SqliteStore) -> Self:
        held = cls(store)
        await until(held.began.is_set)
        return held

    def _work(self, _: sqlite3.Connection) -> None:
        self.began.set()
        assert self.go.wait(PATIENCE_SECONDS), "the test did not release it: was the event loop blocked?"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "new" / "genlock.db")


@pytest.mark.process
async def test_a_second_process_is_refused_with_a_message_that_names_the_first(
    path: str, clock: ManualClock, observer: RecordingObserver
) -> None:
    async with holder(path) as other:
        with pytest.raises(StoreInUse) as refusal:
            await SqliteStore.open(path, clock=clock, observer=observer)

    assert str(refusal.value) == (
        f"{path} is in use by another genlock process (pid {other.pid}). SQLite serves one process: stop that one, "
        "or set GENLOCK_DATABASE_URL to a postgresql:// address to run several."
    )


@pytest.mark.process
async def test_commits_survive_a_killed_process_and_its_file_is_free(
    path: str, clock: ManualClock, observer: RecordingObserver
) -> None:
    async with holder(path) as other:
        assert other.stdout is not None
        for _ in range(20):
            await other.stdout.readline()
        other.send_signal(signal.SIGKILL)
        rest = (await other.communicate())[0]
        assert other.returncode == -signal.SIGKILL
    answered = 21 + rest.count(b"\n")

    store = await SqliteStore.open(path, clock=clock, observer=observer)
    account_id = await store.ensure_account("chat", "bot", "7")
    available = (await store.wallet(account_id)).available
    assert available in (answered, answered + 1), "the last one may have been committed but not printed"
    assert len(await store.ledger_entries(account_id, 10**6)) == available
    assert await store.violations(settled=True) == []
    await store.close()


async def test_the_files_are_readable_by_their_owner_only(
    tmp_path: Path, clock: ManualClock, observer: RecordingObserver
) -> None:
    before = os.umask(0o022)
    try:
        store = await SqliteStore.open(str(tmp_path / "own.db"), clock=clock, observer=observer)
    finally:
        os.umask(before)
    await store.ensure_account("chat", "bot", "7")
    names = ("own.db", "own.db-wal", "own.db-shm", "own.db.lock")
    modes = [oct((tmp_path / name).stat().st_mode & 0o777) for name in names]
    await store.close()
    assert modes == ["0o600"] * 4


def _names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


async def _open_impossible(path: Path, clock: ManualClock, observer: RecordingObserver) -> str:
    """Return what the operator reads."""
    with pytest.raises(StoreUnavailable) as caught:
        await SqliteStore.open(str(path), clock=clock, observer=observer)
    return str(caught.value)


async def test_a_file_that_cannot_be_a_database_is_named_with_the_reason_and_what_to_check(
    tmp_path: Path, clock: ManualClock, observer: RecordingObserver
) -> None:
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "text.db").write_text("this is a letter, and no database at all" * 20)
    reasons = {
        tmp_path / "folder.db": "Is a directory",
        tmp_path / "text.db": "file is not a database",
        tmp_path / "text.db/inside.db": "File exists",
        Path("/proc/genlock.db"): "No such file or directory",
    }
    for path, reason in reasons.items():
        told = await _open_impossible(path, clock, observer)
        assert told == (
            f"cannot open the SQLite database {path}: {reason}. "
            "Check GENLOCK_DATABASE_URL, and that this user may write the file and its folder"
        )
    assert _names_in(tmp_path) == {"folder.db", "text.db"}, "nothing is written beside what is not ours"


async def test_closing_the_store_releases_the_file(path: str, clock: ManualClock, observer: RecordingObserver) -> None:
    for _ in range(2):
        store = await SqliteStore.open(path, clock=clock, observer=observer)
        assert await store.ensure_account("chat", "bot", "7") == 1
        await store.close()


async def test_the_same_process_cannot_open_a_file_twice(sqlite: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreInUse):
        await SqliteStore.open(str(tmp_path / "genlock.db"), clock=ManualClock(), observer=RecordingObserver())

    await account_with(sqlite)


async def test_every_commit_is_synced_to_the_disk(sqlite: SqliteStore) -> None:
    """In WAL mode only `synchronous = FULL` syncs every commit before it is answered."""
    pragmas = ("journal_mode", "synchronous", "foreign_keys")
    values = await sqlite.session.call(
        lambda connection: [connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas]
    )

    assert values == ["wal", 2, 1]


async def test_the_event_loop_runs_while_a_statement_does(sqlite: SqliteStore) -> None:
    """The loop ends the statement: if the statement blocked the loop, neither would end."""
    held = await Held.by(sqlite)

    held.go.set()

    await held.task


async def test_calls_that_wait_are_committed_together(sqlite: SqliteStore) -> None:
    """A commit costs a sync of the disk: ten callers pay for one."""
    commits = await count_commits(sqlite)
    held = await Held.by(sqlite)
    accounts = [asyncio.create_task(sqlite.ensure_account("chat", "bot", str(number))) for number in range(10)]
    await until(lambda: sqlite.session._requests.qsize() == len(accounts))
    held.go.set()

    await asyncio.gather(held.task, *accounts)
    assert commits[0] == 2


async def count_commits(store: SqliteStore) -> list[int]:
    """How many commits the store makes from now on, in a list of one."""
    commits = [0]

    def note(statement: str) -> None:
        commits[0] += statement == "COMMIT"

    await store.session.call(lambda connection: connection.set_trace_callback(note))
    await until(lambda: commits[0] == 1)  # its own
    commits[0] = 0
    return commits


def fail(connection: sqlite3.Connection) -> None:
    """Write a row, then fail."""
    connection.execute("INSERT INTO limits VALUES ('half', 1)")
    connection.execute("INSERT INTO limits VALUES (NULL, NULL)")


async def test_work_that_fails_in_a_transaction_of_its_own_is_undone(sqlite: SqliteStore) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        await sqlite.session.call(fail)

    assert await sqlite.session.call(lambda connection: connection.execute("SELECT * FROM limits").fetchall()) == []


async def test_work_that_fails_is_undone_alone(sqlite: SqliteStore) -> None:
    """The other work of the same transaction is committed."""
    held = await Held.by(sqlite)
    before = asyncio.create_task(sqlite.ensure_account("chat", "bot", "before"))
    failed = asyncio.create_task(sqlite.session.call(fail))
    after = asyncio.create_task(sqlite.ensure_account("chat", "bot", "after"))
    await until(lambda: sqlite.session._requests.qsize() == 3)
    held.go.set()

    answers = await asyncio.gather(held.task, before, failed, after, return_exceptions=True)
    assert isinstance(answers[2], sqlite3.IntegrityError)
    assert [await sqlite.ensure_account("chat", "bot", name) for name in ("before", "after")] == [
        answers[1],
        answers[3],
    ]
    assert await sqlite.session.call(lambda connection: connection.execute("SELECT * FROM limits").fetchall()) == []


async def test_a_cancelled_caller_does_not_affect_the_others(sqlite: SqliteStore) -> None:
    held = await Held.by(sqlite)
    other = asyncio.create_task(sqlite.ensure_account("chat", "bot", "7"))
    await until(lambda: sqlite.session._requests.qsize() == 1)
    held.task.cancel()
    held.go.set()

    assert await other == 1
    with pytest.raises(asyncio.CancelledError):
        await held.task


async def test_a_full_disk_is_reported_and_work_resumes_when_there_is_space(sqlite: SqliteStore) -> None:
    """A commit that fails leaves nothing behind; when there is space again, commits succeed."""
    account_id = await account_with(sqlite, 1000)
    await set_pages_max(sqlite, 0)  # as few as there are now

    answers = await asyncio.gather(
        *(sqlite.accept_job(order(account_id, input="x" * 100_000), ME) for _ in range(3)),
        sqlite.transfer(account_id, EntryKind.TOPUP, 1, "key", "y" * 100_000),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [StoreError] * 4
    await set_pages_max(sqlite, 10**6)
    assert (await sqlite.wallet(account_id)).held == 0
    assert isinstance(await sqlite.accept_job(order(account_id), ME), Accepted)
    assert await sqlite.violations(settled=False) == []


async def set_pages_max(store: SqliteStore, pages: int) -> None:
    def work(connection: sqlite3.Connection) -> None:
        count = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages or count}")

    await store.session.call(work)


async def test_an_error_of_the_thread_reaches_the_waiting_callers(sqlite: SqliteStore) -> None:
    sqlite.session.connection.close()  # now not even a rollback is possible

    async with asyncio.timeout(30):
        for _ in range(2):
            with pytest.raises(StoreError):
                await sqlite.wallet(1)


async def test_instances_in_a_file_that_was_just_locked_are_orphaned(
    path: str, clock: ManualClock, observer: RecordingObserver
) -> None:
    first = await SqliteStore.open(path, clock=clock, observer=observer)
    await first.heartbeat("before", 3.0)
    assert await first.orphaned_instances() == []
    visitor = await SqliteStore.open(path, clock=clock, observer=observer, without_lock=True)
    assert list(await visitor.orphaned_instances()) == [], "the process that has the file is alive"
    await visitor.close()
    await first.close()

    second = await SqliteStore.open(path, clock=clock, observer=observer)
    await second.heartbeat("after", 3.0)

    assert await second.orphaned_instances() == ["before"]
    await second.close()


async def test_a_store_in_memory_is_not_persistent(clock: ManualClock, observer: RecordingObserver) -> None:
    for _ in range(2):
        store = await SqliteStore.open(":memory:", clock=clock, observer=observer)
        assert (await queued(store)).id == 1
        await store.close()


async def test_a_read_by_key_does_not_wait_for_the_thread_and_sees_every_commit(path: str) -> None:
    store = await SqliteStore.open(path, clock=ManualClock(), observer=RecordingObserver())
    try:
        account_id = await account_with(store, 1000)
        job = await queued(store, account_id=account_id)
        held = await Held.by(store)
        found = await asyncio.wait_for(store.order_state(account_id, job.request_key), PATIENCE_SECONDS)
        assert found.job == job
        held.go.set()
        await held.task
        await store.transfer(account_id, EntryKind.TOPUP, 7, "topup")
        assert (await store.order_state(account_id, "key")).available == found.available + 7
    finally:
        await store.close()


async def test_a_read_by_key_that_fails_in_the_event_loop_is_left_to_the_thread(path: str) -> None:
    store = await SqliteStore.open(path, clock=ManualClock(), observer=RecordingObserver())
    try:
        account_id = await account_with(store, 1000)
        reader, store.session.reader = store.session.reader, sqlite3.connect(":memory:")
        assert reader is not None
        reader.close()
        assert (await store.order_state(account_id, "key")).available == 1000
    finally:
        await store.close()


async def test_the_connection_for_reads_cannot_write(path: str) -> None:
    store = await SqliteStore.open(path, clock=ManualClock(), observer=RecordingObserver())
    try:
        assert store.session.reader is not None
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            store.session.reader.execute("DELETE FROM jobs")
    finally:
        await store.close()


async def test_what_runs_in_the_event_loop_only_reads_and_finds_its_rows_by_an_index(path: str) -> None:
    store = await SqliteStore.open(path, clock=ManualClock(), observer=RecordingObserver())
    names = [name for name, query in store.session.queries.items() if query.by_key]
    assert len(names) > 3
    try:
        for name in names:
            [statement] = store.session.statements[name]
            assert store.session.reader is not None
            parameters = dict.fromkeys(re.findall(r"(?<![:\\w]):([a-z_]+)", statement), "1") | {
                "items": "[]",
                "limit": 1,
            }
            plan = store.session.reader.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            scans = [step[3] for step in plan if step[3].startswith("SCAN")]
            # the items of a batch
            assert set(scans) <= {"SCAN i VIRTUAL TABLE INDEX 1:"}, (name, scans)
    finally:
        await store.close()
