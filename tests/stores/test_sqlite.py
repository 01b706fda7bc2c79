"""What is SQLite's own: one process, durable commits, off the event loop."""

import asyncio
import os
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

from genlock.domain.errors import StoreError, StoreInUse
from genlock.domain.money import EntryKind
from genlock.ports import Accepted
from genlock.stores.sqlite import SqliteStore
from tests.stores.conftest import Notebook
from tests.stores.lives import ME, HandClock, order, person_with, queued, until

#: Opens the store at argv[1], credits a person, says so, and then goes on crediting until it is killed.
HOLDER = """
import asyncio, sys
from genlock.domain.money import EntryKind
from genlock.stores.sqlite import SqliteStore
from tests.stores.conftest import Notebook
from tests.stores.lives import HandClock

async def main():
    store = await SqliteStore.open(sys.argv[1], clock=HandClock(), observer=Notebook())
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
    """A statement that goes on until it is let go, and keeps the store's thread so long."""

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
        assert self.go.wait(10), "nobody let it go: was the event loop blocked?"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "new" / "genlock.db")


async def test_a_second_process_is_refused_in_plain_words(path: str, clock: HandClock, notebook: Notebook) -> None:
    async with holder(path) as other:
        with pytest.raises(StoreInUse) as refusal:
            await SqliteStore.open(path, clock=clock, observer=notebook)

    assert str(refusal.value) == (
        f"{path} is in use by another genlock process (pid {other.pid}). SQLite serves one process: stop that one, "
        "or set GENLOCK_DATABASE_URL to a postgresql:// address to run several."
    )


async def test_what_was_answered_survives_the_death_of_the_process_and_its_file_is_free(
    path: str, clock: HandClock, notebook: Notebook
) -> None:
    async with holder(path) as other:
        assert other.stdout is not None
        for _ in range(20):
            await other.stdout.readline()
        other.send_signal(signal.SIGKILL)
        rest = (await other.communicate())[0]
        assert other.returncode == -signal.SIGKILL
    answered = 21 + rest.count(b"\n")

    store = await SqliteStore.open(path, clock=clock, observer=notebook)
    account_id = await store.ensure_account("chat", "bot", "7")
    available = (await store.wallet(account_id)).available
    assert available in (answered, answered + 1), "the last one may have been committed and not yet told"
    assert len(await store.ledger_entries(account_id, 10**6)) == available
    assert await store.violations(settled=True) == []
    await store.close()


async def test_nobody_else_on_the_machine_reads_its_files(tmp_path: Path, clock: HandClock, notebook: Notebook) -> None:
    before = os.umask(0o022)
    try:
        store = await SqliteStore.open(str(tmp_path / "own.db"), clock=clock, observer=notebook)
    finally:
        os.umask(before)
    await store.ensure_account("chat", "bot", "7")
    names = ("own.db", "own.db-wal", "own.db-shm", "own.db.lock")
    modes = [oct((tmp_path / name).stat().st_mode & 0o777) for name in names]
    await store.close()
    assert modes == ["0o600"] * 4


async def test_a_closed_store_lets_its_file_go(path: str, clock: HandClock, notebook: Notebook) -> None:
    for _ in range(2):
        store = await SqliteStore.open(path, clock=clock, observer=notebook)
        assert await store.ensure_account("chat", "bot", "7") == 1
        await store.close()


async def test_a_file_is_refused_twice_in_one_process_too(sqlite: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreInUse):
        await SqliteStore.open(str(tmp_path / "genlock.db"), clock=HandClock(), observer=Notebook())

    await person_with(sqlite)


async def test_a_commit_survives_a_power_cut(sqlite: SqliteStore) -> None:
    """In WAL mode only `synchronous = FULL` syncs every commit before it is answered."""
    pragmas = ("journal_mode", "synchronous", "foreign_keys")
    values = await sqlite.session.call(
        lambda connection: [connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas]
    )

    assert values == ["wal", 2, 1]


async def test_the_event_loop_runs_while_a_statement_does(sqlite: SqliteStore) -> None:
    """The statement ends only when the loop lets it: if it blocked the loop, both would wait for ever."""
    held = await Held.by(sqlite)

    held.go.set()

    await held.task


async def test_calls_that_wait_are_committed_together(sqlite: SqliteStore) -> None:
    """A commit costs a sync of the disk: ten callers pay for one."""
    commits = await count_commits(sqlite)
    held = await Held.by(sqlite)
    people = [asyncio.create_task(sqlite.ensure_account("chat", "bot", str(number))) for number in range(10)]
    await until(lambda: sqlite.session._requests.qsize() == len(people))
    held.go.set()

    await asyncio.gather(held.task, *people)
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


async def test_work_that_fails_is_undone_alone(sqlite: SqliteStore) -> None:
    """Others of the same transaction are committed."""

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO limits VALUES ('half', 1)")
        connection.execute("INSERT INTO limits VALUES (NULL, NULL)")

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


async def test_a_caller_that_is_cancelled_takes_nobody_with_it(sqlite: SqliteStore) -> None:
    held = await Held.by(sqlite)
    other = asyncio.create_task(sqlite.ensure_account("chat", "bot", "7"))
    await until(lambda: sqlite.session._requests.qsize() == 1)
    held.task.cancel()
    held.go.set()

    assert await other == 1
    with pytest.raises(asyncio.CancelledError):
        await held.task


async def test_a_full_disk_is_told_and_forgotten(sqlite: SqliteStore) -> None:
    """What cannot be committed is nobody's; when there is room again, work goes on."""
    account_id = await person_with(sqlite, 1000)
    await set_pages_max(sqlite, 0)  # as few as there are now

    answers = await asyncio.gather(
        *(sqlite.accept(order(account_id, input="x" * 100_000), ME) for _ in range(3)),
        sqlite.transfer(account_id, EntryKind.TOPUP, 1, "key", "y" * 100_000),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [StoreError] * 4
    await set_pages_max(sqlite, 10**6)
    assert (await sqlite.wallet(account_id)).held == 0
    assert isinstance(await sqlite.accept(order(account_id), ME), Accepted)
    assert await sqlite.violations(settled=False) == []


async def set_pages_max(store: SqliteStore, pages: int) -> None:
    def work(connection: sqlite3.Connection) -> None:
        count = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages or count}")

    await store.session.call(work)


async def test_whatever_breaks_in_its_thread_is_told_to_those_who_wait(sqlite: SqliteStore) -> None:
    sqlite.session.connection.close()  # not even a roll-back is possible any more

    async with asyncio.timeout(5):
        for _ in range(2):
            with pytest.raises(StoreError):
                await sqlite.wallet(1)


async def test_instances_known_before_it_was_opened_are_dead(path: str, clock: HandClock, notebook: Notebook) -> None:
    first = await SqliteStore.open(path, clock=clock, observer=notebook)
    await first.heartbeat("before", 3.0)
    assert await first.orphaned_instances() == []
    visitor = await SqliteStore.open(path, clock=clock, observer=notebook, beside=True)
    assert list(await visitor.orphaned_instances()) == [], "whoever has the file lives"
    await visitor.close()
    await first.close()

    second = await SqliteStore.open(path, clock=clock, observer=notebook)
    await second.heartbeat("after", 3.0)

    assert await second.orphaned_instances() == ["before"]
    await second.close()


async def test_a_store_in_memory_keeps_nothing(clock: HandClock, notebook: Notebook) -> None:
    for _ in range(2):
        store = await SqliteStore.open(":memory:", clock=clock, observer=notebook)
        assert (await queued(store)).id == 1
        await store.close()
