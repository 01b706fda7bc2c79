"""Takes the file of a result for another order: the provider's link while it works, else the channel's copy."""

from genlock.bot.attachment import MEGABYTE
from genlock.bot.context import UpdateContext
from genlock.bot.file_transfer import FileTransfer, WrongContent
from genlock.bot.order.draft import Problem, SentFile
from genlock.bot.order.results import file_id
from genlock.bot.quotas import Quotas
from genlock.domain.delivery import Part
from genlock.domain.errors import ProviderError
from genlock.domain.field import Field, FieldType
from genlock.domain.media_format import MediaType
from genlock.domain.upload import Upload
from genlock.media.budget import TooComplex
from genlock.media.download import AddressRefused, Downloads, FetchFailed, TooLarge
from genlock.media.sniff import choose_suffix, could_be
from genlock.ports import Database
from genlock.ports.media_reader import MediaReader

#: the largest video or sound file that is downloaded to measure it
MEASURED_BYTES_MAX = 50 * MEGABYTE
GONE = Problem(name="result_gone")
_UNREADABLE = (AddressRefused, FetchFailed, TooLarge, TooComplex)


class ResultFiles:
    def __init__(
        self, *, store: Database, transfer: FileTransfer, quotas: Quotas, downloads: Downloads, media: MediaReader
    ) -> None:
        self._store = store
        self._transfer = transfer
        self._quotas = quotas
        self._downloads = downloads
        self._media = media

    async def take(self, ctx: UpdateContext, part: Part, kind: FieldType, target: Field) -> SentFile | Problem:
        """Return the file for a field of another order, as a file that the user sent; or why that is not possible."""
        if (wait := await self._quotas.upload(ctx)) is not None:
            return wait
        return await self._by_link(ctx, part, kind, target) or await self._by_copy(ctx, part, kind)

    async def _by_link(self, ctx: UpdateContext, part: Part, kind: FieldType, target: Field) -> SentFile | None:
        """Return the file at the provider's link; None if it is gone, or too large for the field."""
        most = min(target.max_mb * MEGABYTE if target.max_mb else MEASURED_BYTES_MAX, MEASURED_BYTES_MAX)
        try:
            peeked = await self._downloads.peek(part.value)
            if not could_be(peeked.head, MediaType(kind.value)) or (peeked.size or 0) > most:
                return None
            seconds = None
            if kind is not FieldType.IMAGE:
                async with self._downloads.fetch(part.value, int(most)) as fetched:
                    seconds = await self._media.measure(fetched.file)
        except _UNREADABLE:
            return None
        await self._record(ctx, part.value, part, kind, seconds)
        return SentFile(kind=kind, url=part.value, seconds=seconds)

    async def _by_copy(self, ctx: UpdateContext, part: Part, kind: FieldType) -> SentFile | Problem:
        """Copy the channel's file to the provider, as a file that the user sends."""
        file = file_id(part)
        if file is None:
            return GONE
        try:
            copy, seconds = await self._transfer.copy(file, kind, choose_suffix(None, None, MediaType(kind.value)))
        except (WrongContent, TooComplex, ProviderError):
            return GONE
        await self._record(ctx, copy.key, part, kind, seconds)
        await self._store.save_upload_copy(copy)
        return SentFile(kind=kind, url=copy.key, seconds=seconds)

    async def _record(self, ctx: UpdateContext, key: str, part: Part, kind: FieldType, seconds: float | None) -> None:
        """Record where the channel has the file, so that the new order can be repeated when the link is gone."""
        if (file := file_id(part)) is not None:
            upload = Upload(
                key=key, account_id=ctx.account_id, file=file, kind=kind.value, seconds=seconds, age_seconds=0.0
            )
            await self._store.add_upload(upload)
