"""Screens of the storefront: model list, actions for a file, pages. Pure functions of draft and context."""

from genlock.bot.buttons import BELOW, Row, button, draft_button, pairs
from genlock.bot.order.draft import Draft
from genlock.bot.order.questions import main_text, takes_text
from genlock.bot.screen_context import ICONS, ScreenContext, model_label, shorten
from genlock.bot.storefront.storefront import code_of
from genlock.domain.catalog import Category, Model
from genlock.domain.field import FieldType
from genlock.domain.wish import Wish
from genlock.i18n.catalog_texts import category_title
from genlock.i18n.translator import Html
from genlock.ports import Button, OutgoingMessage

MODELS_A_PAGE = 8
ALL = "all"
#: the mark of a featured model
FEATURED = "⭐"
#: argument of a model's button that skips all questions with a default
AS_USUAL = "usual"
#: length of the part of a text that a button quotes
MAKE_LENGTH = 24


def category_button(screen: ScreenContext, category: Category) -> Button:
    return button(f"{ICONS[category]} {category_title(category, screen.translator)}", "cat", category.value, 0)


def file_menu(draft: Draft, screen: ScreenContext, *, note: Html | None = None) -> OutgoingMessage:
    """Return categories that take a file which the user sent without an order."""
    t = screen.translator
    kind = draft.sent[0].kind if draft.sent else FieldType.IMAGE
    count = len(draft.sent)
    text = (
        t.html("misc.what_with_file")
        if count == 1
        else t.html("misc.what_with_files", files=t.plain("unit.files", n=count))
    )
    lines = [*([note, ""] if note else []), text, *carried(draft, screen, files=False)]
    rows = pairs([category_button(screen, category) for category in screen.storefront.for_file(kind)])
    cancel = draft_button(t.plain("button.cancel"), draft.version, "cancel")
    return OutgoingMessage(text="\n".join(lines), buttons=(*rows, (cancel, button(t.plain("button.menu"), "menu"))))


