"""My results: a gallery with one result at a time. Its buttons name what they show, so each may be pressed again."""

from collections.abc import Mapping, Sequence

from genlock.bot.admin.audit import AuditLog
from genlock.bot.admin.commands import Admin
from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.gallery import screens
from genlock.bot.handlers.pages import Pages
from genlock.bot.order.draft import Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders, not_given
from genlock.bot.samples import Samples
from genlock.bot.screen_files import ScreenFile
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.job import Job
from genlock.i18n.translator import Html
from genlock.ports import Database, OutgoingMessage


class Gallery:
    def __init__(  # noqa: PLR0913 - one argument per part it works with
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        orders: Orders,
        pages: Pages,
        samples: Samples,
        admin: Admin,
        audit: AuditLog,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
        self._orders = orders
        self._pages = pages
        self._samples = samples
        self._admin = admin
        self._audit = audit
        self.button_handlers: Mapping[str, Handler] = {
            "mine": self._open,
            "gdel": self._ask_removal,
            "ghide": self._remove,
            "gundo": self._take_back,
            "sample": self._mark_sample,
        }

    async def show(self, ctx: UpdateContext) -> None:
        """Show the newest result."""
        await self._show_near(ctx, screens.ALL)

    async def _open(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Show the part that a button names, or the newest one of a kind."""
        kind = _kind(data.word())
        if not data.word(1):
            await self._show_near(ctx, kind)
            return
        job = await self._own(ctx, data, position=1)
        if job is not None:
            await self._show(ctx, job, max(data.number(2), 0), kind)

    async def _own(self, ctx: UpdateContext, data: ButtonData, *, position: int = 0) -> Job | None:
        """Return the result that a button names; else say why there is none and return None."""
        if await self._pages.is_group(ctx, "results"):
            return None
        job_id = ctx.texts.numbers.order_id(data.word(position))
        job = await self._orders.find_own(ctx, -1 if job_id is None else job_id)
        if job is None:
            return None
        if not job.has_result or not job.parts or not_given(job) is not None:
            await self._view.toast(ctx, ctx.translator.plain("order.erased_result"), alert=True)
            return None
        return job

    async def _show_near(
        self, ctx: UpdateContext, kind: str, *, before: int | None = None, note: Html | None = None,
        removed: tuple[Job, int] | None = None,
    ) -> None:  # fmt: skip
        """Show the newest result below a job id, else the oldest above it, else that there is none."""
        if await self._pages.is_group(ctx, "results"):
            return
        models = self._models(kind)
        job = await self._store.result_before(ctx.account_id, models, before)
        if job is None and before is not None:
            job = await self._store.result_after(ctx.account_id, models, before)
        if job is not None:
            await self._show(ctx, job, 0, kind, note=note, removed=removed)
            return
        screen = await self._drafts.screen_context(ctx)
        await self._put(ctx, self._undoable(ctx, screens.empty(screen, kind, note=note), removed, kind), None)

    async def _show(
        self, ctx: UpdateContext, job: Job, index: int, kind: str, *, note: Html | None = None,
        removed: tuple[Job, int] | None = None,
    ) -> None:  # fmt: skip
        index = min(index, len(job.parts) - 1)
        newer, older = await self._neighbours(ctx, job, index, kind)
        part, sample = job.parts[index], None
        if self._admin.may(ctx) and self._samples.usable(job, part):
            sample = await self._samples.is_marked(job, part)
        screen = await self._drafts.screen_context(ctx)
        message = screens.result(screen, job, index, kind=kind, newer=newer, older=older, sample=sample, note=note)
        await self._put(ctx, self._undoable(ctx, message, removed, kind), screens.file_of(part))

    def _undoable(
        self, ctx: UpdateContext, message: OutgoingMessage, removed: tuple[Job, int] | None, kind: str
    ) -> OutgoingMessage:
        return screens.with_undo(message, ctx.translator, *removed, kind) if removed else message

    async def _neighbours(
        self, ctx: UpdateContext, job: Job, index: int, kind: str
    ) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Return the next newer and the next older part, as job and part: of this result, else of another."""
        models = self._models(kind)
        newer: tuple[int, int] | None = (job.id, index - 1)
        older: tuple[int, int] | None = (job.id, index + 1)
        if index == 0:
            after = await self._store.result_after(ctx.account_id, models, job.id)
            newer = (after.id, len(after.parts) - 1) if after else None
        if index == len(job.parts) - 1:
            before = await self._store.result_before(ctx.account_id, models, job.id)
            older = (before.id, 0) if before else None
        return newer, older

    def _models(self, kind: str) -> Sequence[str]:
        """Return the models whose results a filter shows, whether or not they are on sale."""
        wanted = screens.FILTERS[kind]
        models = self._storefront.catalog.models.values()
        return [model.id for model in models if wanted is None or model.outputs[0] is wanted]

    async def _put(self, ctx: UpdateContext, message: OutgoingMessage, file: ScreenFile | None) -> None:
        await self._view.toast(ctx)
        if ctx.draft.step in (Step.LIST, Step.PROMO):
            await self._drafts.save(ctx, ctx.draft.keeping_input())
        await self._view.show(ctx, message, file)

    # removal

    async def _ask_removal(self, ctx: UpdateContext, data: ButtonData) -> None:
        job = await self._own(ctx, data)
        if job is None:
            return
        index, screen = min(max(data.number(1), 0), len(job.parts) - 1), await self._drafts.screen_context(ctx)
        message = screens.ask_removal(screen, job, index, _kind(data.word(2)))
        await self._put(ctx, message, screens.file_of(job.parts[index]))

    async def _remove(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Remove a result from its user's lists, and show the next one with a way to take it back."""
        job = await self._own(ctx, data)
        if job is None:
            return
        await self._store.set_result_hidden(ctx.account_id, job.id, hidden=True)
        note, index = ctx.translator.html("gallery.removed"), max(data.number(1), 0)
        await self._show_near(ctx, _kind(data.word(2)), before=job.id, note=note, removed=(job, index))

    async def _take_back(self, ctx: UpdateContext, data: ButtonData) -> None:
        job = await self._own(ctx, data)
        if job is not None:
            await self._store.set_result_hidden(ctx.account_id, job.id, hidden=False)
            await self._show(ctx, job, max(data.number(1), 0), _kind(data.word(2)))

    # samples

    async def _mark_sample(self, ctx: UpdateContext, data: ButtonData) -> None:
        """For operators: make one of their own results the sample of its model, or remove it."""
        if not self._admin.may(ctx):
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"), alert=True)
            return
        job = await self._own(ctx, data)
        if job is None:
            return
        index, on = min(max(data.number(1), 0), len(job.parts) - 1), data.word(2) == "1"
        if not self._samples.usable(job, job.parts[index]):
            await self._view.toast(ctx, ctx.translator.plain("gallery.sample_unusable"), alert=True)
            return
        await (self._samples.mark(job, job.parts[index]) if on else self._samples.unmark(job))
        await self._audit.write(ctx, "sample" if on else "sample removed", job.model, f"#{job.id}")
        await self._view.toast(ctx, ctx.translator.plain("gallery.sample_marked" if on else "gallery.sample_removed"))
        await self._show(ctx, job, index, _kind(data.word(3)))


def _kind(letter: str) -> str:
    return letter if letter in screens.FILTERS else screens.ALL
