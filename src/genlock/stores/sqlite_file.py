"""The file of an SQLite database: who has it, and what its write-ahead log holds."""

import asyncio
import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from genlock.domain.errors import StoreInUse, StoreUnavailable

#: the file holds messages and money of users: no other account of the machine may read it
OWNER_ONLY = 0o600
#: the first bytes of a database that is not empty
_MAGIC = b"SQLite format 3\0"
#: how long an emptying of the write-ahead log waits for others that use it; commits wait meanwhile
JOURNAL_SECONDS = 0.5


@contextmanager
def naming_the_file(path: str) -> Iterator[None]:
    """Raise StoreUnavailable, with the path and what to check, if the file cannot be opened or is no database."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(
            f"cannot open the SQLite database {Path(path).absolute()}: {getattr(error, 'strerror', None) or error}. "
            "Check GENLOCK_DATABASE_URL, and that this user may write the file and its folder"
        ) from error


def must_exist(path: str) -> None:
    """Raise StoreUnavailable if there is no such file: SQLite would silently create an empty database."""
    with naming_the_file(path):
        if path == ":memory:" or Path(path).exists():
            return
    raise StoreUnavailable(
        f"{Path(path).absolute()} does not exist: set GENLOCK_DATABASE_URL as the service has it, "
        "or create a new database with `genlock migrate`"
    )


def must_not_be_other_file(path: str) -> None:
    """Raise StoreUnavailable if there is something else: nothing is to be written beside a file that is not ours.

    One that has a lock file is a database, and must not be opened here: when a process closes a file, it loses all
    locks that SQLite has on it for other connections of the process.
    """
    with naming_the_file(path):
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if Path(path).is_file() and not Path(f"{path}.lock").exists():
            with Path(path).open("rb") as file:
                beginning = file.read(len(_MAGIC))
            if beginning and beginning != _MAGIC:
                raise sqlite3.DatabaseError("file is not a database")


def file_holder(path: str) -> str | None:
    """Return the id of the process that has locked this file, or None."""
    lock = Path(f"{path}.lock")
    if not lock.exists():
        return None
    with lock.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return file.read().strip() or "unknown"
    return None


def take_file(path: str) -> IO[str]:
    """Lock the file for this process. The lock is released when the process ends, however it ends."""
    with naming_the_file(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        lock = os.fdopen(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, OWNER_ONLY), "r+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StoreInUse(
            f"{path} is in use by another genlock process (pid {holder}). SQLite serves one process: stop that one, "
            "or set GENLOCK_DATABASE_URL to a postgresql:// address to run several."
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


async def empty_journal(path: str) -> bool:
    """Cut the write-ahead log to nothing: it holds pages as they were. False while another connection reads from it."""
    return not path or await asyncio.to_thread(_checkpoint, path)


def main_file(connection: sqlite3.Connection) -> str:
    """Return the path of the database; empty if it is in memory."""
    file = next(str(file) for _, name, file in connection.execute("PRAGMA database_list") if name == "main")
    return file if Path(file).is_absolute() else ""  # one that was deserialized has a name that is no path


def _checkpoint(path: str) -> bool:
    connection = sqlite3.connect(path, isolation_level=None, timeout=JOURNAL_SECONDS)
    try:
        [busy, _, _] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return not busy
