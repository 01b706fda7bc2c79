"""Turns a confirmed draft into a job, and shows, repeats, changes or cancels past jobs."""

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from genlock.bot.bundle import BotBundle
from genlock.bot.buttons import ButtonData, button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import CHANNEL, UpdateContext
from genlock.bot.handlers.files import Files
from genlock.bot.order import per_file
from genlock.bot.order.draft import Draft, Problem, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.job_ends import JobEnds
from genlock.bot.order.remembered import settings_of
from genlock.bot.order.request_keys import GroupKey, draft_key, improvement_key
from genlock.bot.order.results import is_sent_to_chat, part_of
from genlock.bot.order.sales import Sales, sale_version
from genlock.bot.order.styles import recognised, style_of, styled
from genlock.bot.order.variations import with_copies
from genlock.bot.order.wizard import draft_from_job, options
from genlock.bot.quotas import Quotas
from genlock.bot.screen_context import model_label, public_code
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Model
from genlock.domain.correlation_ids import update_correlation_id
from genlock.domain.delivery import Part
from genlock.domain.errors import ActionNotAllowed, InsufficientBalance, JobWasSubmitted
from genlock.domain.field import FILES
from genlock.domain.job import Actor, AttentionCode, Delivery, Job
from genlock.domain.money import HoldState
from genlock.domain.presets import Style
from genlock.domain.upload import file_urls
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.engine.sell import NotSold, NotSoldReason, Order, Seller
from genlock.ports import Database, OutgoingMessage

#: what the screen says when a quota is used up
QUOTA_TEXTS = {
    NotSoldReason.TOO_MANY_RUNNING: "limit.running",
    NotSoldReason.TOO_MANY_PER_MINUTE: "limit.minute",
    NotSoldReason.TOO_MANY_PER_HOUR: "limit.hour",
}


