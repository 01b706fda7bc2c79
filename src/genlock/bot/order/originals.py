"""Sends the original of a picture as a document, from our own record."""

from collections.abc import Mapping

from telegram import InputFile

from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders
from genlock.bot.order.results import file_id, is_document
from genlock.bot.screen_context import public_code
from genlock.channels.telegram.file_kinds import UPLOAD_BYTES_MAX
from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.domain.upload import Upload
from genlock.media.download import AddressRefused, Downloads, FetchFailed, TooLarge
from genlock.media.sniff import NotMedia, recognise
from genlock.ports import Database


class Originals:
    def __init__(
        self, *, view: ChatView, drafts: DraftView, orders: Orders, store: Database, downloads: Downloads
    ) -> None:
        self._view = view
        self._store = store
        self._drafts = drafts
        self._orders = orders
        self._downloads = downloads
        self.button_handlers: Mapping[str, Handler] = {"original": self._press}

    async def _press(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (found := await self._orders.find_own_part(ctx, data)) is None or ctx.repeated:
            return
        await self._drafts.save(ctx, ctx.draft)  # the update is marked before the send, which is not repeated
        await self._view.toast(ctx, ctx.translator.plain("order.original_soon"))
        await self._send(ctx, *found)

    async def _send(self, ctx: UpdateContext, job: Job, part: Part) -> None:
        t = ctx.translator
        number = public_code(job.id, t)
        caption = t.html("order.original", code=number)
        if (file := await self._sent_before(job, part)) is not None:
            await self._view.send_document(ctx, file, caption)
            return
        try:
            async with self._downloads.fetch(part.value, UPLOAD_BYTES_MAX) as fetched:
                suffix = recognise(fetched.head, fetched.content_type).suffix
                name = f"{number.removeprefix('#')}-{job.parts.index(part) + 1}{suffix}"
                document = InputFile(fetched.file, filename=name, attach=True, read_file_handle=False)
                sent = await self._view.send_document(ctx, document, caption)
            await self._record(ctx, job, part, sent)
        except TooLarge:
            await self._view.send_text(ctx, t.html("order.original_large", link=part.value))
        except (AddressRefused, FetchFailed, NotMedia):
            await self._view.send_text(ctx, t.html("order.original_gone", code=number))

    async def _sent_before(self, job: Job, part: Part) -> str | None:
        """Return the channel's own copy of the original: it outlives the provider's."""
        if is_document(part):
            return file_id(part)
        upload = await self._store.upload(_record_key(job, part))
        return upload.file if upload is not None and upload.account_id == job.account_id else None

    async def _record(self, ctx: UpdateContext, job: Job, part: Part, file: str | None) -> None:
        """Record the document that was sent, so that it can be sent again when the provider has deleted the file."""
        if file is None:
            return
        key = _record_key(job, part)
        await self._store.add_upload(
            Upload(key=key, account_id=ctx.account_id, file=file, kind="document", seconds=None, age_seconds=0.0)
        )
        await self._store.mark_upload_used(key)  # kept as long as files of orders


def _record_key(job: Job, part: Part) -> str:
    return f"original:{job.id}:{job.parts.index(part)}"
