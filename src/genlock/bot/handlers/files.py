"""Files that people send: looked at, handed on to the provider, put in their place in the order."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import IO, Any

import aiohttp
from telegram import Message

from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.order import wizard
from genlock.bot.order.draft import MISPLACED, At, Draft, Problem, Sent
from genlock.bot.order.input_errors import explain_file
from genlock.bot.quotas import Quotas
from genlock.channels.telegram.caller import Priority
from genlock.domain.catalog import Model
from genlock.domain.errors import GenlockError, LevelRefused, ProviderError
from genlock.domain.field import FILES, Field, FieldType
from genlock.domain.upload import Upload
from genlock.media.duration import file_duration
from genlock.media.sniff import MediaType, choose_suffix, could_be, media_type_of

#: what Telegram gives bots
BYTES_MAX = 20_000_000
MEGABYTE = 1_000_000
CHUNK = 65_536
FOLDER = "genlock"
SECONDS_MAX = 120.0
CARRIED_MAX = 10
NUMBER_DIGITS = 15
OK = 200
#: the provider keeps files for three days
RENEW_SECONDS = 2 * 86_400

UploadFile = Callable[[AsyncIterable[bytes], str, str], Awaitable[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file in a message."""

    #: None: it is nothing that any model takes
    kind: FieldType | None
    file: str
    size: int | None
    #: as the sender's program says: good for refusing early, never for a price
    seconds: float | None
    ending: str
    #: what the messages of one album have in common
    album: str | None = None


def attachment(message: Message) -> Attachment | None:
    """The file that a message carries, if it carries one."""
    found = _attached(message)
    return replace(found, album=message.media_group_id) if found else None


def _attached(message: Message) -> Attachment | None:
    if message.photo:
        photo = message.photo[-1]
        return Attachment(kind=FieldType.IMAGE, file=photo.file_id, size=photo.file_size, seconds=None, ending="jpg")
    for one in (message.animation, message.video, message.video_note):
        if one is not None:
            return _film(one)
    for sound in (message.audio, message.voice):
        if sound is not None:
            ending = _ending(getattr(sound, "file_name", None), sound.mime_type, FieldType.AUDIO)
            return Attachment(
                kind=FieldType.AUDIO,
                file=sound.file_id,
                size=sound.file_size,
                seconds=_seconds(sound.duration),
                ending=ending,
            )
    if message.document is not None:
        kind = _kind(message.document.mime_type)
        return Attachment(
            kind=kind,
            file=message.document.file_id,
            size=message.document.file_size,
            seconds=None,
            ending=_ending(message.document.file_name, message.document.mime_type, kind),
        )
    return None


def _film(film: Any) -> Attachment:
    kind = _kind(getattr(film, "mime_type", None)) or FieldType.VIDEO
    return Attachment(
        kind=kind,
        file=film.file_id,
        size=film.file_size,
        seconds=_seconds(film.duration) if kind is FieldType.VIDEO else None,
        ending=_ending(getattr(film, "file_name", None), getattr(film, "mime_type", None), kind),
    )


def _seconds(duration: Any) -> float | None:
    """Telegram tells whole seconds; a file that is shorter than one still has to be paid for."""
    seconds = duration.total_seconds() if hasattr(duration, "total_seconds") else float(duration or 0)
    return seconds or None


def _kind(mime: str | None) -> FieldType | None:
    media = media_type_of(mime)
    return FieldType(media.value) if media else None


def _ending(name: str | None, mime: str | None, kind: FieldType | None) -> str:
    return choose_suffix(name, mime, MediaType(kind.value) if kind else None)


