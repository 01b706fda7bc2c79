"""Handles next steps: a press or a reply turns a result into the beginning of another order."""

from collections.abc import Mapping

from telegram import Message

from genlock.bot.attachment import attachment
from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, Handler, UpdateContext
from genlock.bot.handlers.files import Files
from genlock.bot.order import next_step_screens as screens
from genlock.bot.order.draft import Problem, SentFile
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.input_errors import explain_file
from genlock.bot.order.next_step_drafts import asked_step, fitting, input_field, reply_step, start_step
from genlock.bot.order.orders import Orders
from genlock.bot.order.questions import main_text
from genlock.bot.order.result_files import ResultFiles
from genlock.bot.order.results import kind_of_part
from genlock.bot.screen_context import own_prompt
from genlock.bot.storefront.storefront import Storefront
from genlock.channels.telegram.address import Address
from genlock.domain.catalog import Model
from genlock.domain.delivery import Part
from genlock.domain.field import FieldType
from genlock.domain.job import Job
from genlock.domain.next_step import NextStep, PromptSource
from genlock.i18n.translator import Html, Translator
from genlock.ports import Database


class NextSteps:
    """A press makes a draft, which the user confirms like any other; the same press again makes the same draft."""

    def __init__(
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        orders: Orders,
        files: Files,
        results: ResultFiles,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._files = files
        self._storefront = storefront
        self._orders = orders
        self._results = results
        self.button_handlers: Mapping[str, Handler] = {"next": self._start, "nexts": self._show_all}

    async def _show_all(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Show every next step of a part; with several parts, also which one."""
        if (found := await self._orders.find_own_part(ctx, data)) is None:
            return
        job, _ = found
        await self._view.toast(ctx)
        screen = await self._drafts.screen_context(ctx)
        await self._view.show(ctx, screens.all_steps(screen, job, max(data.number(1), 0)))

    async def _start(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (found := await self._orders.find_own_part(ctx, data)) is not None:
            job, part = found
            step = self._storefront.catalog.step(data.word(2))
            if step is None or step.kind is not self._kind_of(job, part):
                await self._view.toast(ctx, ctx.translator.plain("order.stale"), alert=True)
                return
            if not self._storefront.catalog.step_models(step):
                await self._view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
                return
            await self.start(ctx, job, part, step)

    async def start(self, ctx: UpdateContext, job: Job, part: Part, step: NextStep, *, text: str = "") -> None:
        """Make the draft of a step and show its confirmation, or the one question that is left."""
        if not ctx.repeated:
            file = await self._file(ctx, part, step)
            if isinstance(file, Problem):
                await self._refuse(ctx, file)
                return
            files = [file] if file else []
            models = self._storefront.catalog.step_models(step)
            model = fitting(step, models, file.seconds if file else None, text or ("" if file else part.value))
            prompt = text or (self._prompt(job, step, model, ctx.translator) if file else part.value)
            await self._drafts.save(ctx, start_step(ctx.draft, step, model, files, prompt))
        await self._view.toast(ctx)
        await self._drafts.show(ctx)

    async def _file(self, ctx: UpdateContext, part: Part, step: NextStep) -> SentFile | Problem | None:
        """Return the file of a part, taken from our own record; None for a text."""
        if step.kind is FieldType.TEXT:
            return None
        [model, *_] = self._storefront.catalog.step_models(step)
        return await self._results.take(ctx, part, step.kind, input_field(step, model))

    async def _refuse(self, ctx: UpdateContext, problem: Problem) -> None:
        t = ctx.translator
        text = explain_file(problem, t) or t.html("refused.result_gone")
        await self._view.toast(ctx)
        await self._view.send_text(ctx, Html(f"{text}\n{t.html('failed.money_none')}"))

    def _prompt(self, job: Job, step: NextStep, model: Model, t: Translator) -> str:
        """Return the prompt that a step begins with; empty if its model takes none or the user writes it."""
        main = main_text(model)
        if main is None or step.prompt not in (PromptSource.ORDER, PromptSource.OURS):
            return ""
        ordered = step.prompt is PromptSource.ORDER and not job.erased
        own = own_prompt(job, self._storefront.catalog) if ordered else ""
        return (own or t.plain(f"next.prompt_{step.key}"))[: main.max_length]

    # replies

    async def reply(self, ctx: UpdateContext, message: Message, text: str) -> bool:
        """Take a text that answers a result or a file as what to do with it; return whether it was one."""
        replied = message.reply_to_message
        if replied is None or not text or attachment(message):
            return False
        if await self._shown_by(ctx, replied.message_id) is not None:
            return await self.reply_to(ctx, replied.message_id, text)
        sent = attachment(replied) if replied.message_id != ctx.draft.message else None
        if sent is None or reply_step(self._storefront.catalog, sent.kind) is None:
            return False
        await self._files.begin_with(ctx, sent, text)
        return True

    async def reply_to(self, ctx: UpdateContext, message: int, text: str) -> bool:
        """Take a text as what to do with the result that a message shows; return whether it shows one."""
        if (found := await self._shown_by(ctx, message)) is None:
            return False
        if (step := asked_step(self._storefront, self._kind_of(*found), text)) is not None:
            await self.start(ctx, *found, step, text=text)
        return step is not None

    async def _shown_by(self, ctx: UpdateContext, message: int) -> tuple[Job, Part] | None:
        """Return the user's result that a message of this chat shows."""
        for job in await self._store.jobs_shown_by(ctx.account_id, str(message)):
            if job.is_received and job.channel == CHANNEL and Address.parse(job.address).chat == ctx.chat:
                return job, next(part for part in job.parts if part.message == str(message))
        return None

    def _kind_of(self, job: Job, part: Part) -> FieldType | None:
        return kind_of_part(part, self._storefront.catalog.models.get(job.model))
