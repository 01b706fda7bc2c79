"""The API channel: `put` copies a result to the media store, so that delivered and charged means that it is there."""

import asyncio
from collections.abc import Callable

from genlock.domain.delivery import Part
from genlock.domain.errors import ChannelBusy, InvalidResult, MediaStoreError
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.domain.retry import backoff
from genlock.domain.stored_file import StoredFile, make_key
from genlock.media.content_types import content_type_of
from genlock.media.download import AddressRefused, Downloads, FetchedFile, FetchFailed, TooLarge
from genlock.media.hashing import hash_file
from genlock.media.sniff import NotMedia, recognise
from genlock.ports import Channel, MediaStore, Placed

NAME = "api"
RESULT_BYTES_MAX = 1_000_000_000
#: attempts to fetch a result before it counts as invalid
FETCH_TRIES = 5
#: copies at the same time in one instance
COPIES_AT_ONCE = 6


class ApiChannel(Channel):
    """The Channel port over the media store. Its messages are the numbers of the parts: there is nothing to create."""

    name = NAME

    def __init__(
        self, downloads: Downloads, media: MediaStore, *, changed: Callable[[int], None] = lambda _: None
    ) -> None:
        self._downloads = downloads
        self._media = media
        self._changed = changed
        self._slots = asyncio.Semaphore(COPIES_AT_ONCE)

    async def create_placeholder(self, job: Job, index: int) -> str:
        return str(index)

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        if part.kind is not PartKind.FILE:
            return Placed(message=part.message)
        try:
            if part.file is not None and await self._is_stored(part.file):
                return Placed(message=part.message, file=part.file)
            async with self._slots:
                return Placed(message=part.message, file=str(await self._copy(job, index, part)))
        except MediaStoreError as error:
            raise ChannelBusy(backoff(job.attempts, 0.5), str(error), failed=True) from error

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        return await self.put(job, index, part)

    async def notify(self, job: Job) -> None:
        """Wake the requests that wait for this job."""
        self._changed(job.id)

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        """Do nothing: clients read the progress from the job."""

    async def _is_stored(self, reference: str) -> bool:
        stored = StoredFile.parse(reference)
        return await self._media.size(stored.key) == stored.size

    async def _copy(self, job: Job, index: int, part: Part) -> StoredFile:
        try:
            async with self._downloads.fetch(part.value, RESULT_BYTES_MAX) as fetched:
                return await self._store(job, index, fetched)
        except TooLarge as error:
            raise InvalidResult(f"the result is too large: {error}") from error
        except AddressRefused as error:
            raise InvalidResult(str(error)) from error
        except FetchFailed as failed:
            if job.attempts < FETCH_TRIES:
                reason = f"the result cannot be fetched: {failed}"
                raise ChannelBusy(backoff(job.attempts, 0.5), reason, failed=True) from failed
            raise InvalidResult(str(failed)) from failed

    async def _store(self, job: Job, index: int, fetched: FetchedFile) -> StoredFile:
        try:
            found = recognise(fetched.head, fetched.content_type)
        except NotMedia as error:
            raise InvalidResult(str(error)) from error
        stored = StoredFile(
            key=make_key(job.read_at, job.account_id, f"{job.id}-{index}{found.suffix}"),
            content_type=content_type_of(found),
            size=fetched.size,
            sha256=await asyncio.to_thread(hash_file, fetched.file),
        )
        await self._media.put(stored, fetched.file)
        return stored
