"""Where claims begin to read an index of due rows."""

from datetime import datetime, timedelta
from typing import Any

from genlock.stores.rows import Row
from genlock.stores.session import Session

#: a claim begins at the start of the index once in this time
FULL_SCAN_SECONDS = 30.0


class DueScan:
    """Runs claims of due rows, each from the time up to which the instance has claimed everything.

    As long as a transaction is open, such as that of a backup, PostgreSQL keeps the index entries of all rows that
    changed since it began. A claim from the start of the index would pass over each of them.

    A claim begins 30 seconds before `due_since`, three times as long as a statement may take: a row becomes due now or
    later, but is visible only when the statement that wrote it ends. A full scan, from the start of the index, finds
    what is older: a row that was locked for long while it was due, or that an operator's SQL made due in the past.
    After a full scan that failed, such as by a time-out, the next claim is no full scan. A clock that is set back does
    no harm: a claim begins no later than 30 seconds before `:now`, and a full scan follows.

    If nothing is due, the statement returns a row without `was_due_at`, for its `read_at`. SQLite removes index entries
    at once, so its claims always read from the start, and return due rows only.
    """

    def __init__(self, session: Session, statement: str) -> None:
        self._session = session
        self._statement = statement
        #: None: nothing was claimed yet
        self._since: datetime | None = None
        self._full_at: datetime | None = None
        self._is_full_due = True

    async def claim(self, limit: int, **params: Any) -> list[Row]:
        """Run the statement; return the rows that it claimed."""
        if not limit:
            return []
        since = None if self._is_full_due else self._since
        self._is_full_due = False
        rows = await self._session.one(self._statement, limit=limit, due_since=since, **params)
        if not self._session.keeps_dead_entries:
            return rows
        claimed = [row for row in rows if row["was_due_at"] is not None]
        self._note(since, rows[0]["read_at"], claimed, limit)
        return claimed

    def _note(self, since: datetime | None, now: datetime, claimed: list[Row], limit: int) -> None:
        if since is None or self._full_at is None:
            self._full_at = now
        self._is_full_due = not timedelta(0) <= now - self._full_at < timedelta(seconds=FULL_SCAN_SECONDS)
        # With as many rows as were wanted, later ones may wait: those with an earlier time were all claimed.
        self._since = now if len(claimed) < limit else max(row["was_due_at"] for row in claimed)