class Orders:
    def __init__(  # noqa: PLR0913 - one argument per part it works with
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        seller: Seller,
        engine: Engine,
        quotas: Quotas,
        files: Files,
        job_ends: JobEnds,
        bundle: BotBundle,
        rng: Random,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
        self._seller = seller
        self._sales = Sales(view=view, drafts=drafts, seller=seller)
        self._engine = engine
        self._quotas = quotas
        self._files = files
        self._job_ends = job_ends
        self._bundle = bundle
        self._rng = rng

    # a new order

    async def confirm(self, ctx: UpdateContext, model: Model, *, every: bool = False) -> None:
        """Sell what the draft says, at the price it shows. The message with the button becomes the result.

        With `every`, make each order that the draft stands for. The engine sends the placeholders of the others.
        """
        draft = ctx.draft
        orders = per_file.orders_of(draft, model) if every else [draft]
        version = sale_version(draft)
        keys = _keys(ctx, version, len(orders))
        values = styled(orders[0].values, self._style(ctx, model))
        order = replace(self._order(ctx, model, keys[0]), values=values, agreed_price=draft.price)
        job = await self._sales.sell(ctx, order, _accepted(ctx, model, version, len(orders)))
        if isinstance(job, NotSold):
            await self._show_not_sold(ctx, job)
            return
        # The placeholder belongs to the engine from here on: it may already show how the job ended.
        if len(orders) > 1:
            await self._order_others(ctx, model, job, orders, keys)
            return
        code = public_code(job.id, ctx.translator)
        await self._view.toast(ctx, ctx.translator.plain("order.accepted_toast", code=code))
        await self._save_ordered(ctx, job)

    async def _order_others(
        self, ctx: UpdateContext, model: Model, first: Job, orders: list[Draft], keys: list[str]
    ) -> None:
        """Sell the draft's further orders; what cannot be sold now stays as a draft with the reason.

        After a crash in between, the same keys give the same jobs.
        """
        job, style = first, self._style(ctx, model)
        for index, draft in enumerate(orders[1:], start=1):
            order = replace(
                self._order(ctx, model, keys[index]),
                values=styled(draft.values, style),
                seconds=draft.seconds,
                agreed_price=draft.price,
            )
            sold = await self._seller.sell(order)
            if isinstance(sold, NotSold):
                await self._drafts.save(ctx, per_file.without_first(ctx.draft, model, index))
                await self._show_not_sold(ctx, sold)
                await self._job_ends.job_ended(first)  # the jobs may have ended while the group could still grow
                return
            job = sold
        await self._view.toast(ctx, ctx.translator.plain("order.accepted_many", n=len(orders)))
        await self._save_ordered(ctx, job)

    async def order_for_draft(self, ctx: UpdateContext, model: Model, values: Mapping[str, Any], after: Draft) -> None:
        """Sell what prepares the draft, such as a better prompt; the draft `after` waits for the user's decision."""
        version = sale_version(ctx.draft)
        order = replace(
            self._order(ctx, model, improvement_key(ctx.chat, version)),
            values=values,
            seconds={},
            agreed_price=ctx.draft.price,
        )
        accepted = OutgoingMessage(text=_accepted(ctx, model, version, 1).text)
        job = await self._sales.sell(ctx, order, accepted)
        if isinstance(job, NotSold):
            await self._show_not_sold(ctx, job)
            return
        await self._view.toast(
            ctx, ctx.translator.plain("order.accepted_toast", code=public_code(job.id, ctx.translator))
        )
        await self._drafts.save(ctx, replace(after, message=None, improving=job.id))

    async def order_at_once(self, ctx: UpdateContext, model: Model, draft: Draft) -> None:
        """`/gen MODEL TEXT`: sell a complete draft without a confirmation; the engine sends the placeholder.

        The draft is saved when it was sold or refused. After a crash in between, the same key gives the same job.
        """
        ctx.draft = draft
        job = await self._seller.sell(self._order(ctx, model, f"update:{ctx.update}"))
        if isinstance(job, NotSold):
            await self._drafts.save(ctx, ctx.draft)
            await self._show_not_sold(ctx, job)
            return
        screen = ctx.draft.message
        await self._save_ordered(ctx, job)
        if screen is not None:
            await self._view.remove(ctx.chat, screen)

    def _order(self, ctx: UpdateContext, model: Model, key: str) -> Order:
        return Order(
            account_id=ctx.account_id,
            model=model.id,
            values=styled(ctx.draft.values, self._style(ctx, model)),
            seconds=ctx.draft.seconds,
            key=key,
            channel=CHANNEL,
            bot=self._bundle.id,
            address=str(ctx.address),
            correlation_id=update_correlation_id(ctx.update),
        )

    def _style(self, ctx: UpdateContext, model: Model) -> Style | None:
        return style_of(ctx.draft, model, self._storefront.catalog)

    async def _save_ordered(self, ctx: UpdateContext, job: Job) -> None:
        if ctx.profile.last_model != job.model:
            await self._store.set_last_model(ctx.account_id, job.model)
        model = self._storefront.by_id(job.model)
        if model is not None and (settings := settings_of(model, ctx.draft.values)):
            await self._store.save_model_settings(ctx.account_id, model.id, json.dumps(settings))
        await self._drafts.save(ctx, replace(ctx.draft.cleared(), step=Step.ORDERED, job=job.id, message=None))

    async def _show_not_sold(self, ctx: UpdateContext, refused: NotSold) -> None:
        """Show the draft again with the reason; the confirmation itself shows what the balance lacks."""
        t, note = ctx.translator, None
        match refused.reason:
            case NotSoldReason.UNKNOWN_MODEL | NotSoldReason.PROVIDER_NOT_CONFIGURED:
                note = t.html("order.model_gone")
                await self._drafts.save(ctx, ctx.draft.cleared())
            case NotSoldReason.DEARER:
                note = t.html("confirm.dearer")
                await self._drafts.save(ctx, replace(ctx.draft, price=refused.price))
            case reason if reason in QUOTA_TEXTS:
                note = t.html(QUOTA_TEXTS[reason], n=refused.count, time=t.duration(refused.wait_seconds))
        await self._view.toast(ctx)
        await self._drafts.show(ctx, note=note)

    # past orders

    async def find_own(self, ctx: UpdateContext, job_id: int) -> Job | None:
        """Return the job if it belongs to the user; else tell the user so and return None."""
        job = await self._store.job(job_id) if job_id >= 0 else None
        if job is None:
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"), alert=True)
        elif job.account_id != ctx.account_id:
            await self._view.toast(ctx, ctx.translator.plain("order.not_yours"), alert=True)
            job = None
        return job

    async def find_own_part(self, ctx: UpdateContext, data: ButtonData) -> tuple[Job, Part] | None:
        """Return the part of a result that a button names; else tell the user why there is none and return None."""
        job = await self.find_own(ctx, ctx.order_id(data))
        if job is None:
            return None
        part, reason = part_of(job, max(data.number(1), 0)), _cannot_show(job) or not_given(job)
        if part is not None and reason is None:
            return job, part
        await self._view.toast(ctx, ctx.translator.plain(reason or "order.unknown"), alert=True)
        return None

    async def show_again(self, ctx: UpdateContext, job: Job) -> None:
        """Send a result again, from Telegram's copy. A repeated update does not send it twice."""
        t, view = ctx.translator, self._view
        reason = _cannot_show(job) if is_sent_to_chat(job) else "order.by_api"
        if reason is not None:
            await view.toast(ctx, t.plain(reason), alert=True)
            return
        if ctx.repeated:
            return
        await self._drafts.save(ctx, ctx.draft)
        try:
            if job.delivery not in (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
                raise ActionNotAllowed  # noqa: TRY301 - as the engine would say
            resent = await operate.resend_for_user(self._engine.ctx, job.id, f"user {ctx.account_id}")
        except ActionNotAllowed:
            await view.toast(ctx, t.plain("order.again_not_yet"))
            return
        except InsufficientBalance as short:
            missing = t.credits(short.price - short.available)
            text = t.plain("order.again_short", credits=t.credits(short.price), missing=missing)
            await view.toast(ctx, text, alert=True)
            return
        if resent.hold_state is HoldState.HELD:
            await view.toast(ctx, t.plain("order.again_paid", credits=t.credits(resent.price)), alert=True)
            return
        await view.toast(ctx, t.plain("order.again_soon"))

    async def repeat(self, ctx: UpdateContext, job: Job, *, change: bool = False, copies: int = 1) -> None:
        """Make a draft with the values of a past job, to be confirmed or changed, once or as several variations."""
        view = self._view
        model = self._storefront.by_id(job.model)
        if job.erased:
            await view.toast(ctx, ctx.translator.plain("order.erased_input"), alert=True)
            return
        if model is None:
            await view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
            return
        if not ctx.repeated:
            values, problem = await self._with_renewed_files(ctx, model, _user_values(model, json.loads(job.input)))
            draft = draft_from_job(ctx.draft, model, values, await self._seconds(model, values))
            draft = with_copies(recognised(draft, model, self._storefront.catalog), model, copies, self._rng)
            if problem:
                draft = replace(draft, problem=problem)
            await self._drafts.save(ctx, options(draft) if change and not problem else draft)
        await view.toast(ctx)
        await self._drafts.show(ctx)

    async def _with_renewed_files(
        self, ctx: UpdateContext, model: Model, values: dict[str, Any]
    ) -> tuple[dict[str, Any], Problem | None]:
        """Return the values with files the provider can still fetch, and the problem if some are gone."""
        values_now, problem = dict(values), None
        for field in model.fields:
            if field.type not in FILES or field.name not in values:
                continue
            given = values[field.name] if isinstance(values[field.name], list) else [values[field.name]]
            found = [await self._files.renew(ctx, str(url)) for url in given]
            refused = [url for url in found if isinstance(url, Problem)]
            if refused:
                problem = refused[0]
                del values_now[field.name]
            else:
                values_now[field.name] = found if field.many else found[0]
        return values_now, problem

    async def _seconds(self, model: Model, values: dict[str, Any]) -> dict[str, float]:
        """Measured lengths of files that were uploaded through the bot, by URL."""
        found: dict[str, float] = {}
        for url in file_urls(model, values):
            upload = await self._store.upload(url)
            if upload is not None and upload.seconds is not None:
                found[url] = upload.seconds
        return found

    async def find_by_draft(self, ctx: UpdateContext, version: int, count: int) -> Job | None:
        """Return the first of the jobs that were ordered with this version of the draft."""
        return await self._store.job_by_request_key(ctx.account_id, _keys(ctx, version, count)[0])

    async def cancel(self, ctx: UpdateContext, job: Job) -> None:
        """Cancel a running job; its hold is released at once."""
        t = ctx.translator
        is_submitted = job.submitted_at is not None
        if is_submitted and not job.ended and (refusal := await self._quotas.cancel(ctx)):
            await self._view.toast(ctx, refusal, alert=True)
            return
        attempt = None if is_submitted else job.attempt
        try:
            await self._engine.cancel(job.id, f"user {ctx.account_id}", Actor.USER, attempt=attempt)
        except JobWasSubmitted:  # since it was read: once more, with the quota
            await self.cancel(ctx, await self._store.job(job.id) or job)
            return
        except ActionNotAllowed:
            await self._view.toast(ctx, t.plain("order.too_late"))
            return
        await self._view.toast(ctx, t.plain("order.cancelled_toast"))


def _keys(ctx: UpdateContext, version: int, count: int) -> list[str]:
    """Return the idempotency keys of the orders that one version of a draft makes."""
    if count <= 1:
        return [draft_key(ctx.chat, version)]
    return GroupKey(chat=ctx.chat, version=version, count=count, index=0).all()


def not_given(job: Job) -> str | None:
    """Return the text that says why the user has not got a result, so that it cannot be used; None if it can.

    A client may press a button that we never showed: before the delivery, or after the hold was released.
    """
    if job.is_received or not job.has_result:
        return None
    return "order.part_unpaid" if job.unpaid else "order.part_not_yet"


def _cannot_show(job: Job) -> str | None:
    """Return the text that says why a result cannot be shown again; None if it can."""
    if not job.has_result:
        return "order.nothing_to_show" if job.ended else "order.not_ended"
    if not job.parts:
        return "order.erased_result"
    if job.attention_code is AttentionCode.POISON:  # it crashes workers: a user must not be able to start it again
        return "order.again_broken"
    return None


def _accepted(ctx: UpdateContext, model: Model, version: int, count: int) -> OutgoingMessage:
    """Return the message shown from the press until the first progress; the job has no number yet."""
    t = ctx.translator
    text = t.html("order.accepted", title=model_label(model, t), time=t.duration(model.expected_seconds))
    return OutgoingMessage(text=text, buttons=((button(t.plain("button.stop"), "stop", version, count),),))


def _user_values(model: Model, values: Any) -> dict[str, Any]:
    """Return the values of a past job without those that equal the defaults, or that users may not set."""
    known = values if isinstance(values, dict) else {}
    fields = [field for field in model.fields if field.name in known and not field.internal]
    return {field.name: known[field.name] for field in fields if known[field.name] != field.default}
