"""Restore a backup: in one transaction, checked before it is committed, with nothing continued by itself."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from genlock.domain.backup import RestoreSummary
from genlock.domain.errors import BackupUnusable, Refusal, SchemaMismatch
from genlock.stores.backups.database import MIGRATIONS, Target
from genlock.stores.backups.file import Backup, Header
from genlock.stores.migrate import Migration, pending, shipped
from genlock.stores.parking import Parking

#: ids that were given out after the backup are not given out again: buttons in the chats still name them
ID_GAP = 100_000
_CREATED = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.IGNORECASE)


async def restore_backup(backup: Backup, target: Target, *, force: bool, resume: bool) -> RestoreSummary:
    """Replace the contents of the target.

    Open work is put on the operator's lists, because it may have been done after the backup was made. With `resume`
    it continues: nothing has run since the backup. Raises BackupUnusable and Refusal; then nothing has changed.
    """
    header = backup.header
    then, later = _split_migrations(header, target.dialect)
    await _empty(target, force=force)
    await target.migrate(then)
    rows, left_out = await _load(backup, target)
    await target.migrate(later)
    await target.database.session.one("recount_open_api_jobs")
    await target.finish(0 if resume else ID_GAP)
    reason = f"restored from the backup of {header.created_at:%Y-%m-%d %H:%M:%S} UTC"
    parked = {} if resume else await Parking(target.database.session).park(reason)
    await target.database.add_audit(
        key=f"restore:{header.created_at.isoformat()}", actor="operator", action="restore", subject="database",
        detail=reason,
    )  # fmt: skip
    violations = await target.database.violations(settled=False)
    return RestoreSummary(
        created_at=header.created_at,
        rows=rows,
        left_out=tuple(left_out),
        migrated=tuple(f"{migration.number:04d}_{migration.name}" for migration in later),
        parked_jobs=parked.get("jobs", 0),
        parked_updates=parked.get("updates", 0),
        stopped_broadcasts=parked.get("broadcasts", 0),
        violations=tuple(f"{violation.rule} {violation.subject}: {violation.detail}" for violation in violations),
    )


def _split_migrations(header: Header, dialect: str) -> tuple[list[Migration], list[Migration]]:
    """Return the migrations that the backup has, and those that came later. Raises BackupUnusable."""
    known = shipped(dialect)
    numbers = {(migration.number, migration.name): migration for migration in known}
    newer = [migration for migration in header.migrations if migration.number > known[-1].number]
    if newer:
        label = f"{newer[0].number:04d}_{newer[0].name}"
        raise BackupUnusable(f"the backup is of a newer version of genlock (it has {label}): upgrade genlock first")
    applied: Sequence[Migration] = header.migrations
    if header.dialect != dialect:  # the other database has files of its own for the same migrations
        applied = [
            replace(migration, checksum=_checksum(numbers.get((migration.number, migration.name))))
            for migration in applied
        ]
    try:
        later = pending(known, applied)
    except SchemaMismatch as error:
        raise BackupUnusable(f"the backup does not belong to this version of genlock: {error}") from None
    return [migration for migration in known if migration not in later], later


def _checksum(migration: Migration | None) -> str:
    return migration.checksum if migration else ""


async def _empty(target: Target, *, force: bool) -> None:
    """Remove the tables of genlock. Raises Refusal if they have rows, unless `force` is given."""
    try:
        pending(shipped(target.dialect), await target.applied())
    except SchemaMismatch as error:
        raise Refusal(f"the database has another schema ({error}): restore into an empty database") from None
    ours = {name for migration in shipped(target.dialect) for name in _CREATED.findall(migration.text)}
    present = [table for table in await target.tables() if table in ours]
    if not force:
        full = [f"{count} in {table}" for table in present if (count := await target.count(table))]
        if full:
            raise Refusal(
                f"the database is not empty ({', '.join(full[:5])} …). Back it up, then replace everything in it with "
                "--force, or set GENLOCK_DATABASE_URL to an empty database"
            )
    register = [MIGRATIONS] if await target.applied() else []
    await target.drop([*present, *register])


async def _load(backup: Backup, target: Target) -> tuple[dict[str, int], list[str]]:
    """Load every table and compare the counts. Returns them, and what does not belong to genlock."""
    tables = await target.tables()
    counts: dict[str, int] = {}
    left_out = []
    for table, rows in backup.tables():
        if table not in tables:
            left_out.append(table)
            continue
        given = backup.header.tables[table]
        left_out += [f"{table}.{column}" for column in given if column not in tables[table]]
        kinds = {column: tables[table][column] for column in given if column in tables[table]}
        loaded = Counted(_only(rows, [index for index, column in enumerate(given) if column in kinds]))
        try:
            await target.load(table, kinds, loaded)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BackupUnusable(
                f"the backup is damaged: a row of {table} cannot be restored: {error}"[:500]
            ) from error
        counts[table] = await target.count(table)
        if counts[table] != loaded.count:
            raise BackupUnusable(f"{loaded.count} rows of {table} were read but {counts[table]} are in the database")
    return counts, left_out


def _only(rows: Iterator[list[Any]], indexes: Sequence[int]) -> Iterator[list[Any]]:
    """Yield the values at these places of every row."""
    return ([row[index] for index in indexes] for row in rows)


class Counted:
    """An iterator that counts what it yields."""

    def __init__(self, rows: Iterator[list[Any]]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> "Counted":
        return self

    def __next__(self) -> list[Any]:
        row = next(self._rows)
        self.count += 1
        return row
