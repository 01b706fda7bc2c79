"""Write a backup: every row of every table, as they were at one moment."""

from datetime import datetime
from pathlib import Path

from genlock import __version__
from genlock.domain.backup import BackupSummary
from genlock.domain.errors import BackupFailed
from genlock.stores.backups.database import Snapshot
from genlock.stores.backups.file import Header, new_backup


async def write_backup(snapshot: Snapshot, path: Path, *, overwrite: bool, now: datetime) -> BackupSummary:
    """Write the snapshot to a file that only its owner can read. Raises BackupFailed, and then there is no file."""
    if not snapshot.migrations:
        raise BackupFailed("the database is empty, so there is nothing to back up: check GENLOCK_DATABASE_URL")
    header = Header(
        dialect=snapshot.dialect,
        created_at=now,
        genlock=__version__,
        migrations=snapshot.migrations,
        tables={name: list(columns) for name, columns in snapshot.tables.items()},
    )
    with new_backup(path, overwrite=overwrite) as writer:
        writer.begin(header)
        for table in snapshot.tables:
            writer.begin_table(table)
            await snapshot.dump(table, writer.write)
    return BackupSummary(created_at=now, rows=writer.rows, size_bytes=writer.size_bytes)
