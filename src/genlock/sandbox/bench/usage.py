"""What processes and a PostgreSQL cluster have used so far: processor time, write-ahead log, row updates."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_UPDATES = """
    SELECT relname, n_tup_upd, n_tup_hot_upd, n_tup_ins FROM pg_stat_user_tables
"""


def cpu_seconds(pid: int, *, with_ended_children: bool = False) -> float:
    """Return the processor time that a process has used; 0 if there is no such process here."""
    found = _stat(pid)
    if found is None:
        return 0.0
    # utime, stime, cutime, cstime are the fields 14 to 17 of proc(5); the list begins with the third.
    ticks = sum(int(word) for word in found[11 : 15 if with_ended_children else 13])
    return ticks / _TICKS


def cluster_cpu_seconds(postmaster: int) -> float:
    """Return the processor time of a PostgreSQL server: its backends, living and ended, and its own workers."""
    children = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    living = [pid for pid in children if (found := _stat(pid)) is not None and int(found[1]) == postmaster]
    return cpu_seconds(postmaster, with_ended_children=True) + sum(map(cpu_seconds, living))


def parent_of(pid: int) -> int | None:
    """Return the parent of a process on this machine; None if it does not run here."""
    found = _stat(pid)
    return int(found[1]) if found else None


def _stat(pid: int) -> list[str] | None:
    try:
        return (_PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseUsage:
    """What a database has done so far."""

    cpu_seconds: float
    wal_bytes: int
    #: by table: inserted rows, updates, and those of them that changed no index
    rows: dict[str, tuple[int, int, int]] = field(default_factory=dict)


async def database_usage(connection: "asyncpg.Connection[asyncpg.Record]") -> DatabaseUsage:
    """Read what the server of this connection has done so far. Its statistics are up to a second old."""
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    backend = await connection.fetchval("SELECT pg_backend_pid()")
    wal = await connection.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
    rows = {
        row["relname"]: (row["n_tup_ins"], row["n_tup_upd"], row["n_tup_hot_upd"])
        for row in await connection.fetch(_UPDATES)
    }
    postmaster = parent_of(backend)
    used = cluster_cpu_seconds(postmaster) if postmaster is not None else 0.0
    return DatabaseUsage(cpu_seconds=used, wal_bytes=int(wal), rows=rows)
