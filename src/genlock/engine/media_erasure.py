"""Deletes the files of erased accounts from the media store. The erasure stores the request, and waits for this."""

import re
from collections.abc import Callable

from genlock.domain.errors import MediaStoreError
from genlock.domain.events import Event
from genlock.engine.erasure import FILES_DELETED, FILES_OF
from genlock.ports import KvStore, MediaStore, Observer

PERIOD_SECONDS = 5.0
#: a copy of a result is named after its job
_RESULT = re.compile(r"(\d{1,18})-\d{1,2}\.")


class MediaErasure:
    """Every step may be repeated, by any instance. While the media store does not answer, the requests wait."""

    def __init__(self, store: KvStore, media: MediaStore, observer: Observer) -> None:
        self._store = store
        self._media = media
        self._observer = observer

    async def round(self) -> None:
        requests = [row for row in await self._store.kv_list(FILES_OF) if not row.value.startswith(FILES_DELETED)]
        try:
            days = await self._media.days() if requests else []
            for request in requests:
                account_id = int(request.key.removeprefix(FILES_OF))
                keep = _made_after(int(request.value))
                deleted = sum([await self._media.delete_account_files(day, account_id, keep) for day in days])
                await self._store.kv_put(request.key, f"{FILES_DELETED}{request.value}")
                self._observer.event(Event.ROWS_PRUNED, what="media files of an erased account", rows=deleted)
        except MediaStoreError as error:  # the next round tries again
            self._observer.event(Event.STAGE_ERROR, step="erase media", error=str(error))


def _made_after(job_id: int) -> Callable[[str], bool]:
    """Return whether a file is to be kept: a result that was ordered after the erasure was asked for."""

    def keep(name: str) -> bool:
        found = _RESULT.match(name)
        return found is not None and int(found[1]) > job_id

    return keep
