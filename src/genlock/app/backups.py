"""Backs up and restores the database that a URL names."""

from pathlib import Path

from genlock.app.clock import SystemClock
from genlock.app.databases import SQLITE
from genlock.domain.backup import BackupSummary, RestoreSummary
from genlock.ports import Observer
from genlock.stores.backups.backup import write_backup
from genlock.stores.backups.file import open_backup
from genlock.stores.backups.postgres import postgres_snapshot, postgres_target
from genlock.stores.backups.restore import restore_backup
from genlock.stores.backups.sqlite import sqlite_snapshot, sqlite_target


async def back_up(url: str, path: Path, *, overwrite: bool) -> BackupSummary:
    """Write a backup of the database at a URL, while instances use it. Raises BackupFailed and StoreError."""
    is_sqlite = url.startswith(SQLITE)
    source = sqlite_snapshot(url.removeprefix(SQLITE), path.parent) if is_sqlite else postgres_snapshot(url)
    async with source as snapshot:
        return await write_backup(snapshot, path, overwrite=overwrite, now=SystemClock().now())


async def restore(url: str, path: Path, *, observer: Observer, force: bool, resume: bool) -> RestoreSummary:
    """Replace the database at a URL by a backup of either kind of database, completely or not at all.

    Raises BackupUnusable, Refusal and StoreError.
    """
    with open_backup(path) as backup:
        if url.startswith(SQLITE):
            async with sqlite_target(url.removeprefix(SQLITE), clock=SystemClock(), observer=observer) as file:
                return await restore_backup(backup, file, force=force, resume=resume)
        async with postgres_target(url, observer=observer) as server:
            return await restore_backup(backup, server, force=force, resume=resume)
