"""The backup file: gzip of JSON lines, in the same form whichever database the rows come from.

    {"format": "genlock backup", "version": 1, "dialect": …, "created_at": …, "migrations": […], "tables": {…}}
    {"table": "accounts"}
    [1, "telegram", …]        one row, its columns in the order that the first line gives
    …
    {"rows": {"accounts": 1, …}}

Values are as SQLite stores them: times are microseconds since 1970, booleans 0 or 1, arrays JSON texts, bytes hex.
"""

import fcntl
import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from genlock.domain.errors import BackupFailed, BackupUnusable
from genlock.stores.migrate import Migration

FORMAT, VERSION = "genlock backup", 1
OWNER_ONLY = 0o600
#: far more than a row of genlock has: a few kilobytes of a hostile file could become a line that takes all memory
LINE_BYTES_MAX = 64_000_000
#: fast: the database is read while it serves users, and a higher level saves little
_COMPRESSION = 3
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first line of a backup."""

    dialect: str
    created_at: datetime
    genlock: str
    migrations: Sequence[Migration]
    #: the columns of every table, by its name
    tables: Mapping[str, Sequence[str]]

    def line(self) -> bytes:
        migrations = [[migration.number, migration.name, migration.checksum] for migration in self.migrations]
        return to_line(
            {
                "format": FORMAT,
                "version": VERSION,
                "genlock": self.genlock,
                "dialect": self.dialect,
                "created_at": self.created_at.isoformat(),
                "migrations": migrations,
                "tables": {name: list(columns) for name, columns in self.tables.items()},
            }
        )

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> "Header":
        """Read the line. Raises KeyError, TypeError and ValueError."""
        if not _are_tables(line["tables"]):
            raise KeyError("tables")
        return cls(
            dialect=line["dialect"],
            created_at=datetime.fromisoformat(line["created_at"]),
            genlock=line["genlock"],
            migrations=[
                Migration(number=int(number), name=name, checksum=checksum)
                for number, name, checksum in line["migrations"]
            ],
            tables=line["tables"],
        )


def _are_tables(given: Any) -> bool:
    """Whether these are names of columns by table, as the rest of the file needs them."""
    return isinstance(given, dict) and all(
        isinstance(columns, list)
        and all(isinstance(column, str) for column in columns)
        and len(set(columns)) == len(columns)
        for columns in given.values()
    )


def to_line(value: Any) -> bytes:
    return f"{_encode(value)}\n".encode()


class BackupWriter:
    """Writes the lines of a backup and counts the rows."""

    def __init__(self, output: gzip.GzipFile) -> None:
        self._output = output
        self.rows: dict[str, int] = {}
        #: of the whole file, once it is complete
        self.size_bytes = 0
        self._table = ""

    def begin(self, header: Header) -> None:
        self._output.write(header.line())

    def begin_table(self, name: str) -> None:
        self._table = name
        self.rows[name] = 0
        self._output.write(to_line({"table": name}))

    def write(self, lines: bytes) -> None:
        """Write rows, or a piece of them: every row ends with a line feed, and contains no other."""
        self.rows[self._table] += lines.count(b"\n")
        self._output.write(lines)

    def end(self) -> None:
        self._output.write(to_line({"rows": self.rows}))


@contextmanager
def new_backup(path: Path, *, overwrite: bool) -> Iterator[BackupWriter]:
    """Write a backup that appears under its name only when it is complete, was read back, and is on the disk.

    Only the owner can read it. Raises BackupFailed.
    """
    if path.exists() and not overwrite:
        raise BackupFailed(f"{path} exists already: choose another name, or allow it with --overwrite")
    part = path.with_name(f"{path.name}.part")
    try:
        with _locked(part) as file:
            try:
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=_COMPRESSION) as output:
                    writer = BackupWriter(output)
                    yield writer
                    writer.end()
                file.flush()
                os.fsync(file.fileno())
                writer.size_bytes = file.tell()
                _read_back(part, writer.rows)
                part.replace(path)
                _sync_folder(path.parent)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BackupFailed(f"{path} could not be written: {error}") from error


@contextmanager
def _locked(part: Path) -> Iterator[BinaryIO]:
    """Open the unfinished file, empty, for this process alone; a crashed backup may have left an older one."""
    with os.fdopen(_create_or_open(part), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupFailed(f"another process is writing {part}: wait for it, or choose another name") from None
        os.fchmod(file.fileno(), OWNER_ONLY)
        file.truncate()
        yield file


def _create_or_open(part: Path) -> int:
    try:
        return os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    except FileExistsError:
        descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW)
    found = os.fstat(descriptor)
    # On a shared disk a file of ours may be of another user; all of the folder is, then.
    if found.st_uid not in (os.geteuid(), part.parent.stat().st_uid) or found.st_nlink != 1:
        os.close(descriptor)
        raise BackupFailed(
            f"{part} is of another user, or has a second name (a hard link): look whose it is, then delete it"
        )
    return descriptor


def _read_back(path: Path, rows: Mapping[str, int]) -> None:
    with open_backup(path) as backup:
        found = {name: sum(1 for _ in lines) for name, lines in backup.tables()}
    if found != rows:
        raise BackupFailed(f"the backup was read back and differs from what was written: check the disk of {path}")


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Backup:
    """A backup that is being read, line by line."""

    def __init__(self, path: Path, lines: gzip.GzipFile) -> None:
        self._path = path
        self._lines = lines
        self._next: Any = None
        self.header = self._read_header()

    def tables(self) -> Iterator[tuple[str, Iterator[list[Any]]]]:
        """Yield every table with its rows. Raises BackupUnusable if the file is incomplete or damaged."""
        counted: dict[str, int] = {}
        self._next = self._read()
        while isinstance(self._next, dict) and "table" in self._next:
            name = self._next["table"]
            if not isinstance(name, str) or name not in self.header.tables:
                raise BackupUnusable(f"{self._path} is damaged: its first line has no columns of the table {name!r}")
            counted[name] = 0
            for_table = self._rows(name, counted)
            yield name, for_table
            for _ in for_table:  # what the caller did not read
                pass
        if not isinstance(self._next, dict) or self._next.get("rows") != counted:
            raise BackupUnusable(f"{self._path} is incomplete: its last line does not agree with its rows")

    def _rows(self, name: str, counted: dict[str, int]) -> Iterator[list[Any]]:
        width = len(self.header.tables[name])
        while isinstance(row := self._read(), list):
            if len(row) != width:
                raise BackupUnusable(f"{self._path} is damaged: a row of {name} has {len(row)} of {width} columns")
            counted[name] += 1
            yield row
        self._next = row

    def _read_header(self) -> Header:
        first = self._read()
        if not isinstance(first, dict) or first.get("format") != FORMAT:
            raise BackupUnusable(f"{self._path} is not a backup made by `genlock backup`")
        if first.get("version") != VERSION:
            raise BackupUnusable(f"{self._path} was made by a newer version of genlock: upgrade genlock")
        try:
            return Header.read(first)
        except (KeyError, TypeError, ValueError) as error:
            raise BackupUnusable(f"{self._path} is damaged: its first line has no {error}") from error

    def _read(self) -> Any:
        """Return the next line, None after the last one."""
        try:
            line = self._lines.readline(LINE_BYTES_MAX + 1)
            if len(line) > LINE_BYTES_MAX:
                raise BackupUnusable(f"{self._path} is damaged: a line has more than {LINE_BYTES_MAX:,} bytes")
            return json.loads(line) if line else None
        except (
            OSError,
            EOFError,
            zlib.error,
            ValueError,
            RecursionError,
        ) as error:  # OSError: not gzip, a wrong checksum
            if isinstance(error, gzip.BadGzipFile) and str(error).startswith("Not a gzipped file"):
                raise BackupUnusable(f"{self._path} is not a backup made by `genlock backup`") from error
            raise BackupUnusable(f"{self._path} cannot be read: {error}") from error


@contextmanager
def open_backup(path: Path) -> Iterator[Backup]:
    """Open a backup and read its first line. Raises BackupUnusable."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise BackupUnusable(f"{path} cannot be opened: {error.strerror}") from error
    with file, gzip.GzipFile(fileobj=file, mode="rb") as lines:
        yield Backup(path, lines)
