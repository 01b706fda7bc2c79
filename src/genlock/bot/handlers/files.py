"""Handles files of users: checks them, uploads them to the provider and adds them to the order."""

from dataclasses import replace

from genlock.bot.attachment import Attachment, file_limits
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.file_transfer import FileTransfer, WrongContent
from genlock.bot.order import per_file, wizard
from genlock.bot.order.aspect import fit_picture
from genlock.bot.order.draft import MISPLACED, Draft, Problem, SentFile, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.input_errors import explain_file
from genlock.bot.order.next_step_drafts import captioned
from genlock.bot.order.suggestions import suggest_for_file
from genlock.bot.quotas import Quotas
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Model
from genlock.domain.errors import ProviderError
from genlock.domain.field import FILES, Field, FieldType
from genlock.domain.media_format import MediaType
from genlock.domain.upload import Upload, UploadCopy
from genlock.media.budget import TooComplex
from genlock.media.sniff import choose_suffix
from genlock.ports import Database

WAITING_FILES_MAX = 10


def _in_list(kept: Draft, draft: Draft) -> Draft:
    """Return the draft with the model list that a file was sent to, until the whole album has arrived."""
    if draft.step is not Step.LIST:
        return kept
    return replace(kept, step=Step.LIST, category=draft.category, wish=draft.wish, popular=draft.popular)


