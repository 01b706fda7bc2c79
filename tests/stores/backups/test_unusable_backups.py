"""Damaged, foreign and newer files change nothing."""
# ruff: noqa: ASYNC240 - nothing else runs in these event loops while a test reads a file

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genlock.domain.errors import BackupUnusable
from genlock.stores.backups import file as backup_file
from genlock.stores.database import SqlDatabase
from genlock.stores.sqlite import SqliteStore
from tests.stores.backups.copies import backed_up, restored, rewritten, rows_of
from tests.stores.builders import account_with, queued


def with_header(file: Path, **changes: Any) -> None:
    rewritten(file, lambda lines: [json.dumps({**json.loads(lines[0]), **changes}).encode() + b"\n", *lines[1:]])


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-200] ^= 0x55
    file.write_bytes(content)


def with_account_row(lines: list[bytes], *rows: bytes) -> list[bytes]:
    """Replace the first row of the accounts."""
    place = lines.index(b'{"table":"accounts"}\n') + 1
    return [*lines[:place], *rows, *lines[place + 1 :]]


def with_changed_cell(lines: list[bytes], column: str, value: Any) -> list[bytes]:
    """Replace a value in the first row of the jobs."""
    place = lines.index(b'{"table":"jobs"}\n') + 1
    row = json.loads(lines[place])
    row[json.loads(lines[0])["tables"]["jobs"].index(column)] = value
    return [*lines[:place], json.dumps(row).encode() + b"\n", *lines[place + 1 :]]


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut in the middle": (lambda file: os.truncate(file, file.stat().st_size // 2), "cannot be read"),
    "without its last line": (lambda file: rewritten(file, lambda lines: lines[:-1]), "incomplete"),
    "without a row": (lambda file: rewritten(file, with_account_row), "incomplete"),
    "with a flipped byte": (flip_a_byte, "cannot be read|incomplete|damaged"),
    "with a row too short": (
        lambda file: rewritten(file, lambda lines: with_account_row(lines, b"[1]\n")),
        "a row of accounts has 1 of",
    ),
    "with a number that no database has": (
        lambda file: rewritten(file, lambda lines: with_changed_cell(lines, "price", 10**30)),
        "a row of jobs cannot be restored",
    ),
    "with half a character": (
        lambda file: rewritten(file, lambda lines: with_changed_cell(lines, "model", "\ud800")),
        "a row of jobs cannot be restored",
    ),
    "with a table without columns": (
        lambda file: rewritten(file, lambda lines: [*lines[:1], b'{"table":["accounts"]}\n', *lines[1:]]),
        "no columns of the table",
    ),
    "with a list in lists": (
        lambda file: rewritten(file, lambda lines: [*lines[:2], b"[" * 100_000 + b"\n", *lines[2:]]),
        "cannot be read",
    ),
    "with columns of another kind": (lambda file: with_header(file, tables={"accounts": [["id"]]}), "no 'tables'"),
    "with migrations of another kind": (lambda file: with_header(file, migrations=[["a", "b", "c"]]), "first line"),
    "not gzip": (lambda file: file.write_bytes(b"SQLite format 3\0"), "is not a backup made by"),
    "another file": (lambda file: file.write_bytes(gzip.compress(b'{"a":1}\n')), "is not a backup made by"),
    "of a later format": (lambda file: with_header(file, version=2), "newer version of genlock"),
    "of a later schema": (
        lambda file: with_header(file, migrations=[[9999, "future", "x"]]),
        "9999_future.*upgrade genlock first",
    ),
    "of another schema": (lambda file: with_header(file, migrations=[[1, "other", "x"]]), "does not belong"),
    "absent": (lambda file: file.unlink(), "cannot be opened"),
}  # fmt: skip


async def test_a_file_that_is_damaged_or_newer_changes_nothing(
    store: SqlDatabase, url: str, new_url: str, file: Path, tmp_path: Path
) -> None:
    account_id = await account_with(store, 500)
    await queued(store, account_id=account_id)
    await backed_up(url, file)
    whole = file.read_bytes()
    await restored(new_url, file)
    before = await rows_of(new_url, tmp_path)
    for name, (damage, words) in DAMAGES.items():
        file.write_bytes(whole)
        damage(file)
        with pytest.raises(BackupUnusable, match=words):
            await restored(new_url, file, force=True)
        assert await rows_of(new_url, tmp_path) == before, name
    assert account_id


async def test_a_failed_restore_leaves_no_new_sqlite_file(sqlite: SqliteStore, tmp_path: Path, file: Path) -> None:
    await account_with(sqlite)
    await backed_up(f"sqlite:///{tmp_path}/genlock.db", file)
    rewritten(file, lambda lines: lines[:-1])

    with pytest.raises(BackupUnusable):
        await restored(f"sqlite:///{tmp_path}/new/genlock.db", file)

    assert [path.name for path in (tmp_path / "new").iterdir()] == ["genlock.db.lock"]


async def test_a_line_that_would_take_all_memory_is_not_read(
    sqlite: SqliteStore, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await account_with(sqlite)
    await backed_up(f"sqlite:///{tmp_path}/genlock.db", file)
    monkeypatch.setattr(backup_file, "LINE_BYTES_MAX", 1_000_000)
    rewritten(file, lambda lines: [*lines[:2], b'["' + b" " * 1_000_000 + b'"]\n', *lines[2:]])

    with pytest.raises(BackupUnusable, match="a line has more than 1,000,000 bytes"):
        await restored(f"sqlite:///{tmp_path}/new/genlock.db", file)
