"""Buttons: what each press does. Old ones are known by the draft's version and answered kindly."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from genlock.bot import wizard
from genlock.bot.admin import Admin
from genlock.bot.buttons import Pressed
from genlock.bot.desk import Desk
from genlock.bot.draft import At, Draft
from genlock.bot.orders import Orders
from genlock.bot.pages import Pages
from genlock.bot.screens.front import ALL, AS_USUAL
from genlock.bot.screens.order import example
from genlock.bot.visit import Visit
from genlock.domain.catalog import Category, Model

Handler = Callable[[Visit, Pressed], Awaitable[None]]
Step = Callable[[Draft, Model, Pressed], Draft]


#: steps of an order that need nothing but the draft
STEPS: Mapping[str, Step] = {
    "pick": lambda draft, model, press: wizard.pick(draft, model, press.number()),
    "skip": lambda draft, model, _: wizard.skip(draft, model),
    "rest": lambda draft, model, _: wizard.rest(draft, model),
    "clear": lambda draft, model, _: wizard.clear(draft, model),
    "options": lambda draft, _, __: wizard.options(draft),
    "edit": lambda draft, model, press: wizard.edit(draft, model, press.number()),
    "done": lambda draft, model, _: wizard.advance(replace(draft, problem=None), model),
    "turn": lambda draft, _, press: wizard.turn(draft, press.number()),
}


class Presses:
    def __init__(self, *, desk: Desk, orders: Orders, pages: Pages, admin: Admin) -> None:
        self._desk = desk
        self._orders = orders
        self._pages = pages
        self._admin = admin
        self._any_time: Mapping[str, Handler] = {
            "menu": self._menu,
            "cat": self._category,
            "model": self._model,
            "again": self._again,
            "repeat": self._repeat,
            "change": self._change,
            "cancel": self._cancel_order,
            "stop": self._stop,
            **pages.presses,
        }

    async def pressed(self, visit: Visit, press: Pressed) -> None:
        """Do what the button says; a button that is not known is answered, too."""
        if press.verb == "adm":
            await self._admin.pressed(visit, press)
            return
        if await self._not_theirs(visit, press):
            return
        if press.version is not None:
            await self._draft_press(visit, press)
            return
        handler = self._any_time.get(press.verb)
        if handler is None:
            await self._stale(visit)
            return
        await handler(visit, press)

    async def _not_theirs(self, visit: Visit, press: Pressed) -> bool:
        """In a group anybody can press; a menu answers to whoever opened it."""
        if not visit.group or visit.pressed is None or press.verb in ("again", "repeat", "change"):
            return False
        owner = await self._desk.store.draft_owner(visit.chat, visit.pressed)
        if owner is None or owner == visit.person:
            return False
        await self._desk.toast(visit, visit.tongue.tag("order.not_your_menu"), alert=True)
        return True

    # buttons of the draft

    async def _draft_press(self, visit: Visit, press: Pressed) -> None:
        desk, draft = self._desk, visit.draft
        if press.version != draft.version or visit.pressed != draft.message:
            await self._stale(visit)  # also data that somebody brought to another message, as of a result
            return
        if press.verb == "cancel":
            await desk.keep(visit, draft.emptied())
            await desk.toast(visit)
            await desk.show_draft(visit, note=visit.tongue.say("menu.cancelled"))
            return
        model = desk.shop.by_id(draft.model) if draft.model else None
        if model is None:
            if press.verb == "back" and not draft.model:
                await self._step(visit, replace(draft, query="", page=0) if draft.query else draft.carrying())
                return
            if press.verb == "turn":
                await self._step(visit, wizard.turn(draft, press.number()))
                return
            await desk.toast(visit, visit.tongue.tag("order.model_gone") if draft.model else None)
            await self._menu(visit, press)
            return
        await self._order_press(visit, press, model)

    async def _order_press(self, visit: Visit, press: Pressed, model: Model) -> None:
        desk, draft = self._desk, visit.draft
        match press.verb:
            case "go":
                await self._orders.confirm(visit, model)
            case "topup":
                await self._pages.topup_for(visit, model)
            case "back":
                await self._step(visit, wizard.back(draft, model) or _shelf(draft, model))
            case "instead":
                await self._step(visit, draft.carrying())
            case "other":
                await self._step(visit, _shelf(draft, model))
            case "example" if draft.field:
                await self._step(visit, wizard.answer(draft, model, example(model, await desk.look(visit))))
            case verb if verb in STEPS:
                await self._step(visit, STEPS[verb](draft, model, press))
            case _:
                await self._stale(visit)

    async def _step(self, visit: Visit, draft: Draft) -> None:
        await self._desk.keep(visit, draft)
        await self._desk.toast(visit)
        await self._desk.show_draft(visit)

    async def _stale(self, visit: Visit) -> None:
        """A second press of the same button shows the same again; an older button shows where one is now."""
        desk, t = self._desk, visit.tongue
        if visit.draft.at is At.ORDERED and visit.draft.job is not None:
            await desk.toast(visit, t.tag("order.already"))
            return
        if visit.pressed != visit.draft.message:
            await desk.toast(visit, t.tag("order.stale"))
        await desk.toast(visit)
        await desk.show_draft(visit)

    # buttons that are good at any time

    async def _menu(self, visit: Visit, _: Pressed) -> None:
        note = visit.tongue.say("menu.let_go") if visit.draft.sent else None
        await self._desk.keep(visit, visit.draft.emptied())
        await self._desk.toast(visit)
        await self._desk.show_draft(visit, note=note)

    async def _category(self, visit: Visit, press: Pressed) -> None:
        category = press.word()
        if category != ALL and category not in set(Category):
            await self._menu(visit, press)
            return
        kept = replace(
            visit.draft.carrying(),
            at=At.LIST,
            category="" if category == ALL else category,
            page=max(press.number(1), 0),
        )
        await self._step(visit, kept)

    async def _model(self, visit: Visit, press: Pressed) -> None:
        model = self._desk.shop.by_code(press.word())
        if model is None:
            await self._desk.toast(visit, visit.tongue.tag("order.model_gone"), alert=True)
            return
        category = press.word(1) if press.word(1) in set(Category) else model.category.value
        draft = wizard.open_model(visit.draft.carrying(), model, category)
        await self._step(visit, wizard.rest(draft, model) if press.word(2) == AS_USUAL else draft)

    async def _again(self, visit: Visit, press: Pressed) -> None:
        if (job := await self._orders.mine(visit, press.number())) is not None:
            await self._orders.again(visit, job)

    async def _repeat(self, visit: Visit, press: Pressed) -> None:
        if (job := await self._orders.mine(visit, press.number())) is not None:
            await self._orders.repeat(visit, job, change=False)

    async def _change(self, visit: Visit, press: Pressed) -> None:
        if (job := await self._orders.mine(visit, press.number())) is not None:
            await self._orders.repeat(visit, job, change=True)

    async def _cancel_order(self, visit: Visit, press: Pressed) -> None:
        if (job := await self._orders.mine(visit, press.number())) is not None:
            await self._orders.cancel(visit, job)

    async def _stop(self, visit: Visit, press: Pressed) -> None:
        """Cancel what has just been ordered by this message."""
        job = await self._orders.begun_with(visit, press.number())
        if job is None:
            await self._desk.toast(visit, visit.tongue.tag("order.unknown"))
            return
        await self._orders.cancel(visit, job)


def _shelf(draft: Draft, model: Model) -> Draft:
    """Back from the first question: the shelf the model was taken from. Text and files are kept for another one."""
    main = wizard.main_text(model)
    text = str(draft.values.get(main.name, "")) if main else ""
    return replace(
        draft.emptied(),
        at=At.LIST,
        category=draft.category or model.category.value,
        text=text,
        sent=(*draft.sent, *wizard.files_given(draft, model)),
    )
