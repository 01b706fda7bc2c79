"""Buttons: what each press does. Old ones are known by the draft's version and answered kindly."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from genlock.bot.admin.commands import Admin
from genlock.bot.buttons import ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import UpdateContext
from genlock.bot.handlers.pages import Pages
from genlock.bot.order import wizard
from genlock.bot.order.draft import At, Draft
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders
from genlock.bot.order.screens import example
from genlock.bot.storefront.screens import ALL, AS_USUAL
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Category, Model
from genlock.ports import Database

Handler = Callable[[UpdateContext, ButtonData], Awaitable[None]]
Step = Callable[[Draft, Model, ButtonData], Draft]


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


class ButtonHandler:
    def __init__(
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        orders: Orders,
        pages: Pages,
        admin: Admin,
    ) -> None:
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
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

    async def pressed(self, ctx: UpdateContext, press: ButtonData) -> None:
        """Do what the button says; a button that is not known is answered, too."""
        if press.verb == "adm":
            await self._admin.pressed(ctx, press)
            return
        if await self._not_theirs(ctx, press):
            return
        if press.version is not None:
            await self._draft_press(ctx, press)
            return
        handler = self._any_time.get(press.verb)
        if handler is None:
            await self._stale(ctx)
            return
        await handler(ctx, press)

    async def _not_theirs(self, ctx: UpdateContext, press: ButtonData) -> bool:
        """In a group anybody can press; a menu answers to whoever opened it."""
        if not ctx.group or ctx.pressed is None or press.verb in ("again", "repeat", "change"):
            return False
        owner = await self._store.draft_owner(ctx.chat, ctx.pressed)
        if owner is None or owner == ctx.person:
            return False
        await self._view.toast(ctx, ctx.translator.plain("order.not_your_menu"), alert=True)
        return True

    # buttons of the draft

    async def _draft_press(self, ctx: UpdateContext, press: ButtonData) -> None:
        view, draft = self._view, ctx.draft
        if press.version != draft.version or ctx.pressed != draft.message:
            await self._stale(ctx)  # also data that somebody brought to another message, as of a result
            return
        if press.verb == "cancel":
            await self._drafts.save(ctx, draft.emptied())
            await view.toast(ctx)
            await self._drafts.show(ctx, note=ctx.translator.html("menu.cancelled"))
            return
        model = self._storefront.by_id(draft.model) if draft.model else None
        if model is None:
            if press.verb == "back" and not draft.model:
                await self._step(ctx, replace(draft, query="", page=0) if draft.query else draft.carrying())
                return
            if press.verb == "turn":
                await self._step(ctx, wizard.turn(draft, press.number()))
                return
            await view.toast(ctx, ctx.translator.plain("order.model_gone") if draft.model else None)
            await self._menu(ctx, press)
            return
        await self._order_press(ctx, press, model)

    async def _order_press(self, ctx: UpdateContext, press: ButtonData, model: Model) -> None:
        draft = ctx.draft
        match press.verb:
            case "go":
                await self._orders.confirm(ctx, model)
            case "topup":
                await self._pages.topup_for(ctx, model)
            case "back":
                await self._step(ctx, wizard.back(draft, model) or _shelf(draft, model))
            case "instead":
                await self._step(ctx, draft.carrying())
            case "other":
                await self._step(ctx, _shelf(draft, model))
            case "example" if draft.field:
                await self._step(ctx, wizard.answer(draft, model, example(model, ctx.translator)))
            case verb if verb in STEPS:
                await self._step(ctx, STEPS[verb](draft, model, press))
            case _:
                await self._stale(ctx)

    async def _step(self, ctx: UpdateContext, draft: Draft) -> None:
        await self._drafts.save(ctx, draft)
        await self._view.toast(ctx)
        await self._drafts.show(ctx)

    async def _stale(self, ctx: UpdateContext) -> None:
        """A second press of the same button shows the same again; an older button shows where one is now."""
        view, t = self._view, ctx.translator
        if ctx.draft.at is At.ORDERED and ctx.draft.job is not None:
            await view.toast(ctx, t.plain("order.already"))
            return
        if ctx.pressed != ctx.draft.message:
            await view.toast(ctx, t.plain("order.stale"))
        await view.toast(ctx)
        await self._drafts.show(ctx)

    # buttons that are good at any time

    async def _menu(self, ctx: UpdateContext, _: ButtonData) -> None:
        note = ctx.translator.html("menu.let_go") if ctx.draft.sent else None
        await self._drafts.save(ctx, ctx.draft.emptied())
        await self._view.toast(ctx)
        await self._drafts.show(ctx, note=note)

    async def _category(self, ctx: UpdateContext, press: ButtonData) -> None:
        category = press.word()
        if category != ALL and category not in set(Category):
            await self._menu(ctx, press)
            return
        kept = replace(
            ctx.draft.carrying(),
            at=At.LIST,
            category="" if category == ALL else category,
            page=max(press.number(1), 0),
        )
        await self._step(ctx, kept)

    async def _model(self, ctx: UpdateContext, press: ButtonData) -> None:
        model = self._storefront.by_code(press.word())
        if model is None:
            await self._view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
            return
        category = press.word(1) if press.word(1) in set(Category) else model.category.value
        draft = wizard.open_model(ctx.draft.carrying(), model, category)
        await self._step(ctx, wizard.rest(draft, model) if press.word(2) == AS_USUAL else draft)

    async def _again(self, ctx: UpdateContext, press: ButtonData) -> None:
        if (job := await self._orders.mine(ctx, press.number())) is not None:
            await self._orders.again(ctx, job)

    async def _repeat(self, ctx: UpdateContext, press: ButtonData) -> None:
        if (job := await self._orders.mine(ctx, press.number())) is not None:
            await self._orders.repeat(ctx, job, change=False)

    async def _change(self, ctx: UpdateContext, press: ButtonData) -> None:
        if (job := await self._orders.mine(ctx, press.number())) is not None:
            await self._orders.repeat(ctx, job, change=True)

    async def _cancel_order(self, ctx: UpdateContext, press: ButtonData) -> None:
        if (job := await self._orders.mine(ctx, press.number())) is not None:
            await self._orders.cancel(ctx, job)

    async def _stop(self, ctx: UpdateContext, press: ButtonData) -> None:
        """Cancel what has just been ordered by this message."""
        job = await self._orders.begun_with(ctx, press.number())
        if job is None:
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"))
            return
        await self._orders.cancel(ctx, job)


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
