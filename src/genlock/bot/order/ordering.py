"""From a confirmed draft to a job, and what can be done with past jobs: show again, repeat, change, cancel."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from genlock.bot.buttons import button
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.handlers.files import Files
from genlock.bot.order.draft import At, Problem
from genlock.bot.order.wizard import of_job, options
from genlock.bot.quotas import Quotas
from genlock.bot.screen_context import Quote, code, quote, titled
from genlock.channels.telegram.messages import OutgoingMessage
from genlock.domain.catalog import Model
from genlock.domain.errors import ActionNotAllowed, InsufficientBalance, InvalidInput
from genlock.domain.field import FILES
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, NewJob, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.i18n.translator import Html

PROVIDER, CHANNEL = "kie", "telegram"


class Orders:
    def __init__(self, *, view: ChatView, engine: Engine, quotas: Quotas, files: Files) -> None:
        self._view = view
        self._files = files
        self._engine = engine
        self._quotas = quotas
        self._store = view.store

    # a new order

    async def confirm(self, ctx: UpdateContext, model: Model) -> None:
        """The person has pressed Generate: the pressed message becomes the result."""
        view, draft = self._view, ctx.draft
        key = _key(ctx, draft.version)
        if (made := await self._store.job_by_request_key(ctx.person, key)) is not None:
            await view.keep(ctx, replace(draft.emptied(), at=At.ORDERED, job=made.id, message=None))
            return
        screen = await view.screen_context(ctx, order=key)
        try:
            cost = quote(draft, model, screen)
        except InvalidInput:
            await view.show_draft(ctx)
            return
        if draft.price is not None and cost.price > draft.price:
            await view.keep(ctx, replace(draft, price=cost.price))
            await view.show_draft(ctx, note=ctx.translator.html("confirm.dearer"))
            return
        if refusal := await self._refusal(ctx, cost, screen.wallet.available):
            await view.show_draft(ctx, note=refusal)
            return
        placeholder = draft.message if ctx.pressed == draft.message else None
        if ctx.first and placeholder is not None:
            await view.edit(ctx.chat, placeholder, _accepted(ctx, model))
        job = await self._order(ctx, model, cost, key, placeholder=placeholder)
        if job is None:
            await view.toast(ctx)
            await view.show_draft(ctx)
            return
        # Not on the message: from now on it is the engine's, which may have put the end of the order there.
        await view.toast(ctx, ctx.translator.plain("order.accepted_toast", code=code(job.id)))
        await view.keep(ctx, replace(draft.emptied(), at=At.ORDERED, job=job.id, message=None))

    async def at_once(self, ctx: UpdateContext, model: Model) -> None:
        """`/gen MODEL TEXT`: the draft is complete, and nobody is asked again."""
        view, draft = self._view, ctx.draft
        key = f"update:{ctx.update}"
        if not ctx.first and (made := await self._store.job_by_request_key(ctx.person, key)) is not None:
            await self._leave(ctx, made)
            return
        screen = await view.screen_context(ctx, order=key)
        cost = quote(draft, model, screen)
        refusal = await self._refusal(ctx, cost, screen.wallet.available)
        if refusal or cost.price > screen.wallet.available:
            await view.show_draft(ctx, note=refusal)
            return
        job = await self._order(ctx, model, cost, key, placeholder=None)
        if job is None:
            await view.show_draft(ctx)
            return
        await self._leave(ctx, job)

    async def _leave(self, ctx: UpdateContext, job: Job) -> None:
        """The order has a message of its own; the screen above it has nothing more to say."""
        before = ctx.draft
        await self._view.keep(ctx, replace(before.emptied(), at=At.ORDERED, job=job.id, message=None))
        if before.message is not None:
            await self._view.remove(ctx.chat, before.message)

    async def _refusal(self, ctx: UpdateContext, cost: Quote, available: int) -> Html | None:
        if cost.price > available:
            return None  # the screen says it better
        return await self._quotas.order(ctx)

    async def _order(
        self, ctx: UpdateContext, model: Model, cost: Quote, key: str, *, placeholder: int | None
    ) -> Job | None:
        """None if the money went elsewhere meanwhile, or the free run did."""
        price = cost.price
        if cost.free and not await self._store.take_free_run(ctx.person, key, self._view.rules.free_per_day):
            return None
        for address in file_addresses(model, ctx.draft.values):
            await self._store.mark_upload_used(address)
        order = NewJob(
            account_id=ctx.person,
            request_key=key,
            provider=PROVIDER,
            channel=CHANNEL,
            bot=str(self._view.caller.bot.id),
            address=str(ctx.address),
            model=model.id,
            input=json.dumps(model.validate(ctx.draft.values), ensure_ascii=False),
            price=price,
            deadline_seconds=model.deadline_seconds,
            placeholder=None if placeholder is None else str(placeholder),
            correlation_id=f"u{ctx.update}",
        )
        try:
            job = await self._engine.order(order)
        except InsufficientBalance:
            return None
        await self._store.set_last_model(ctx.person, model.id)
        return job

    # past orders

    async def mine(self, ctx: UpdateContext, job_id: int) -> Job | None:
        """A job of this person; others are told whose it is."""
        job = await self._store.job(job_id) if job_id >= 0 else None
        if job is None:
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"), alert=True)
        elif job.account_id != ctx.person:
            await self._view.toast(ctx, ctx.translator.plain("order.not_yours"), alert=True)
            job = None
        return job

    async def again(self, ctx: UpdateContext, job: Job) -> None:
        """Show a result once more, from Telegram's own copy; a repeated update does not show it twice."""
        t, view = ctx.translator, self._view
        if job.state is not State.SUCCEEDED:
            key = "order.nothing_to_show" if job.ended else "order.not_ended"
            await view.toast(ctx, t.plain(key), alert=True)
            return
        if job.attention_code is AttentionCode.POISON:  # or everybody's work would stop with it, at one person's wish
            await view.toast(ctx, t.plain("order.again_broken"), alert=True)
            return
        if ctx.repeated:
            return
        await view.keep(ctx, ctx.draft)
        try:
            if job.delivery not in (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
                raise ActionNotAllowed  # noqa: TRY301 - as the engine would say
            shown = await operate.show_again(self._engine.ctx, job.id, f"person {ctx.person}")
        except ActionNotAllowed:
            await view.toast(ctx, t.plain("order.again_not_yet"))
            return
        except InsufficientBalance as short:
            missing = t.credits(short.price - short.available)
            text = t.plain("order.again_short", credits=t.credits(short.price), missing=missing)
            await view.toast(ctx, text, alert=True)
            return
        if shown.hold_state is HoldState.HELD:
            await view.toast(ctx, t.plain("order.again_paid", credits=t.credits(shown.price)), alert=True)
            return
        await view.toast(ctx, t.plain("order.again_soon"))

    async def repeat(self, ctx: UpdateContext, job: Job, *, change: bool) -> None:
        """The same order again, to be confirmed or changed first."""
        view = self._view
        model = view.storefront.by_id(job.model)
        if model is None:
            await view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
            return
        if not ctx.repeated:
            values, problem = await self._renewed(ctx, model, _given(model, json.loads(job.input)))
            draft = of_job(ctx.draft, model, values, await self._seconds(model, values))
            if problem:
                draft = replace(draft, problem=problem)
            await view.keep(ctx, options(draft) if change and not problem else draft)
        await view.toast(ctx)
        await view.show_draft(ctx)

    async def _renewed(
        self, ctx: UpdateContext, model: Model, values: dict[str, Any]
    ) -> tuple[dict[str, Any], Problem | None]:
        """The values with files that can still be fetched, and why some cannot."""
        kept, problem = dict(values), None
        for one in model.fields:
            if one.type not in FILES or one.name not in values:
                continue
            given = values[one.name] if isinstance(values[one.name], list) else [values[one.name]]
            found = [await self._files.renew(ctx, str(address)) for address in given]
            refused = [address for address in found if isinstance(address, Problem)]
            if refused:
                problem = refused[0]
                del kept[one.name]
            else:
                kept[one.name] = found if one.many else found[0]
        return kept, problem

    async def _seconds(self, model: Model, values: dict[str, Any]) -> dict[str, float]:
        """How long the files of an order are, as far as they were sent to us."""
        found: dict[str, float] = {}
        for address in file_addresses(model, values):
            upload = await self._store.upload(address)
            if upload is not None and upload.seconds is not None:
                found[address] = upload.seconds
        return found

    async def begun_with(self, ctx: UpdateContext, version: int) -> Job | None:
        """The job that a version of the draft has become."""
        return await self._store.job_by_request_key(ctx.person, _key(ctx, version))

    async def cancel(self, ctx: UpdateContext, job: Job) -> None:
        """Stop a running order; the money is back at once."""
        t = ctx.translator
        if job.submitted_at is not None and not job.ended and (refusal := await self._quotas.cancel(ctx)):
            await self._view.toast(ctx, refusal, alert=True)
            return
        try:
            await self._engine.cancel(job.id, f"person {ctx.person}", Actor.USER)
        except ActionNotAllowed:
            await self._view.toast(ctx, t.plain("order.too_late"))
            return
        await self._view.toast(ctx, t.plain("order.cancelled_toast"))


def file_addresses(model: Model, values: Mapping[str, Any]) -> list[str]:
    """Where the files of an order are."""
    given = [values[one.name] for one in model.fields if one.type in FILES and values.get(one.name)]
    return [str(address) for value in given for address in (value if isinstance(value, list) else [value])]


def _key(ctx: UpdateContext, version: int) -> str:
    """What makes a confirmed draft one order, however often it is confirmed."""
    return f"draft:{ctx.chat}:{version}"


def _accepted(ctx: UpdateContext, model: Model) -> OutgoingMessage:
    """Shown from the press until the first progress; the job has no number yet."""
    t = ctx.translator
    text = t.html("order.accepted", title=titled(model, t), time=t.lasting(model.expected_seconds))
    return OutgoingMessage(text=text, buttons=((button(t.plain("button.stop"), "stop", ctx.draft.version),),))


def _given(model: Model, values: Any) -> dict[str, Any]:
    """What a person had given, without what every order has anyway."""
    known = values if isinstance(values, dict) else {}
    return {one.name: known[one.name] for one in model.fields if one.name in known and known[one.name] != one.default}
