"""Where users' files are stored: at the providers, whose models read them by URL."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from genlock.domain.errors import ProviderError
from genlock.domain.upload import UploadCopy
from genlock.ports.provider import UPLOAD_SECONDS, UploadFile

FOLDER = "genlock"
#: for how long a provider that failed to store a file is tried after the others
AVOIDED_SECONDS = 60.0

#: returns the content of a file from its beginning, each time it is called
ReadContent = Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderStorage:
    """The storage of one provider."""

    provider: str
    upload: UploadFile
    #: seconds for which a stored file can be read
    keep_seconds: float = UPLOAD_SECONDS
    #: whether models of other providers can read a stored file, too
    is_public: bool = True

    @property
    def needed_seconds(self) -> float:
        """How long a file must be readable to be used: an order may wait before the provider reads its files."""
        return self.keep_seconds / 3

    def is_old(self, left_seconds: float) -> bool:
        """Whether a file expires too soon to be used."""
        return left_seconds < self.needed_seconds


class FileStorage:
    """Stores a file at the first provider that takes it."""

    def __init__(self, storages: Sequence[ProviderStorage], *, now: Callable[[], float] = monotonic) -> None:
        #: storages whose files the models of all providers can read come first
        self._storages = sorted(storages, key=lambda storage: not storage.is_public)
        self._now = now
        self._failed_at: dict[str, float] = {}

    def of(self, provider: str) -> ProviderStorage | None:
        """Return the provider's own storage; None if it has none."""
        return next((storage for storage in self._storages if storage.provider == provider), None)

    def is_old(self, age_seconds: float) -> bool:
        """Whether a file of this age must be stored again, whichever of the preferred providers has it."""
        preferred = [storage for storage in self._storages if storage.is_public] or self._storages
        return any(storage.is_old(storage.keep_seconds - age_seconds) for storage in preferred)

    def serves(self, provider: str) -> bool:
        """Whether the provider's models can read files that are stored here: at its own storage, or at a public one."""
        return any(storage.is_public or storage.provider == provider for storage in self._storages)

    async def store(self, read: ReadContent, name: str) -> UploadCopy:
        """Store a file where the models of all providers can read it, if one such provider takes it.

        Its URL becomes the file's key. Raises ProviderError if no provider takes it.
        """
        return await self._store_at_first(self._storages, read, name)

    async def store_public(self, read: ReadContent, name: str) -> UploadCopy:
        """Store a file where the models of all providers can read it. Raises ProviderError if no provider takes it."""
        return await self._store_at_first([storage for storage in self._storages if storage.is_public], read, name)

    async def _store_at_first(self, storages: Sequence[ProviderStorage], read: ReadContent, name: str) -> UploadCopy:
        error: ProviderError | None = None
        for storage in sorted(storages, key=lambda storage: self._is_avoided(storage.provider)):
            try:
                return await self.store_at(storage, read, name)
            except SourceFailed:
                raise
            except ProviderError as failure:
                error = failure
        raise error or ProviderError("no configured provider stores files")

    async def store_at(self, storage: ProviderStorage, read: ReadContent, name: str) -> UploadCopy:
        """Store a file at one provider. Raises ProviderError, or SourceFailed if the file itself cannot be read."""
        content = _Content(read)
        try:
            url = await storage.upload(content.chunks(), name, FOLDER)
        except Exception as error:
            if content.error is not None:
                raise SourceFailed(str(content.error)) from content.error
            self._failed_at[storage.provider] = self._now()
            if isinstance(error, ProviderError):
                raise
            raise ProviderError(f"{type(error).__name__}: {error}") from error  # a plug-in may raise anything
        return UploadCopy(key=url, provider=storage.provider, url=url, left_seconds=storage.keep_seconds)

    def public_url(self, copies: Sequence[UploadCopy]) -> str | None:
        """Return the URL of a copy that the models of every provider can read and that is not old."""
        for copy in copies:
            storage = self.of(copy.provider)
            if storage is not None and storage.is_public and not storage.is_old(copy.left_seconds):
                return copy.url
        return None

    def _is_avoided(self, provider: str) -> bool:
        failed_at = self._failed_at.get(provider)
        return failed_at is not None and self._now() - failed_at < AVOIDED_SECONDS


class NoReadableStorage(ProviderError):
    """A provider can read no file that is stored at the configured providers."""


class SourceFailed(ProviderError):
    """A file cannot be read from where the user sent it, so no provider could store it."""


class _Content:
    """The content of a file while it is uploaded; remembers why it could not be read."""

    def __init__(self, read: ReadContent) -> None:
        self._read = read
        self.error: Exception | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._read():
                yield chunk
        except Exception as error:
            self.error = error
            raise
