"""The folder with the copy of the database from which a backup is made."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time

from genlock.domain.errors import BackupFailed

_PREFIX = ".genlock-backup-"
#: a folder that is younger may not be locked yet by the process that has made it
_LOCKED_AFTER_SECONDS = 60.0


@contextmanager
def private_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that only its owner can enter, and remove it at the end. Raises BackupFailed.

    A process that is killed leaves its folder, with a copy of everything: the next backup removes it.
    """
    try:
        for left in folder.glob(f"{_PREFIX}*"):
            _remove_unused(left)
        private = TemporaryDirectory(dir=folder, prefix=_PREFIX)
    except OSError as error:
        raise BackupFailed(f"{folder} cannot be written to: {error.strerror}") from error
    with private as name, _opened(Path(name)) as descriptor:
        with suppress(OSError):  # a disk without locks: nothing will be removed there
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


def _remove_unused(left: Path) -> None:
    """Remove a folder of this user that no process has locked."""
    with suppress(OSError), _opened(left) as descriptor:  # it is in use, no folder, or removed meanwhile
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or time() - found.st_mtime < _LOCKED_AFTER_SECONDS:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(left)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
