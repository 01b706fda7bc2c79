"""*Improve my prompt*: an order of a text model whose result the user may take as the prompt of the draft."""

from collections.abc import Mapping
from dataclasses import replace

from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.order import questions, wizard
from genlock.bot.order.draft import Draft, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.improve_screens import improved_text, is_improvement
from genlock.bot.order.orders import Orders
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Model
from genlock.domain.job import Job


class Improvements:
    def __init__(self, *, view: ChatView, drafts: DraftView, storefront: Storefront, orders: Orders) -> None:
        self._view = view
        self._drafts = drafts
        self._storefront = storefront
        self._orders = orders
        self.button_handlers: Mapping[str, Handler] = {"improved": self._take, "unimproved": self._keep}

    async def order(self, ctx: UpdateContext, model: Model) -> None:
        """Order the improvement that the screen shows, at the price it shows. Its message becomes the result."""
        main, improver = questions.main_text(model), self._storefront.improver(model)
        prompt = str(ctx.draft.values.get(main.name, "")) if main else ""
        if improver is None or improver.improves is None or not prompt:
            await self._view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
            await self._drafts.save(ctx, wizard.advance(ctx.draft, model))
            await self._drafts.show(ctx)
            return
        values = {improver.improves.field: improver.improves.request(prompt)}
        await self._orders.order_for_draft(ctx, improver, values, wizard.advance(ctx.draft, model))

    async def _take(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Make the improved text the prompt of the draft; if the draft is another one, keep it for any model."""
        found = await self._orders.find_own_part(ctx, data)
        if found is None:
            return
        job, _ = found
        if not is_improvement(job):
            await self._view.toast(ctx, ctx.translator.plain("order.stale"), alert=True)
            return
        if not ctx.repeated:
            await self._drafts.save(ctx, self._with_prompt(ctx.draft, job))
        await self._view.toast(ctx)
        await self._drafts.show(ctx)

    def _with_prompt(self, draft: Draft, job: Job) -> Draft:
        text, model = improved_text(job), self._storefront.by_id(draft.model) if draft.model else None
        main = questions.main_text(model) if model else None
        if model is None or main is None or draft.improving != job.id:
            return replace(draft.cleared(), text=text)
        taken = wizard.answer(replace(draft, step=Step.EDIT, field=main.name), model, text)
        return taken if taken.problem else wizard.advance(replace(taken, step=Step.HOME, field=""), model)

    async def _keep(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Show the draft with the prompt it has."""
        await self._view.toast(ctx)
        await self._drafts.show(ctx)
