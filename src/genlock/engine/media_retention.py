"""Deletes old files of the media store, by the day on which they were stored."""

from collections.abc import Callable
from datetime import datetime, timedelta

from genlock.domain.errors import MediaStoreError
from genlock.domain.events import Event
from genlock.domain.stored_file import format_day
from genlock.ports import MediaStore, Observer

PERIOD_SECONDS = 600.0
#: calls of `delete_day` in one round: each deletes up to some thousand files
STEPS_MAX = 20


class MediaRetention:
    """Deletes what is older than the operator keeps it. Two instances may do it at once: deleting can be repeated."""

    def __init__(self, media: MediaStore, observer: Observer, now: Callable[[], datetime], keep_days: int) -> None:
        self._media = media
        self._observer = observer
        self._now = now
        self._keep_days = keep_days

    async def prune(self) -> None:
        oldest = format_day(self._now() - timedelta(days=self._keep_days))
        try:
            for day in [day for day in await self._media.days() if day < oldest][:STEPS_MAX]:
                deleted = await self._media.delete_day(day)
                self._observer.event(Event.ROWS_PRUNED, what="media files", rows=deleted)
        except MediaStoreError as error:  # the next round tries again
            self._observer.event(Event.STAGE_ERROR, step="media retention", error=str(error))
