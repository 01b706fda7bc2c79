"""Numbered migrations: applied once, in order, recorded with their checksums, and never changed afterwards."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from genlock.domain.errors import SchemaMismatch

#: the table of applied migrations, the same on both databases, so that it needs no migration itself
REGISTER = """
CREATE TABLE IF NOT EXISTS migrations (
    number      integer PRIMARY KEY,
    name        text NOT NULL,
    checksum    text NOT NULL,
    applied_at  text NOT NULL
)
"""
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_CONCURRENTLY = "-- concurrently\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    number: int
    name: str
    checksum: str
    text: str = ""

    @property
    def concurrent(self) -> bool:
        """Whether PostgreSQL runs it outside a transaction, so that indexes are built while others write.

        The first line says so. Every statement must be repeatable: an interrupted migration is run again.
        """
        return self.text.startswith(_CONCURRENTLY)

    @property
    def label(self) -> str:
        return f"{self.number:04d}_{self.name}"


@cache
def shipped(dialect: str) -> tuple[Migration, ...]:
    """Return the migrations of this version, in order."""
    found = []
    for file in (files("genlock.stores") / "sql" / dialect / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            text = file.read_text(encoding="utf-8")
            checksum = hashlib.sha256(text.encode()).hexdigest()
            found.append(Migration(number=int(match[1]), name=match[2], checksum=checksum, text=text))
    return tuple(sorted(found, key=lambda migration: migration.number))


def pending(known: Sequence[Migration], applied: Iterable[Migration]) -> list[Migration]:
    """Return the migrations that are not applied yet. Raises SchemaMismatch if the database has others."""
    by_number = {migration.number: migration for migration in known}
    done = {}
    for old in applied:
        new = by_number.get(old.number)
        label = f"migration {old.number:04d}_{old.name}"
        if new is None:
            raise SchemaMismatch(f"{label} is in the database but not in this version of genlock: upgrade genlock")
        if (new.name, new.checksum) != (old.name, old.checksum):
            raise SchemaMismatch(f"{label} was changed after it had been applied: restore the file as it was released")
        done[old.number] = new
    todo = [migration for migration in known if migration.number not in done]
    if done and todo and todo[0].number < max(done):
        missing = todo[0]
        raise SchemaMismatch(
            f"migration {missing.number:04d}_{missing.name} is missing in the database though later ones were applied"
        )
    return todo
