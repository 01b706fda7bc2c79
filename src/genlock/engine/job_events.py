"""Keeps the events of jobs: collected in memory, and written to the store about once a second in one statement.

What an instance has not written yet is lost if it crashes, and events that come faster than the store takes them are
dropped and counted. The row of the job, the ledger and the inbox remain the authoritative record.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count, islice
from time import monotonic
from typing import Any

from genlock.domain.errors import StoreError, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job_event import EventRow
from genlock.domain.printable import escape_unprintable
from genlock.ports import JobEventWriter, Observer

PERIOD_SECONDS = 1.0
#: events in memory; at about 15 for each order, those of a thousand orders
WAITING_MAX = 15_000
#: events that one statement writes: encoding them blocks the event loop for some milliseconds
WRITTEN_AT_ONCE = 1_000
#: events of one job in one row
ROW_EVENTS_MAX = 100
TEXT_LENGTH_MAX = 500
CORRELATION_ID_LENGTH_MAX = 100
#: alone they say nothing about a job: every press of a button makes both
_ROUTINE = frozenset({Event.UPDATE_RECEIVED, Event.UPDATE_DONE})
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode

#: when it happened, the event, its correlation id and its fields
_Waiting = tuple[float, Event, str, dict[str, Any]]


class JobEventRecorder:
    """An observer that keeps every event with a correlation id until it is written."""

    ignores_counts = True

    def __init__(
        self, instance: str, observer: Observer, mask: Callable[[str], str], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._instance = instance
        #: counts what is dropped
        self._observer = observer
        self._mask = mask
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._numbers = count(1)
        #: rows whose statement failed: they are written again under the same numbers
        self._unwritten: list[EventRow] = []

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        if not correlation_id:
            return
        if len(self._waiting) >= WAITING_MAX:
            self._observer.count("job_events_dropped")
            return
        self._waiting.append((self._clock(), event, correlation_id, fields))

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Ignore counts."""

    async def write(self, store: JobEventWriter) -> None:
        """Write what has been collected. After a failure it is written by the next call."""
        while self._unwritten or self._waiting:
            if not self._unwritten:
                self._unwritten = self._take_rows()
            await self._write_rows(store)

    async def _write_rows(self, store: JobEventWriter) -> None:
        try:
            if self._unwritten:
                await store.add_job_events(self._instance, self._unwritten)
        except StoreUnavailable:
            raise  # and keep them
        except Exception:
            self._unwritten = []  # the store refuses them; they would be refused again
            raise
        self._unwritten = []

    async def write_last(self, store: JobEventWriter) -> None:
        """Write the rest before the store is closed; report a failure, which must not keep the instance from ending."""
        try:
            await self.write(store)
        except StoreError as error:
            self._observer.event(Event.STAGE_ERROR, step="write_job_events", error=type(error).__name__)

    def _take_rows(self) -> list[EventRow]:
        """Take the next events out of memory, as one row for each correlation id."""
        taken = list(islice(self._waiting, WRITTEN_AT_ONCE))
        for _ in taken:
            self._waiting.popleft()
        groups: dict[str, list[_Waiting]] = {}
        for waiting in taken:
            groups.setdefault(waiting[2], []).append(waiting)
        now = self._clock()
        return [
            EventRow(
                correlation_id=escape_unprintable(correlation_id)[:CORRELATION_ID_LENGTH_MAX],
                number=next(self._numbers),
                events=self._mask(_encode([_entry(waiting, now) for waiting in group])),
            )
            for correlation_id, group in _in_rows(groups)
        ]


def _in_rows(groups: dict[str, list[_Waiting]]) -> list[tuple[str, Sequence[_Waiting]]]:
    return [
        (correlation_id, group[first : first + ROW_EVENTS_MAX])
        for correlation_id, group in groups.items()
        if any(event not in _ROUTINE for _, event, _, _ in group)
        for first in range(0, len(group), ROW_EVENTS_MAX)
    ]


def _entry(waiting: _Waiting, now: float) -> tuple[int, str, dict[str, Any]]:
    at, event, _, fields = waiting
    kept = {name: _cut(value) for name, value in fields.items() if value is not None}
    return round((now - at) * 1000), event.value, kept


def _cut(value: Any) -> Any:
    """Return a value that is short in JSON: numbers and short texts as they are, any other as the start of its text."""
    if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= TEXT_LENGTH_MAX):
        return value
    text = str(value)
    return text if len(text) <= TEXT_LENGTH_MAX else text[: TEXT_LENGTH_MAX - 1] + "…"