def model_list(draft: Draft, screen: ScreenContext) -> OutgoingMessage:
    """Return models of a wish or a category, or those that a search found."""
    t, front = screen.translator, screen.storefront
    category = Category(draft.category) if draft.category in set(Category) else None
    wish = front.catalog.wish(draft.wish)
    models = taking(draft, front.wish_models(wish) if wish and not category else front.models(category))
    lines = [_list_title(screen, wish, category, len(models)), t.html("list.search_hint")]
    rows: list[Row] = []
    if draft.query:
        found = front.search(draft.query, category)
        key = "list.found" if found else "list.none"
        lines = [t.html(key, query=shorten(draft.query), models=t.plain("unit.models", n=len(found)))]
        models = found or models
        if not found:
            rows.append(_make(draft, screen))
    lines += carried(draft, screen)
    pages = max(1, -(-len(models) // MODELS_A_PAGE))
    page = min(draft.page, pages - 1)
    page_models = models[page * MODELS_A_PAGE : (page + 1) * MODELS_A_PAGE]
    icons = {model.id: f"{ICONS[model.category]} " for model in page_models if category is None or draft.query}
    list_name = category.value if category else ALL
    rows += [
        (button(icons.get(model.id, "") + row(screen, model), "model", code_of(model.id), list_name),)
        for model in page_models
    ]
    if pages > 1:
        rows.append(pager(draft, screen, page, pages))
    if draft.query and _make(draft, screen) not in rows:
        rows.append(_make(draft, screen))
    return OutgoingMessage(text="\n".join(lines), buttons=(*rows, navigation(draft, screen)))


def _make(draft: Draft, screen: ScreenContext) -> Row:
    """Offer to make what was searched for."""
    text = screen.translator.plain("button.make", text=shorten(draft.query, MAKE_LENGTH))
    return (draft_button(text, draft.version, "make"),)


def taking(draft: Draft, models: list[Model]) -> list[Model]:
    """Return models that take the kinds of files and the text that wait for one; all models if none does."""
    kinds = {file.kind for file in draft.sent}
    taking = [model for model in models if kinds <= {field.type for field in model.fields}] or models
    if not draft.text:
        return taking
    return [model for model in taking if main_text(model) is None or takes_text(model, draft.text)] or taking


def _list_title(screen: ScreenContext, wish: Wish | None, category: Category | None, count: int) -> Html:
    t = screen.translator
    models = t.plain("unit.models", n=count)
    if category is not None:
        return t.html("list.title", icon=ICONS[category], title=category_title(category, t), models=models)
    if wish is not None:
        return t.html("list.title", icon=wish.icon, title=t.plain(f"wish.{wish.name}"), models=models)
    return t.html("list.all", models=models)


def row(screen: ScreenContext, model: Model) -> str:
    """Return the label of a model's button: title and price, with a mark if it is featured."""
    t = screen.translator
    title = f"{FEATURED} {model_label(model, t)}" if model.featured else model_label(model, t)
    if screen.free_now(model):
        return t.plain("list.row_free", title=title)
    usual = screen.storefront.usual_price(model)
    key = f"list.row_{usual.per}" if usual.per else "list.row" if usual.exact else "list.row_from"
    return t.plain(key, title=title, price=t.amount(usual.price))


def is_fixed(model: Model) -> bool:
    """Whether the price does not depend on the values."""
    rows = (*model.prices, *model.extras)
    return model.own_price is not None or (len(rows) == 1 and rows[0].measure() is None)


def carried(draft: Draft, screen: ScreenContext, *, files: bool = True) -> list[Html]:
    t = screen.translator
    lines = []
    if draft.text:
        lines.append(t.html("list.carried_text", text=shorten(draft.text, 200)))
    if draft.sent and files:
        lines.append(t.html("list.carried_files", files=t.plain("unit.files", n=len(draft.sent))))
    return lines


def pager(draft: Draft, screen: ScreenContext, page: int, pages: int) -> Row:
    """Buttons to the previous and next page; the last page is followed by the first."""
    t = screen.translator
    return (
        draft_button(t.plain("button.earlier"), draft.version, "turn", (page - 1) % pages),
        draft_button(t.plain("button.page", page=page + 1, pages=pages), draft.version, "turn", page),
        draft_button(t.plain("button.later"), draft.version, "turn", (page + 1) % pages),
    )


def back_and_cancel(draft: Draft, screen: ScreenContext) -> Row:
    """Return the buttons Back and Cancel of an order."""
    t = screen.translator
    return (
        draft_button(t.plain("button.back"), draft.version, "back"),
        draft_button(t.plain("button.cancel"), draft.version, "cancel"),
    )


def navigation(draft: Draft, screen: ScreenContext) -> Row:
    """Buttons below a model list: back, and menu or cancel."""
    t = screen.translator
    back = draft_button(t.plain("button.back"), draft.version, "back")
    if draft.text or draft.sent:
        return (back, draft_button(t.plain("button.cancel"), draft.version, "cancel"))
    menu = button(t.plain("button.menu"), "menu")
    return (back, menu) if draft.query or draft.wish else (menu,)


def promo(screen: ScreenContext, *, note: Html | None = None) -> OutgoingMessage:
    """Ask for a promo code."""
    t = screen.translator
    lines = [*([note, ""] if note else []), t.html("promo.ask")]
    back: Row = (button(t.plain("button.back"), "balance"), button(t.plain("button.menu"), "menu"))
    return OutgoingMessage(text="\n".join(lines), buttons=(back,))


def page(
    screen: ScreenContext, text: Html, *, in_progress: bool, rows: tuple[Row, ...] = (), below: bool = False
) -> OutgoingMessage:
    """Return a page of text; with an order in progress, a button back to it.

    With `below`, its buttons open the screen below it, so that the page stays readable.
    """
    t, where = screen.translator, (BELOW,) if below else ()
    menu = button(t.plain("button.menu"), "menu", *where)
    back = button(t.plain("button.back"), "here", *where)
    return OutgoingMessage(text=text, buttons=(*rows, (back, menu) if in_progress else (menu,)))
