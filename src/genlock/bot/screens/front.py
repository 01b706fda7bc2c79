"""The menu, the shelves, and what to do with a text or a file that came by itself."""

from genlock.bot.buttons import Row, button, draft_button, grid
from genlock.bot.draft import Draft
from genlock.bot.look import ICONS, Look, shorten, titled
from genlock.bot.shop import code_of
from genlock.bot.tongue import Html
from genlock.domain.catalog import Category, Model
from genlock.domain.field import FieldType
from genlock.telegram.words import Button, Said

MODELS_A_PAGE = 8
ALL = "all"
#: a model's button that asks for nothing that has a default
AS_USUAL = "usual"


def menu(draft: Draft, look: Look, *, note: Html | None = None) -> Said:
    """Where everything begins."""
    t = look.tongue
    first = [note, ""] if note else [t.say("menu.nothing_chosen")]
    lines = [*first, t.say("menu.choose"), *_carried(draft, look)]
    if not look.group:
        lines += ["", t.say("menu.balance", credits=t.credits(look.wallet.available))]
        lines += look.free_runs()
    return Said(text="\n".join(lines), buttons=tuple(_menu_rows(look)))


def _menu_rows(look: Look) -> list[Row]:
    t = look.tongue
    rows = grid([_category(look, category) for category in look.shop.categories()], 2)
    if look.group:
        return [*rows, (button(t.tag("button.models"), "cat", ALL, 0), button(t.tag("button.help"), "help"))]
    return [
        *rows,
        (button(t.tag("button.models"), "cat", ALL, 0), button(t.tag("button.history"), "history")),
        (button(t.tag("button.balance"), "balance"), button(t.tag("button.topup"), "topup")),
        (button(t.tag("button.help"), "help"), button(t.tag("button.language"), "speak", _other(t.language))),
    ]


def _other(language: str) -> str:
    return "en" if language == "ru" else "ru"


def _category(look: Look, category: Category) -> Button:
    return button(f"{ICONS[category]} {category.title(look.tongue.language)}", "cat", category.value, 0)


def what_with(draft: Draft, look: Look, *, note: Html | None = None) -> Said:
    """A file came by itself: what can be done with it."""
    t = look.tongue
    kind = draft.sent[0].kind if draft.sent else FieldType.IMAGE
    count = len(draft.sent)
    text = (
        t.say("misc.what_with_file")
        if count == 1
        else t.say("misc.what_with_files", files=t.tag("unit.files", n=count))
    )
    lines = [*([note, ""] if note else []), text, *_carried(draft, look, files=False)]
    rows = grid([_category(look, category) for category in look.shop.for_file(kind)], 2)
    cancel = draft_button(t.tag("button.cancel"), draft.version, "cancel")
    return Said(text="\n".join(lines), buttons=(*rows, (cancel, button(t.tag("button.menu"), "menu"))))


def shelf(draft: Draft, look: Look) -> Said:
    """Models of a category, or those that a word found."""
    t = look.tongue
    category = Category(draft.category) if draft.category in set(Category) else None
    kinds = {one.kind for one in draft.sent}
    models = _taking(kinds, look.shop.models(category))
    lines = [_shelf_title(look, category, len(models)), t.say("list.search_hint")]
    if draft.query:
        found = look.shop.search(draft.query, category)
        key = "list.found" if found else "list.none"
        lines = [t.say(key, query=shorten(draft.query), models=t.tag("unit.models", n=len(found)))]
        models = found or models
    lines += _carried(draft, look)
    pages = max(1, -(-len(models) // MODELS_A_PAGE))
    page = min(draft.page, pages - 1)
    there = models[page * MODELS_A_PAGE : (page + 1) * MODELS_A_PAGE]
    shelf_name = category.value if category else ALL
    icons = {model.id: f"{ICONS[model.category]} " for model in there if category is None or draft.query}
    rows: list[Row] = [
        (button(icons.get(model.id, "") + row(look, model), "model", code_of(model.id), shelf_name),) for model in there
    ]
    if pages > 1:
        rows.append(pager(draft, look, page, pages))
    return Said(text="\n".join(lines), buttons=(*rows, _ways(draft, look)))


def _taking(kinds: set[FieldType], models: list[Model]) -> list[Model]:
    """Those that take the files which wait for a model; all, if none does."""
    return [model for model in models if kinds <= {one.type for one in model.fields}] or models


def _shelf_title(look: Look, category: Category | None, count: int) -> Html:
    t = look.tongue
    models = t.tag("unit.models", n=count)
    if category is None:
        return t.say("list.all", models=models)
    return t.say("list.title", icon=ICONS[category], title=category.title(t.language), models=models)


def row(look: Look, model: Model) -> str:
    """A model and its price, on one button."""
    t = look.tongue
    if look.free_now(model):
        return t.tag("list.row_free", title=titled(model, t))
    usual = look.shop.usual(model)
    key = f"list.row_{usual.per}" if usual.per else "list.row" if usual.exact else "list.row_from"
    return t.tag(key, title=titled(model, t), price=t.amount(usual.price))


def is_fixed(model: Model) -> bool:
    """Whether the model costs the same whatever is chosen."""
    rows = (*model.prices, *model.extras)
    return model.own_price is not None or (len(rows) == 1 and rows[0].measure() is None)


def _carried(draft: Draft, look: Look, *, files: bool = True) -> list[Html]:
    t = look.tongue
    lines = []
    if draft.text:
        lines.append(t.say("list.carried_text", text=shorten(draft.text, 200)))
    if draft.sent and files:
        lines.append(t.say("list.carried_files", files=t.tag("unit.files", n=len(draft.sent))))
    return lines


def pager(draft: Draft, look: Look, page: int, pages: int) -> Row:
    """Earlier, where one is, later; it goes round."""
    t = look.tongue
    return (
        draft_button(t.tag("button.earlier"), draft.version, "turn", (page - 1) % pages),
        draft_button(t.tag("button.page", page=page + 1, pages=pages), draft.version, "turn", page),
        draft_button(t.tag("button.later"), draft.version, "turn", (page + 1) % pages),
    )


def _ways(draft: Draft, look: Look) -> Row:
    """Off a shelf: to where one was before, and to the menu, or away from what was begun."""
    t = look.tongue
    back = draft_button(t.tag("button.back"), draft.version, "back")
    if draft.text or draft.sent:
        return (back, draft_button(t.tag("button.cancel"), draft.version, "cancel"))
    menu = button(t.tag("button.menu"), "menu")
    return (back, menu) if draft.query else (menu,)


def promo(look: Look, *, note: Html | None = None) -> Said:
    """A promo code is asked for."""
    t = look.tongue
    lines = [*([note, ""] if note else []), t.say("promo.ask")]
    back: Row = (button(t.tag("button.back"), "balance"), button(t.tag("button.menu"), "menu"))
    return Said(text="\n".join(lines), buttons=(back,))


def page(look: Look, text: Html, *, begun: bool, rows: tuple[Row, ...] = ()) -> Said:
    """Something to read, and the way back: to the order that waits behind it, if one has been begun."""
    t = look.tongue
    menu = button(t.tag("button.menu"), "menu")
    return Said(text=text, buttons=(*rows, (button(t.tag("button.back"), "here"), menu) if begun else (menu,)))