class Files:
    def __init__(self, *, view: ChatView, quotas: Quotas, upload: UploadFile) -> None:
        self._view = view
        self._store = view.store
        self._quotas = quotas
        self._upload = upload
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    # a file from the chat

    async def take(self, ctx: UpdateContext, sent: Attachment, caption: str) -> None:
        """Put a file where it belongs in the order, or ask what to do with it."""
        draft = ctx.draft
        model = self._view.storefront.by_id(draft.model) if draft.model else None
        if model is None or draft.at in (At.HOME, At.LIST, At.ORDERED, At.PROMO):
            await self._carry(ctx, sent, caption)
            return
        place = wizard.place_for(draft, model, sent.kind) if sent.kind else None
        problem = _misfit(draft, model, sent) if place is None else _limits(place, sent)
        if place is None and problem is not None and problem.name.startswith(MISPLACED):
            await self._put_aside(ctx, sent, caption, problem)
            return
        if place is None or problem is not None:
            await self._show(ctx, sent, replace(draft, problem=problem))
            return
        taken = await self._hand_on(ctx, sent)
        if isinstance(taken, Problem):
            await self._show(ctx, sent, replace(draft, problem=taken))
            return
        draft = wizard.add_file(draft, place, taken)
        draft = wizard.with_caption(draft, model, caption) if caption else draft
        await self._show(ctx, sent, wizard.after_file(draft, model, place))

    async def _show(self, ctx: UpdateContext, sent: Attachment, draft: Draft) -> None:
        """Show what came of a file; of an album the last one that is there shows it for all."""
        await self._view.keep(ctx, draft)
        if not await _goes_on(ctx, sent):
            await self._view.show_draft(ctx)

    async def _put_aside(self, ctx: UpdateContext, sent: Attachment, caption: str, problem: Problem) -> None:
        """This order has no place for the file, but the person may want another one."""
        draft = replace(ctx.draft, problem=problem)
        if sent.kind is not None and self._view.storefront.for_file(sent.kind) and _limits(None, sent) is None:
            taken = await self._hand_on(ctx, sent)
            if isinstance(taken, Sent):
                draft = replace(draft, sent=_with(draft, taken), text=caption or draft.text)
        await self._show(ctx, sent, draft)

    async def _carry(self, ctx: UpdateContext, sent: Attachment, caption: str) -> None:
        """A file out of the blue waits for a model."""
        view, t = self._view, ctx.translator
        if sent.kind is None or not view.storefront.for_file(sent.kind):
            await self._refuse(ctx, sent, t.html("misc.no_models_for_file"))
            return
        taken: Sent | Problem | None = _limits(None, sent) or await self._hand_on(ctx, sent)
        if isinstance(taken, Problem):
            await self._refuse(ctx, sent, explain_file(taken, t) or t.html("refused.upload_failed"))
            return
        assert taken is not None
        kept = ctx.draft.carrying()
        await self._show(ctx, sent, replace(kept, sent=_with(kept, taken), text=caption or kept.text))

    async def _refuse(self, ctx: UpdateContext, sent: Attachment, why: str) -> None:
        """Say why a file is of no use; those before it in its album have left the screen to this one."""
        await self._view.say(ctx, why)
        if sent.album and ctx.draft.sent and not await _goes_on(ctx, sent):
            await self._view.show_draft(ctx)

    async def _hand_on(self, ctx: UpdateContext, sent: Attachment) -> Sent | Problem:
        """Take the file from Telegram and give it to the provider, who keeps it for some days."""
        assert sent.kind is not None
        if (wait := await self._quotas.upload(ctx)) is not None:
            return wait
        try:
            address, seconds = await self.hand_on(sent.file, sent.kind, sent.ending)
        except NotSuch:
            return Problem(name=f"not_a_file_{sent.kind.value}")
        except ProviderError:
            return Problem(name="upload_failed")
        await self._store.keep_upload(
            Upload(
                address=address,
                account_id=ctx.person,
                file=sent.file,
                kind=sent.kind.value,
                seconds=seconds,
                age_seconds=0.0,
            )
        )
        return Sent(kind=sent.kind, address=address, seconds=seconds)

    async def hand_on(self, file: str, kind: FieldType, ending: str) -> tuple[str, float | None]:
        """The provider's address of a file of Telegram's, and how long it plays by its own bytes.

        Raises NotSuch, ProviderError, ChannelBusy.
        """
        stream = self._bytes(file)
        first = await anext(stream, b"")
        if not could_be(first, MediaType(kind.value)):
            await stream.aclose()
            raise NotSuch
        name = f"{secrets.token_hex(12)}.{ending}"
        if kind is FieldType.IMAGE:
            return await self._upload(_chained(first, stream), name, FOLDER), None
        with TemporaryFile() as copy:
            address = await self._upload(_copied(_chained(first, stream), copy), name, FOLDER)
            return address, await asyncio.to_thread(file_duration, copy)

    async def _bytes(self, file: str) -> AsyncGenerator[bytes, None]:
        """A file of Telegram's. Its address holds the bot's token, so nothing that names it leaves this place."""
        bot = self._view.caller.bot
        try:
            found = await self._view.caller.call(bot.get_file, chat=None, priority=Priority.SCREEN, file_id=file)
        except LevelRefused as error:
            raise ProviderError("Telegram does not give the file") from error
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=SECONDS_MAX, sock_connect=10.0)
            self._session = aiohttp.ClientSession(timeout=timeout)
        size = 0
        try:
            async with self._session.get(found.file_path or "", allow_redirects=False) as answer:
                if answer.status != OK:
                    raise ProviderError(f"Telegram answered {answer.status} for a file")
                async for chunk in answer.content.iter_chunked(CHUNK):
                    size += len(chunk)
                    if size > BYTES_MAX:
                        raise ProviderError("the file is larger than Telegram said")
                    yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise ProviderError(f"the file could not be read: {type(error).__name__}") from None

    # a text where something else is asked for

    async def meant(self, ctx: UpdateContext, model: Model, text: str) -> str:
        """The number of one of one's own orders stands for the provider's task; any other number for none."""
        one = model.field(ctx.draft.field)
        if one is None or one.type is not FieldType.TASK:
            return text
        number = text.strip().lstrip("#")
        if not number.isdecimal() or len(number) >= NUMBER_DIGITS:
            return text
        job = await self._store.job(int(number))
        return job.task_id or "" if job is not None and job.account_id == ctx.person else ""

    # files of past orders

    async def renew(self, ctx: UpdateContext, address: str) -> str | Problem:
        """An address that still works, for a file that was sent some days ago, or why there is none."""
        upload = await self._store.upload(address)
        if upload is None or upload.age_seconds < RENEW_SECONDS:
            return address
        if (wait := await self._quotas.upload(ctx)) is not None:
            return wait
        kind = FieldType(upload.kind)
        try:
            fresh, seconds = await self.hand_on(upload.file, kind, _ending(None, None, kind))
        except (NotSuch, ProviderError):
            return Problem(name="file_gone")
        await self._store.keep_upload(replace(upload, address=fresh, account_id=ctx.person, seconds=seconds))
        return fresh


