"""Where claims begin to read an index of due rows."""

from datetime import datetime, timedelta
from typing import Any

from genlock.stores.rows import Row
from genlock.stores.session import Session

#: how often a claim begins at the start of the index
FULL_SCAN_SECONDS = 30.0


class DueScan:
    """Up to which time an instance has claimed everything that was due, so that the next claim begins there.

    As long as a transaction is open, such as that of a backup, PostgreSQL keeps the index entries of all rows that
    changed since it began. A claim from the start of the index would pass over each of them.

    The claim begins 30 seconds before `due_since`, three times as long as a statement may take: rows become due at the
    present or later, but are visible only when the statement that wrote them ends. What is behind is found by the claim
    from the start, a full scan: a row that was locked while it was due for long, or that an operator's SQL made due in
    the past. After a full scan that failed, such as by a time-out, the next claim is no full scan. A clock that was set
    back does not matter: a claim begins at the latest 30 seconds before `:now`, and a full scan follows.

    SQLite removes entries at once, so its claims always read from the start, and return no row without a due one.
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
