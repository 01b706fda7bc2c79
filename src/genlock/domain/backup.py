"""What a backup and a restore report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class BackupSummary:
    created_at: datetime
    #: rows by table
    rows: Mapping[str, int]
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class RestoreSummary:
    #: when the backup was made
    created_at: datetime
    #: rows by table
    rows: Mapping[str, int]
    #: tables and columns of the backup that are not genlock's, and were left out
    left_out: tuple[str, ...]
    #: migrations that were applied to the restored data
    migrated: tuple[str, ...]
    #: jobs and updates put on the operator's lists, and broadcasts stopped
    parked_jobs: int
    parked_updates: int
    stopped_broadcasts: int
    #: broken invariants, which were broken when the backup was made
    violations: tuple[str, ...]