class Files:
    def __init__(
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        quotas: Quotas,
        transfer: FileTransfer,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
        self._quotas = quotas
        self._transfer = transfer

    # a file from the chat

    async def receive(self, ctx: UpdateContext, sent: Attachment, caption: str) -> None:
        """Add a file to the order, or ask what to do with it."""
        draft = ctx.draft
        model = self._storefront.by_id(draft.model) if draft.model else None
        if model is None or draft.step in (Step.HOME, Step.LIST, Step.ORDERED, Step.PROMO):
            await self._keep_for_a_model(ctx, sent, caption)
            return
        target = wizard.field_for_file(draft, model, sent.kind) if sent.kind else None
        if target is None and sent.kind and (single := per_file.single_file_field(model, sent.kind)) is not None:
            await self._add_other(ctx, sent, caption, model, single)
            return
        problem = _no_place(draft, model, sent) if target is None else file_limits(target, sent)
        if target is None and problem is not None and problem.name.startswith(MISPLACED):
            await self._keep_for_another_order(ctx, sent, caption, problem)
            return
        if target is None or problem is not None:
            await self._show(ctx, sent, replace(draft, problem=problem))
            return
        taken = await self.upload_checked(ctx, sent)
        if isinstance(taken, Problem):
            await self._show(ctx, sent, replace(draft, problem=taken))
            return
        draft = fit_picture(wizard.add_file(_with_aspect(draft, sent, taken), target, taken), model)
        draft = wizard.with_caption(draft, model, caption) if caption else draft
        await self._show(ctx, sent, wizard.after_file(draft, model, target))

    async def _add_other(self, ctx: UpdateContext, sent: Attachment, caption: str, model: Model, single: Field) -> None:
        """Keep a file beyond the one that an order takes: it may become an order of its own."""
        taken = file_limits(single, sent) or await self.upload_checked(ctx, sent)
        if isinstance(taken, Problem):
            await self._show(ctx, sent, replace(ctx.draft, problem=taken))
            return
        draft = per_file.add_other(_with_aspect(ctx.draft, sent, taken), model, taken)
        await self._show(ctx, sent, wizard.with_caption(draft, model, caption) if caption else draft)

    async def _show(self, ctx: UpdateContext, sent: Attachment, draft: Draft) -> None:
        """Save and show the draft; of an album only the last file received shows it."""
        await self._drafts.save(ctx, draft)
        if not await _album_continues(ctx, sent):
            await self._drafts.show(ctx)

    async def _keep_for_another_order(
        self, ctx: UpdateContext, sent: Attachment, caption: str, problem: Problem
    ) -> None:
        """Keep a file that this order has no field for: the user may want it for another order."""
        draft = replace(ctx.draft, problem=problem)
        if sent.kind is not None and self._storefront.for_file(sent.kind) and file_limits(None, sent) is None:
            taken = await self.upload_checked(ctx, sent)
            if isinstance(taken, SentFile):
                draft = _with_aspect(draft, sent, taken)
                draft = replace(draft, sent=_with(draft, taken), text=caption or draft.text)
        await self._show(ctx, sent, draft)

    async def _keep_for_a_model(self, ctx: UpdateContext, sent: Attachment, caption: str) -> None:
        """Keep a file that no step asked for until the user chooses a model."""
        t = ctx.translator
        if sent.kind is None or not self._storefront.for_file(sent.kind):
            await self._refuse(ctx, sent, t.html("misc.no_models_for_file"))
            return
        taken: SentFile | Problem | None = file_limits(None, sent) or await self.upload_checked(ctx, sent)
        if isinstance(taken, Problem):
            await self._refuse(ctx, sent, explain_file(taken, t) or t.html("refused.upload_failed"))
            return
        assert taken is not None
        waiting = _with_aspect(ctx.draft.keeping_input(), sent, taken)
        kept = replace(waiting, sent=_with(waiting, taken), text=caption or waiting.text)
        if await _album_continues(ctx, sent):
            await self._drafts.save(ctx, _in_list(kept, ctx.draft))
            return
        await self._drafts.save(ctx, self._begun(kept, _in_list(kept, ctx.draft)))
        await self._drafts.show(ctx)

    def _begun(self, kept: Draft, listed: Draft) -> Draft:
        """Return the order that files ask for by their caption or by the list they were sent to; else the draft."""
        front = self._storefront
        wish = front.catalog.wish(listed.wish)
        category = listed.category or (wish.categories[0] if wish else "")
        if kept.text:
            return captioned(kept, front, category)
        return (suggest_for_file(front, kept, wish, listed.category) if wish else None) or kept

    async def begin_with(self, ctx: UpdateContext, sent: Attachment, text: str) -> None:
        """Begin an order with a file of an earlier message; an order in progress is left."""
        ctx.draft = ctx.draft.cleared()
        await self._keep_for_a_model(ctx, sent, text)

    async def _refuse(self, ctx: UpdateContext, sent: Attachment, why: str) -> None:
        """Tell the user why a file is refused; the last file of an album also shows the draft for the others."""
        await self._view.send_text(ctx, why)
        if sent.album and ctx.draft.sent and not await _album_continues(ctx, sent):
            await self._drafts.show(ctx)

    async def upload_checked(self, ctx: UpdateContext, sent: Attachment) -> SentFile | Problem:
        """Upload a file to the provider within the user's quota, and record it."""
        assert sent.kind is not None
        if (wait := await self._quotas.upload(ctx)) is not None:
            return wait
        try:
            copy, seconds = await self._transfer.copy(sent.file, sent.kind, sent.extension)
        except WrongContent:
            return Problem(name=f"not_a_file_{sent.kind.value}")
        except TooComplex:
            return Problem(name="upload_unreadable")
        except ProviderError:
            return Problem(name="upload_failed")
        await self._record(
            Upload(
                key=copy.key,
                account_id=ctx.account_id,
                file=sent.file,
                kind=sent.kind.value,
                seconds=seconds,
                age_seconds=0.0,
            ),
            copy,
        )
        return SentFile(kind=sent.kind, url=copy.key, seconds=seconds)

    async def _record(self, upload: Upload, copy: UploadCopy) -> None:
        await self._store.add_upload(upload)
        await self._store.save_upload_copy(copy)

    # texts that name an earlier order

    async def resolve_task(self, ctx: UpdateContext, model: Model, text: str) -> str:
        """Return the provider's task of an order whose result the user has got, by its number; else nothing."""
        field = model.field(ctx.draft.field)
        if field is None or field.type is not FieldType.TASK:
            return text
        job_id = ctx.translator.numbers.order_id(text)
        job = None if job_id is None else await self._store.job(job_id)
        return job.task_id or "" if job is not None and job.account_id == ctx.account_id and job.is_received else ""

    # files of past orders

    async def renew(self, ctx: UpdateContext, url: str) -> str | Problem:
        """Return a URL that still works, uploading an old file again; or why that is not possible."""
        upload = await self._store.upload(url)
        if upload is None or upload.account_id != ctx.account_id:
            return url
        if not self._transfer.storage.is_old(upload.age_seconds):
            return url
        if (wait := await self._quotas.upload(ctx)) is not None:
            return wait
        kind = FieldType(upload.kind)
        try:
            renewed, seconds = await self._transfer.copy(
                upload.file, kind, choose_suffix(None, None, MediaType(kind.value))
            )
        except (WrongContent, TooComplex, ProviderError):
            return Problem(name="file_gone")
        await self._record(replace(upload, key=renewed.key, seconds=seconds), renewed)
        return renewed.key


async def _album_continues(ctx: UpdateContext, sent: Attachment) -> bool:
    """Whether the next file of the same album has been received."""
    following = await ctx.next_update() if sent.album else None
    return following is not None and following.message is not None and following.message.media_group_id == sent.album


def _with(draft: Draft, taken: SentFile) -> tuple[SentFile, ...]:
    """Return the waiting files with one more; files of another kind are dropped."""
    same = tuple(file for file in draft.sent if file.kind is taken.kind)[-WAITING_FILES_MAX + 1 :]
    return (*same, taken)


def _with_aspect(draft: Draft, sent: Attachment, taken: SentFile) -> Draft:
    if sent.aspect is None:
        return draft
    recent = dict(list(draft.aspects.items())[-2 * WAITING_FILES_MAX :])
    return replace(draft, aspects={**recent, taken.url: sent.aspect})


def _no_place(draft: Draft, model: Model, sent: Attachment) -> Problem:
    """Return why the order has no field for the file."""
    now = model.field(draft.field)
    if now is not None and now.type in FILES:
        return Problem(name=f"wrong_kind_{now.type.value}")
    if sent.kind is None:
        wanted = next((field.type for field in model.fields if field.type in FILES), None)
        return Problem(name=f"not_a_file_{wanted.value}") if wanted else Problem(name="no_place_file")
    if full := [field for field in model.fields if field.type is sent.kind]:
        return Problem(name="full", allowed={"n": full[0].max_count or 1})
    return Problem(name=f"no_place_{sent.kind.value}")