async def _goes_on(ctx: UpdateContext, sent: Attachment) -> bool:
    """Whether the next file of the same album has come already."""
    following = await ctx.behind() if sent.album else None
    return following is not None and following.message is not None and following.message.media_group_id == sent.album


class NotSuch(GenlockError):
    """The content is not what it is said to be."""


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _copied(stream: AsyncIterator[bytes], copy: IO[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, kept as they pass: what sets the price is measured, not believed."""
    async for chunk in stream:
        await asyncio.to_thread(copy.write, chunk)
        yield chunk


def _with(draft: Draft, taken: Sent) -> tuple[Sent, ...]:
    """One more file that waits for a model, beside those of its kind."""
    same = tuple(one for one in draft.sent if one.kind is taken.kind)[-CARRIED_MAX + 1 :]
    return (*same, taken)


def _misfit(draft: Draft, model: Model, sent: Attachment) -> Problem:
    """Why there is no place for the file."""
    now = model.field(draft.field)
    if now is not None and now.type in FILES:
        return Problem(name=f"wrong_kind_{now.type.value}")
    if sent.kind is None:
        wanted = next((one.type for one in model.fields if one.type in FILES), None)
        return Problem(name=f"not_a_file_{wanted.value}") if wanted else Problem(name="no_place_image")
    if full := [one for one in model.fields if one.type is sent.kind]:
        return Problem(name="full", allowed={"n": full[0].max_count or 1})
    return Problem(name=f"no_place_{sent.kind.value}")


def _limits(place: Field | None, sent: Attachment) -> Problem | None:
    """Whether the file is too large or too long, as far as Telegram tells."""
    size = sent.size or 0
    if size > BYTES_MAX:
        return Problem(name="too_big_for_telegram")
    if place is None:
        return None
    if place.max_mb is not None and size > place.max_mb * MEGABYTE:
        return Problem(name="too_big", allowed={"given": size, "most": place.max_mb * MEGABYTE})
    if place.max_seconds is not None and sent.seconds is not None and sent.seconds > place.max_seconds:
        return Problem(name="too_long", allowed={"given": sent.seconds, "most": place.max_seconds})
    return None
