"""From a confirmed draft to a job, and what can be done with past jobs: show again, repeat, change, cancel."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from genlock.bot.buttons import button
from genlock.bot.desk import Desk
from genlock.bot.draft import At, Problem
from genlock.bot.files import Files
from genlock.bot.guard import Guard
from genlock.bot.look import Quote, code, quote, titled
from genlock.bot.tongue import Html
from genlock.bot.visit import Visit
from genlock.bot.wizard import of_job, options
from genlock.domain.catalog import Model
from genlock.domain.errors import InputRefused, NotEnoughMoney, NotPossible
from genlock.domain.field import FILES
from genlock.domain.job import Delivery, Job, NewJob, State
from genlock.domain.money import Purse
from genlock.domain.suspicion import is_given_up
from genlock.engine import operate
from genlock.engine.engine import Engine
from genlock.telegram.words import Said

PROVIDER, CHANNEL = "kie", "telegram"


class Orders:
    def __init__(self, *, desk: Desk, engine: Engine, guard: Guard, files: Files) -> None:
        self._desk = desk
        self._files = files
        self._engine = engine
        self._guard = guard
        self._store = desk.store

    # a new order

    async def confirm(self, visit: Visit, model: Model) -> None:
        """The person has pressed Generate: the pressed message becomes the result."""
        desk, draft = self._desk, visit.draft
        key = _key(visit, draft.version)
        if (made := await self._store.job_ordered(visit.person, key)) is not None:
            await desk.keep(visit, replace(draft.emptied(), at=At.ORDERED, job=made.id, message=None))
            return
        look = await desk.look(visit, order=key)
        try:
            cost = quote(draft, model, look)
        except InputRefused:
            await desk.show_draft(visit)
            return
        if draft.price is not None and cost.price > draft.price:
            await desk.keep(visit, replace(draft, price=cost.price))
            await desk.show_draft(visit, note=visit.tongue.say("confirm.dearer"))
            return
        if refusal := await self._refusal(visit, cost, look.wallet.available):
            await desk.show_draft(visit, note=refusal)
            return
        placeholder = draft.message if visit.pressed == draft.message else None
        if visit.first and placeholder is not None:
            await desk.edit(visit.chat, placeholder, _accepted(visit, model))
        job = await self._order(visit, model, cost, key, placeholder=placeholder)
        if job is None:
            await desk.toast(visit)
            await desk.show_draft(visit)
            return
        # Not on the message: from now on it is the engine's, which may have put the end of the order there.
        await desk.toast(visit, visit.tongue.tag("order.accepted_toast", code=code(job.id)))
        await desk.keep(visit, replace(draft.emptied(), at=At.ORDERED, job=job.id, message=None))

    async def at_once(self, visit: Visit, model: Model) -> None:
        """`/gen MODEL TEXT`: the draft is complete, and nobody is asked again."""
        desk, draft = self._desk, visit.draft
        key = f"update:{visit.update}"
        if not visit.first and (made := await self._store.job_ordered(visit.person, key)) is not None:
            await self._leave(visit, made)
            return
        look = await desk.look(visit, order=key)
        cost = quote(draft, model, look)
        refusal = await self._refusal(visit, cost, look.wallet.available)
        if refusal or cost.price > look.wallet.available:
            await desk.show_draft(visit, note=refusal)
            return
        job = await self._order(visit, model, cost, key, placeholder=None)
        if job is None:
            await desk.show_draft(visit)
            return
        await self._leave(visit, job)

    async def _leave(self, visit: Visit, job: Job) -> None:
        """The order has a message of its own; the screen above it has nothing more to say."""
        before = visit.draft
        await self._desk.keep(visit, replace(before.emptied(), at=At.ORDERED, job=job.id, message=None))
        if before.message is not None:
            await self._desk.remove(visit.chat, before.message)

    async def _refusal(self, visit: Visit, cost: Quote, available: int) -> Html | None:
        if cost.price > available:
            return None  # the screen says it better
        return await self._guard.order(visit)

    async def _order(self, visit: Visit, model: Model, cost: Quote, key: str, *, placeholder: int | None) -> Job | None:
        """None if the money went elsewhere meanwhile, or the free run did."""
        price = cost.price
        if cost.free and not await self._store.take_free_run(visit.person, key, self._desk.rules.free_per_day):
            return None
        for address in file_addresses(model, visit.draft.values):
            await self._store.use_upload(address)
        order = NewJob(
            person_id=visit.person,
            request_key=key,
            provider=PROVIDER,
            channel=CHANNEL,
            address=str(visit.address),
            model=model.id,
            input=json.dumps(model.validate(visit.draft.values), ensure_ascii=False),
            price=price,
            deadline_seconds=model.deadline_seconds,
            placeholder=None if placeholder is None else str(placeholder),
            correlation=f"u{visit.update}",
        )
        try:
            job = await self._engine.order(order)
        except NotEnoughMoney:
            return None
        await self._store.set_last_model(visit.person, model.id)
        return job

    # past orders

    async def mine(self, visit: Visit, job_id: int) -> Job | None:
        """A job of this person; others are told whose it is."""
        job = await self._store.job(job_id) if job_id >= 0 else None
        if job is None:
            await self._desk.toast(visit, visit.tongue.tag("order.unknown"), alert=True)
        elif job.person_id != visit.person:
            await self._desk.toast(visit, visit.tongue.tag("order.not_yours"), alert=True)
            job = None
        return job

    async def again(self, visit: Visit, job: Job) -> None:
        """Show a result once more, from Telegram's own copy; a repeated update does not show it twice."""
        t, desk = visit.tongue, self._desk
        if job.state is not State.SUCCEEDED:
            key = "order.nothing_to_show" if job.ended else "order.not_ended"
            await desk.toast(visit, t.tag(key), alert=True)
            return
        if is_given_up(job.attention):  # or everybody's work would stop with it, at one person's wish
            await desk.toast(visit, t.tag("order.again_broken"), alert=True)
            return
        if visit.repeated:
            return
        await desk.keep(visit, visit.draft)
        try:
            if job.delivery not in (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
                raise NotPossible  # noqa: TRY301 - as the engine would say
            shown = await operate.show_again(self._engine.kit, job.id, f"person {visit.person}")
        except NotPossible:
            await desk.toast(visit, t.tag("order.again_not_yet"))
            return
        except NotEnoughMoney as short:
            missing = t.credits(short.price - short.available)
            text = t.tag("order.again_short", credits=t.credits(short.price), missing=missing)
            await desk.toast(visit, text, alert=True)
            return
        if shown.purse is Purse.HELD:
            await desk.toast(visit, t.tag("order.again_paid", credits=t.credits(shown.price)), alert=True)
            return
        await desk.toast(visit, t.tag("order.again_soon"))

    async def repeat(self, visit: Visit, job: Job, *, change: bool) -> None:
        """The same order again, to be confirmed or changed first."""
        desk = self._desk
        model = desk.shop.by_id(job.model)
        if model is None:
            await desk.toast(visit, visit.tongue.tag("order.model_gone"), alert=True)
            return
        if not visit.repeated:
            values, problem = await self._renewed(visit, model, _given(model, json.loads(job.input)))
            draft = of_job(visit.draft, model, values, await self._seconds(model, values))
            if problem:
                draft = replace(draft, problem=problem)
            await desk.keep(visit, options(draft) if change and not problem else draft)
        await desk.toast(visit)
        await desk.show_draft(visit)

    async def _renewed(
        self, visit: Visit, model: Model, values: dict[str, Any]
    ) -> tuple[dict[str, Any], Problem | None]:
        """The values with files that can still be fetched, and why some cannot."""
        kept, problem = dict(values), None
        for one in model.fields:
            if one.type not in FILES or one.name not in values:
                continue
            given = values[one.name] if isinstance(values[one.name], list) else [values[one.name]]
            found = [await self._files.renew(visit, str(address)) for address in given]
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

    async def begun_with(self, visit: Visit, version: int) -> Job | None:
        """The job that a version of the draft has become."""
        return await self._store.job_ordered(visit.person, _key(visit, version))

    async def cancel(self, visit: Visit, job: Job) -> None:
        """Stop a running order; the money is back at once."""
        t = visit.tongue
        if job.submitted_at is not None and not job.ended and (refusal := await self._guard.cancel(visit)):
            await self._desk.toast(visit, refusal, alert=True)
            return
        try:
            await self._engine.cancel(job.id, f"person {visit.person}")
        except NotPossible:
            await self._desk.toast(visit, t.tag("order.too_late"))
            return
        await self._desk.toast(visit, t.tag("order.cancelled_toast"))


def file_addresses(model: Model, values: Mapping[str, Any]) -> list[str]:
    """Where the files of an order are."""
    given = [values[one.name] for one in model.fields if one.type in FILES and values.get(one.name)]
    return [str(address) for value in given for address in (value if isinstance(value, list) else [value])]


def _key(visit: Visit, version: int) -> str:
    """What makes a confirmed draft one order, however often it is confirmed."""
    return f"draft:{visit.chat}:{version}"


def _accepted(visit: Visit, model: Model) -> Said:
    """Shown from the press until the first progress; the job has no number yet."""
    t = visit.tongue
    text = t.say("order.accepted", title=titled(model, t), time=t.lasting(model.expected_seconds))
    return Said(text=text, buttons=((button(t.tag("button.stop"), "stop", visit.draft.version),),))


def _given(model: Model, values: Any) -> dict[str, Any]:
    """What a person had given, without what every order has anyway."""
    known = values if isinstance(values, dict) else {}
    return {one.name: known[one.name] for one in model.fields if one.name in known and known[one.name] != one.default}
