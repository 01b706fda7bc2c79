"""Make, restore, compare and rewrite backups."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from genlock.app.backups import back_up, restore
from genlock.domain.backup import RestoreSummary
from genlock.stores.backups.postgres import postgres_snapshot
from genlock.stores.backups.sqlite import sqlite_snapshot
from tests.stores.conftest import RecordingObserver

Lines = dict[str, list[list[Any]]]


async def backed_up(url: str, file: Path) -> None:
    await back_up(url, file, overwrite=False)


async def restored(url: str, file: Path, *, force: bool = False, resume: bool = False) -> RestoreSummary:
    return await restore(url, file, observer=RecordingObserver(), force=force, resume=resume)


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
            found[table] = sorted(([row[name] for name in sorted(row)] for row in by_name), key=repr)
    return found


def plain(value: Any) -> Any:
    """An array of texts as its elements: the databases write it with other spaces."""
    return json.loads(value) if isinstance(value, str) and value.startswith('["') else value


def rewritten(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = change(gzip.decompress(file.read_bytes()).splitlines(keepends=True))
    file.write_bytes(gzip.compress(b"".join(lines)))
