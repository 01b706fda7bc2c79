"""Gives the provider that makes an attempt its own copies of the order's files.

A file is uploaded before the intent to submit is recorded. A crash in between leaves the order queued, and at worst an
unused copy at the provider: uploading twice is harmless, ordering twice is not.

The URLs that an order sends are recorded with its attempt: the provider finds the task of a lost answer by its input,
and the copies may have been renewed meanwhile.
"""

import asyncio
import json
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ChannelError, MediaStoreError, ProviderError
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.domain.media_format import MediaType
from genlock.domain.upload import Upload, UploadCopy, file_urls
from genlock.engine.file_storage import FileStorage, NoReadableStorage, ProviderStorage, SourceFailed
from genlock.media.sniff import choose_suffix
from genlock.ports import DraftStore

#: how long a result's own link is passed on instead of a copy: some providers delete results after an hour
RESULT_SECONDS = 1800.0
#: files that one instance passes on to one provider at the same time
FILES_AT_ONCE = 8
#: how long an order waits for the upload of its files to one provider
PASS_ON_SECONDS = 120.0
TOO_LONG = "the upload of the files took too long"
#: how long after an order's deadline a copy must be readable, if it cannot be made again
SPARE_SECONDS = 3600.0

#: returns the content of a user's file from where the user sent it
#: raises ProviderError, ChannelError and MediaStoreError
ReadUpload = Callable[[Upload], AsyncIterator[bytes]]
#: the keys of files in an order's input, each with the URL that the provider gets instead
FileUrls = tuple[tuple[str, str], ...]


class InputFiles:
    def __init__(
        self,
        *,
        store: DraftStore,
        storage: FileStorage,
        catalog: CurrentCatalog,
        pass_on_seconds: float = PASS_ON_SECONDS,
    ) -> None:
        self._store = store
        self._storage = storage
        self._catalog = catalog
        self._pass_on_seconds = pass_on_seconds
        #: by provider: one whose storage does not answer must not stop the files for the others
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(FILES_AT_ONCE))
        #: by key and provider, while an upload goes on
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        #: by channel; the application adds them when it makes the bots and the API
        self.sources: dict[str, ReadUpload] = {}

    async def prepare(self, job: Job, provider: str) -> FileUrls:
        """Upload the job's files to the provider where needed; return the URLs at which it reads them.

        Raises ProviderError if the provider cannot get one of them, NoReadableStorage if it never can. What was
        uploaded until then is kept for the next time.
        """
        uploads = await self._uploads(job)
        left = min(self._pass_on_seconds, (job.deadline_at - job.read_at).total_seconds())
        until = asyncio.get_running_loop().time() + left
        return tuple([(url, await self._prepared(job, upload, url, provider, until)) for url, upload in uploads])

    async def _uploads(self, job: Job) -> list[tuple[str, Upload]]:
        """Return the job's files that the user sent to us, by their URL in the input. Others stay where they are."""
        model, values = self._catalog.get().models.get(job.model), _values(job)
        if model is None or not isinstance(values, dict):
            return []
        found = [(url, await self._store.input_file(url)) for url in dict.fromkeys(file_urls(model, values))]
        return [(url, upload) for url, upload in found if upload is not None and upload.account_id == job.account_id]

    async def _prepared(self, job: Job, upload: Upload, url: str, provider: str, until: float) -> str:
        copies, storage = await self._store.upload_copies(upload.key), self._storage.of(provider)
        if (good := self._good(copies, storage)) is not None:
            return good
        if _is_original(upload, copies):
            return url
        if not self._storage.serves(provider):
            raise NoReadableStorage(f"{provider} stores no files, and cannot read those that other providers store")
        try:
            return await self._upload_once(job, upload, storage, _name(url, upload), until)
        except ProviderError:
            readable = self._readable(job, copies, storage)
            if readable is None and copies:
                raise
            return readable or url  # without recorded copies, the file is still at its URL

    def _good(self, copies: Sequence[UploadCopy], storage: ProviderStorage | None) -> str | None:
        """Return the URL of a copy that need not be made again."""
        if storage is None:
            return self._storage.public_url(copies)
        own = _of(copies, storage.provider)
        return own.url if own and not storage.is_old(own.left_seconds) else None

    def _readable(self, job: Job, copies: Sequence[UploadCopy], storage: ProviderStorage | None) -> str | None:
        """Return the URL of a copy that can be read for long enough, if no other can be made."""
        own = _of(copies, storage.provider) if storage else None
        if own and own.left_seconds > (job.deadline_at - job.read_at).total_seconds() + SPARE_SECONDS:
            return own.url
        return self._storage.public_url(copies)

    async def _upload_once(
        self, job: Job, upload: Upload, storage: ProviderStorage | None, name: str, until: float
    ) -> str:
        """Upload the file, unless another order with it did so meanwhile. Raises ProviderError if that takes long."""
        if asyncio.get_running_loop().time() >= until:
            raise ProviderError(TOO_LONG)
        provider = storage.provider if storage else ""
        lock = self._locks.setdefault((upload.key, provider), asyncio.Lock())
        try:
            async with asyncio.timeout_at(until) as limit, lock:
                good = self._good(await self._store.upload_copies(upload.key), storage)
                if good is not None:
                    return good
                async with self._slots[provider]:
                    copy = await self._upload(job, upload, storage, name)
                limit.reschedule(None)  # what was uploaded is recorded, however long that takes
                return await self._save(replace(copy, key=upload.key))
        except TimeoutError as error:
            raise ProviderError(TOO_LONG) from error

    async def _upload(self, job: Job, upload: Upload, storage: ProviderStorage | None, name: str) -> UploadCopy:
        """Upload the file to the provider, or to any other whose files it can read."""
        source = self.sources.get(job.channel)
        if source is None:
            raise SourceFailed(f"files of the channel {job.channel} cannot be read again")

        def read() -> AsyncIterator[bytes]:
            return _read(source, upload)

        if storage is None:
            return await self._storage.store_public(read, name)
        return await self._storage.store_at(storage, read, name)

    async def _save(self, copy: UploadCopy) -> str:
        """Record the copy; return its URL, or that of the copy that another instance recorded first."""
        storage = self._storage.of(copy.provider)
        return await self._store.save_upload_copy(copy, needed_seconds=storage.needed_seconds if storage else None)


def _values(job: Job) -> object:
    try:
        return json.loads(job.input)
    except ValueError:
        return None  # the provider's adapter refuses the order


async def _read(source: ReadUpload, upload: Upload) -> AsyncIterator[bytes]:
    try:
        async for chunk in source(upload):
            yield chunk
    except (ChannelError, MediaStoreError) as error:
        raise ProviderError(f"the user's file could not be read: {type(error).__name__}") from error


def _is_original(upload: Upload, copies: Sequence[UploadCopy]) -> bool:
    """Whether it is a result's picture at the provider's own link: the channel's copy would be compressed."""
    return not copies and upload.kind == FieldType.IMAGE and upload.age_seconds < RESULT_SECONDS


def _of(copies: Sequence[UploadCopy], provider: str) -> UploadCopy | None:
    return next((copied for copied in copies if copied.provider == provider), None)


def _name(url: str, upload: Upload) -> str:
    """Return a name that cannot be guessed, with the suffix of the file: providers take its type from it."""
    path = url.partition("?")[0].rpartition("/")[2]
    suffix = choose_suffix(path if "." in path else None, None, MediaType(FieldType(upload.kind).value))
    return f"{secrets.token_hex(12)}.{suffix}"
