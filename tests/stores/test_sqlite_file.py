"""What the files of an SQLite database hold."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from genlock.domain.draft import SavedDraft
from genlock.domain.errors import StoreInUse
from genlock.engine.erasure import SCRUB_SECONDS, Erasure
from genlock.stores.sqlite import SqliteStore, connect_reader
from genlock.stores.sqlite_file import main_file
from tests.stores.builders import ManualClock, profiled
from tests.stores.conftest import RecordingObserver


async def test_what_was_erased_is_in_no_part_of_the_files(tmp_path: Path) -> None:
    path = tmp_path / "genlock.db"
    clock = ManualClock()
    store = await SqliteStore.open(str(path), clock=clock, observer=RecordingObserver())
    account_id = await profiled(store, "7", name="Zqxname " * 40)
    body = '{"text": "' + "zqxprompt " * 2000 + '"}'
    await store.save_draft(account_id, 7, SavedDraft(version=0, message=None, body=body))
    await Erasure(store).request(account_id, "operator", "erase")
    reader = connect_reader(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM drafts").fetchone()
    assert await Erasure(store).run("bot", older_than=0.0) == [], "another process still reads what was erased"
    reader.close()
    clock.advance(SCRUB_SECONDS)
    assert await Erasure(store).run("bot", older_than=0.0) == [account_id]

    await asyncio.to_thread(assert_no_file_has, tmp_path, b"zqxname", b"zqxprompt")
    await store.close()


async def test_a_database_in_memory_has_no_file() -> None:
    store = await SqliteStore.open(":memory:", clock=ManualClock(), observer=RecordingObserver())
    copy = sqlite3.connect(":memory:")
    copy.deserialize(store.session.connection.serialize())

    assert [main_file(connection) for connection in (store.session.connection, copy)] == ["", ""]
    assert await store.scrub()
    copy.close()
    await store.close()


#: reads the database, as a command of an operator does
READ = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT value FROM kv").fetchall())
connection.close()
"""


@pytest.mark.process
async def test_a_commit_is_in_the_files_although_the_same_process_and_another_one_have_opened_and_closed_them(
    tmp_path: Path, clock: ManualClock, observer: RecordingObserver
) -> None:
    """The doctor of the dashboard does, and then a command. The last one to close the database deletes its journal."""
    path = str(tmp_path / "genlock.db")
    store = await SqliteStore.open(path, clock=clock, observer=observer)
    await store.kv_put("one", "1")

    examined = await SqliteStore.open(path, clock=clock, observer=observer, without_lock=True)
    await examined.close()
    with pytest.raises(StoreInUse):
        await SqliteStore.open(path, clock=clock, observer=observer)
    for seen in ("[('1',)]", "[('1',), ('2',)]"):
        command = await asyncio.create_subprocess_exec(sys.executable, "-c", READ, path, stdout=subprocess.PIPE)
        assert (await command.communicate())[0].decode().strip() == seen
        await store.kv_put("two", "2")

    await store.close()


async def test_a_user_goes_on_while_another_process_reads_what_was_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that copies the file all the time reads it all the time."""
    path = tmp_path / "genlock.db"
    clock = ManualClock()
    store = await SqliteStore.open(str(path), clock=clock, observer=RecordingObserver())
    scrubs: list[bool] = []

    async def scrub() -> bool:
        scrubs.append(await SqliteStore.scrub(store))
        return scrubs[-1]

    monkeypatch.setattr(store, "scrub", scrub)
    ann, bob = await profiled(store, "7", name="Ann"), await profiled(store, "8", name="Bob")
    erasure = Erasure(store)
    for account_id in (ann, bob):
        await erasure.request(account_id, "operator", f"erase:{account_id}")
    reader = connect_reader(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM drafts").fetchone()

    assert await erasure.run("bot", older_than=0.0) == []
    await store.save_draft(ann, 7, SavedDraft(version=0, message=None, body='{"model": "new"}'))
    for _ in range(3):
        assert await erasure.run("bot", older_than=0.0) == []
    clock.advance(SCRUB_SECONDS)
    assert await erasure.run("bot", older_than=0.0) == []
    assert await has_new_draft(store, ann)
    assert scrubs == [False, False], "commits wait once now and then, not once for each user in each round"

    await erasure.request(bob, "operator", "erase again")
    await store.save_draft(bob, 8, SavedDraft(version=0, message=None, body='{"text": "zqxprompt"}'))
    reader.close()
    clock.advance(SCRUB_SECONDS)
    assert await erasure.run("bot", older_than=0.0) == [ann, bob]
    assert await has_new_draft(store, ann)
    await asyncio.to_thread(assert_no_file_has, tmp_path, b"zqxprompt")
    assert await store.kv_list("erase") == await store.kv_list("erase", "bot") == []
    await store.close()


async def has_new_draft(store: SqliteStore, account_id: int) -> bool:
    draft = await store.draft(account_id, 7)
    return draft is not None and draft.body == '{"model": "new"}'


def assert_no_file_has(folder: Path, *texts: bytes) -> None:
    content = b"".join(file.read_bytes().lower() for file in folder.iterdir())
    assert [text for text in texts if text in content] == []
