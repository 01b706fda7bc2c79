"""Handles button presses. The draft's version tells outdated buttons from current ones."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from genlock.bot.admin.commands import Admin
from genlock.bot.buttons import BELOW, ButtonData
from genlock.bot.chat_view import ChatView
from genlock.bot.context import Handler, UpdateContext
from genlock.bot.handlers.pages import Pages
from genlock.bot.handlers.wishes import Wishes
from genlock.bot.order import per_file, questions, styles, voice_list, wizard
from genlock.bot.order.card import example
from genlock.bot.order.draft import Draft, Step
from genlock.bot.order.draft_view import DraftView
from genlock.bot.order.orders import Orders
from genlock.bot.order.presets import Presets
from genlock.bot.order.variations import COUNTS, with_copies
from genlock.bot.storefront.screens import AS_USUAL, taking
from genlock.bot.storefront.storefront import BEGINS_WITH, Storefront
from genlock.domain.catalog import Category, Model
from genlock.ports import Database

Transition = Callable[[Draft, Model, ButtonData], Draft]


#: buttons under results, which find the order's owner themselves
BUTTONS_OF_RESULTS = frozenset(
    {"again", "repeat", "change", "vary", "next", "nexts", "original", "improved", "unimproved"}
)
#: what buttons do that need only the draft and the model
TRANSITIONS: Mapping[str, Transition] = {
    "pick": lambda draft, model, data: wizard.pick(draft, model, data.number()),
    "skip": lambda draft, model, _: wizard.skip(draft, model),
    "rest": lambda draft, model, _: wizard.skip_rest(draft, model),
    "clear": lambda draft, model, _: wizard.clear(draft, model),
    "options": lambda draft, _, __: wizard.options(draft),
    "edit": lambda draft, model, data: wizard.edit(draft, model, data.number()),
    "done": lambda draft, model, _: wizard.advance(replace(draft, problem=None), model),
    "turn": lambda draft, _, data: wizard.turn_page(draft, data.number()),
    "styles": lambda draft, _, __: styles.choose(draft),
    "style": lambda draft, model, data: wizard.advance(replace(draft, style=data.word()), model),
    "improve": lambda draft, _, __: replace(draft, step=Step.IMPROVE, field="", problem=None, price=None),
    "filter": lambda draft, model, data: voice_list.filtered(draft, model, data.word(), data.word(1)),
    "listen": lambda draft, model, data: voice_list.listening(draft, model, data.number()),
    "instead": lambda draft, _, __: draft.keeping_input(),
    "other": lambda draft, model, _: _to_model_list(draft, model),
}


class ButtonHandler:
    def __init__(  # noqa: PLR0913 - one argument per part it works with
        self,
        *,
        view: ChatView,
        drafts: DraftView,
        store: Database,
        storefront: Storefront,
        orders: Orders,
        pages: Pages,
        wishes: Wishes,
        presets: Presets,
        admin: Admin,
        handlers: Mapping[str, Handler],
        rng: Random,
    ) -> None:
        """`handlers` has the buttons of the other parts, by verb."""
        self._view = view
        self._drafts = drafts
        self._store = store
        self._storefront = storefront
        self._orders = orders
        self._pages = pages
        self._presets = presets
        self._wishes = wishes
        self._admin = admin
        self._rng = rng
        self._handlers: dict[str, Handler] = {
            "menu": self._menu,
            "model": self._model,
            "again": self._show_again,
            "repeat": self._repeat,
            "change": self._change,
            "vary": self._vary,
            "cancel": self._cancel_order,
            "stop": self._stop,
            **handlers,
        }

    async def handle(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Run the handler of the button; an unknown button is answered as outdated."""
        if data.verb == "adm":
            await self._admin.handle_button(ctx, data)
            return
        if await self._is_of_another_user(ctx, data):
            return
        if data.version is not None:
            await self._draft_button(ctx, data)
            return
        ctx.on_notice = ctx.on_notice or data.args[-1:] == (BELOW,)
        handler = self._handlers.get(data.verb)
        if handler is None:
            await self._outdated(ctx)
            return
        await handler(ctx, data)

    async def _is_of_another_user(self, ctx: UpdateContext, data: ButtonData) -> bool:
        """Refuse a press on the menu of another user of the group; return whether it was refused."""
        if not ctx.group or ctx.button_message is None or data.verb in BUTTONS_OF_RESULTS:
            return False
        owner = await self._store.draft_owner(ctx.chat, ctx.button_message)
        if owner is None or owner == ctx.account_id:
            return False
        await self._view.toast(ctx, ctx.translator.plain("order.not_your_menu"), alert=True)
        return True

    # buttons of the draft

    async def _draft_button(self, ctx: UpdateContext, data: ButtonData) -> None:
        view, draft = self._view, ctx.draft
        if not draft.is_shown_by(ctx.button_message, data.version):
            await self._outdated(ctx)  # includes data that a client sent for another message, such as a result
            return
        if data.verb == "cancel":
            await self._drafts.save(ctx, draft.cleared())
            await view.toast(ctx)
            await self._drafts.show(ctx, note=ctx.translator.html("menu.cancelled"))
            return
        model = self._storefront.by_id(draft.model) if draft.model else None
        if model is None:
            if data.verb == "back" and not draft.model:
                await self._save_and_show(ctx, _before_list(draft))
                return
            if data.verb == "make" and draft.query:
                await self._wishes.make(ctx)
                return
            if data.verb == "turn":
                await self._save_and_show(ctx, wizard.turn_page(draft, data.number()))
                return
            await view.toast(ctx, ctx.translator.plain("order.model_gone") if draft.model else None)
            await self._menu(ctx, data)
            return
        await self._order_button(ctx, data, model)

    async def _order_button(self, ctx: UpdateContext, data: ButtonData, model: Model) -> None:
        draft = ctx.draft
        match data.verb:
            case "go" | "all":
                await self._orders.confirm(ctx, model, every=data.verb == "all")
            case "topup":
                await self._pages.topup_for(ctx, model)
            case "back":
                await self._save_and_show(ctx, wizard.back(draft, model) or self._before(draft, model))
            case "switch":
                await self._wishes.switch(ctx, _waiting(draft, model), data.word())
            case "take" if (another := self._storefront.by_code(data.word())) is not None:
                carried = _to_model_list(draft, model)
                await self._save_and_show(ctx, per_file.start(carried, another, carried.category, defaults=True))
            case verb if verb in self._presets.draft_handlers:
                await self._presets.draft_handlers[verb](ctx, data, model)
            case "copies" if draft.step is Step.CONFIRM:
                await self._save_and_show(ctx, with_copies(draft, model, data.number(), self._rng))
            case "example" if draft.field:
                await self._save_and_show(ctx, wizard.answer(draft, model, example(draft, model, ctx.translator)))
            case verb if verb in TRANSITIONS:
                await self._save_and_show(ctx, TRANSITIONS[verb](draft, model, data))
            case _:
                await self._outdated(ctx)

    def _before(self, draft: Draft, model: Model) -> Draft:
        """Go back from the first question: to the model list, or to where a single model or a next step was opened."""
        listed = _to_model_list(draft, model)
        wish = self._storefront.catalog.wish(listed.wish)
        alone = wish is not None and len(taking(listed, self._storefront.wish_models(wish, listed.category))) == 1
        return listed.keeping_input() if draft.next_step or alone else listed

    async def _save_and_show(self, ctx: UpdateContext, draft: Draft) -> None:
        await self._drafts.save(ctx, draft)
        await self._view.toast(ctx)
        await self._drafts.show(ctx)

    async def _outdated(self, ctx: UpdateContext) -> None:
        """Answer an outdated button: show the draft as it is now."""
        view, t = self._view, ctx.translator
        if ctx.draft.step is Step.ORDERED and ctx.draft.job is not None:
            await view.toast(ctx, t.plain("order.already"))
            return
        if ctx.button_message != ctx.draft.message:
            await view.toast(ctx, t.plain("order.stale"))
        await view.toast(ctx)
        await self._drafts.show(ctx)

    # buttons that never become outdated

    async def _menu(self, ctx: UpdateContext, _: ButtonData) -> None:
        note = ctx.translator.html("menu.files_dropped") if ctx.draft.sent else None
        await self._drafts.save(ctx, ctx.draft.cleared())
        await self._view.toast(ctx)
        await self._drafts.show(ctx, note=note)

    async def _model(self, ctx: UpdateContext, data: ButtonData) -> None:
        model = self._storefront.by_code(data.word())
        if model is None:
            await self._view.toast(ctx, ctx.translator.plain("order.model_gone"), alert=True)
            return
        category = data.word(1) if data.word(1) in set(Category) else _category_for(model, ctx.draft)
        started = per_file.start(ctx.draft.keeping_input(), model, category, defaults=data.word(2) == AS_USUAL)
        listed = self._storefront.catalog.wish(ctx.draft.wish)
        wish = listed if listed and category in listed.categories else self._storefront.catalog.wish_of(category)
        started = await self._drafts.with_last_settings(ctx, started)
        await self._save_and_show(ctx, replace(started, wish=wish.name if wish else ""))

    async def _show_again(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (job := await self._orders.find_own(ctx, ctx.order_id(data))) is not None:
            await self._orders.show_again(ctx, job)

    async def _repeat(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (job := await self._orders.find_own(ctx, ctx.order_id(data))) is not None:
            await self._orders.repeat(ctx, job)

    async def _vary(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (job := await self._orders.find_own(ctx, ctx.order_id(data))) is not None:
            await self._orders.repeat(ctx, job, copies=COUNTS[0])

    async def _change(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (job := await self._orders.find_own(ctx, ctx.order_id(data))) is not None:
            await self._orders.repeat(ctx, job, change=True)

    async def _cancel_order(self, ctx: UpdateContext, data: ButtonData) -> None:
        if (job := await self._orders.find_own(ctx, ctx.order_id(data))) is not None:
            await self._orders.cancel(ctx, job)

    async def _stop(self, ctx: UpdateContext, data: ButtonData) -> None:
        """Cancel the job that was just ordered with this message."""
        job = await self._orders.find_by_draft(ctx, data.number(), data.number(1))
        if job is None:
            await self._view.toast(ctx, ctx.translator.plain("order.unknown"))
            return
        await self._orders.cancel(ctx, job)


def _category_for(model: Model, draft: Draft) -> str:
    """Return the category that an order starts from: one about the kind of file that waits, else the model's own."""
    kind = draft.sent[0].kind if draft.sent else None
    about_file = (category for category in (model.category, *model.also) if kind and BEGINS_WITH.get(category) is kind)
    return next(about_file, model.category).value


def _before_list(draft: Draft) -> Draft:
    """Go back from a search to its list, from the whole list of a wish to the short one, from that to the menu."""
    if draft.query and (draft.wish or draft.category):
        return replace(draft, query="", page=0)
    if draft.wish and not draft.popular:
        return replace(draft, popular=True, query="", page=0)
    return draft.keeping_input()


def _to_model_list(draft: Draft, model: Model) -> Draft:
    """Go to the model list; text and files wait for another model."""
    category = draft.category or model.category.value
    return replace(_waiting(draft, model), step=Step.LIST, category=category, wish=draft.wish, popular=bool(draft.wish))


def _waiting(draft: Draft, model: Model) -> Draft:
    """Return a draft without a model, in which the text and the files of the order wait for one."""
    main = questions.main_text(model)
    text = str(draft.values.get(main.name, "")) if main else ""
    text = wizard.refused_text(draft, model) or text
    files = (*draft.sent, *wizard.files_given(draft, model))
    return replace(draft.cleared(), text=text, sent=files, aspects=draft.aspects)
