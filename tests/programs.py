"""Programs that tests run and the wheels do not bring: `make provision` finds them and records where they are."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

RECORD = Path(sys.prefix) / "test-programs.json"


class ProgramMissing(Exception):
    """A program cannot be found, installed or used."""


@dataclass(frozen=True)
class Program:
    path: Path
    #: variables to set in addition to those of this process
    environment: Mapping[str, str] = field(default_factory=dict)


def write_record(programs: Mapping[str, Program], record: Path = RECORD) -> None:
    rows = {
        name: {"path": str(program.path), "environment": dict(program.environment)}
        for name, program in programs.items()
    }
    record.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def recorded(name: str, record: Path = RECORD) -> Program:
    """Return the program that the last `make provision` found."""
    rows = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if name not in rows:
        raise ProgramMissing(f"{name} has not been looked for: run `make provision`")
    return Program(Path(rows[name]["path"]), rows[name]["environment"])
