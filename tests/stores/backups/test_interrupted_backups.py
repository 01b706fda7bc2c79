"""A backup that is ended before it is complete leaves no copy of the database behind."""

import asyncio
import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest

from genlock.app.backups import back_up
from genlock.stores.backups.private_folder import private_folder
from genlock.stores.sqlite import SqliteStore
from tests.stores.builders import account_with

#: `genlock backup` of the database in the environment, as `nohup` runs it: its terminal closes during the first table
WITHOUT_TERMINAL = """
import os
import signal
from genlock.cli import main
from genlock.stores.backups.file import BackupWriter

begin = BackupWriter.begin_table

def begin_and_lose_terminal(writer, name):
    begin(writer, name)
    os.kill(os.getpid(), signal.SIGHUP)

BackupWriter.begin_table = begin_and_lose_terminal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
main()
"""
#: `genlock backup` of the database in the environment, which stops when it has begun the first table
WAITING = """
import threading
from genlock.cli import main
from genlock.stores.backups.file import BackupWriter

begin = BackupWriter.begin_table

def begin_and_wait(writer, name):
    begin(writer, name)
    print("waiting", flush=True)
    threading.Event().wait()

BackupWriter.begin_table = begin_and_wait
main()
"""


@pytest.mark.process
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
async def test_a_backup_that_is_told_to_end_removes_what_it_has_written(
    sqlite: SqliteStore, tmp_path: Path, ending: signal.Signals
) -> None:
    await account_with(sqlite)
    (tmp_path / "backups").mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WAITING, "backup", "backups/daily.backup"),
        cwd=tmp_path,
        env={**os.environ, "GENLOCK_DATABASE_URL": f"sqlite:///{tmp_path}/genlock.db"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"waiting\n"

    process.send_signal(ending)

    assert await process.wait() != 0
    assert names_in(tmp_path / "backups") == set()


@pytest.mark.process
async def test_a_backup_under_nohup_goes_on_when_its_terminal_is_closed(sqlite: SqliteStore, tmp_path: Path) -> None:
    await account_with(sqlite)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WITHOUT_TERMINAL, "backup", "daily.backup"),
        cwd=tmp_path,
        env={**os.environ, "GENLOCK_DATABASE_URL": f"sqlite:///{tmp_path}/genlock.db"},
    )
    assert await process.wait() == 0
    assert (tmp_path / "daily.backup").exists()


async def test_a_copy_that_another_backup_removes_meanwhile_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / ".genlock-backup-removed"
    monkeypatch.setattr(Path, "glob", lambda *_: [removed])
    with private_folder(tmp_path) as private:
        assert private.exists()


async def test_a_backup_removes_the_copies_that_killed_ones_have_left(sqlite: SqliteStore, tmp_path: Path) -> None:
    await account_with(sqlite)
    folder = tmp_path / "backups"
    names = {name: folder / f".genlock-backup-{name}" for name in ("killed", "running", "beginning")}
    for left in names.values():
        left.mkdir(parents=True)
        (left / "copy.db").write_bytes(b"everything")
    for name in ("killed", "running"):
        os.utime(names[name], (0, 0))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.utime(elsewhere, (0, 0))
    (folder / ".genlock-backup-link").symlink_to(elsewhere)
    running = os.open(names["running"], os.O_RDONLY)
    fcntl.flock(running, fcntl.LOCK_EX)

    await back_up(f"sqlite:///{tmp_path}/genlock.db", folder / "daily.backup", overwrite=False)

    kept = {".genlock-backup-running", ".genlock-backup-beginning", ".genlock-backup-link"}
    assert names_in(folder) == {"daily.backup", *kept}
    assert elsewhere.exists()
    os.close(running)


def test_the_copy_of_a_running_backup_is_not_removed(tmp_path: Path) -> None:
    with private_folder(tmp_path) as first:
        os.utime(first, (0, 0))
        with private_folder(tmp_path):
            assert first.exists()
    assert names_in(tmp_path) == set()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
