"""Screens of the menu: its entries, the short list of each, the examples of the first screen. Pure functions."""

from genlock.bot.buttons import Row, button, draft_button, grid
from genlock.bot.order.draft import Draft
from genlock.bot.screen_context import ScreenContext, model_label
from genlock.bot.storefront.screens import ALL, AS_USUAL, carried, category_button, navigation, row, taking
from genlock.bot.storefront.storefront import code_of
from genlock.domain.catalog import Model
from genlock.domain.wish import Wish
from genlock.i18n.catalog_texts import category_title, in_language
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button, OutgoingMessage

#: the last argument of a button that opens the whole list
EVERY = "every"
EXAMPLES_SHOWN = 3


def wish_title(wish: Wish, t: Translator) -> str:
    return f"{wish.icon} {t.plain(f'wish.{wish.name}')}"


def wish_button(wish: Wish, t: Translator) -> Button:
    return button(wish_title(wish, t), "wish", wish.name)


def menu(draft: Draft, screen: ScreenContext, *, note: Html | None = None) -> OutgoingMessage:
    """Return the main menu."""
    t = screen.translator
    first = [note, ""] if note else [t.html("menu.nothing_chosen")]
    lines = [*first, t.html("menu.choose_group" if screen.group else "menu.choose"), *carried(draft, screen)]
    if not screen.group:
        lines += ["", t.html("menu.balance", credits=t.credits(screen.wallet.available))]
        lines += screen.free_runs()
    return OutgoingMessage(text="\n".join(lines), buttons=tuple(_menu_rows(screen)))


def _menu_rows(screen: ScreenContext) -> list[Row]:
    t = screen.translator
    entries = [wish_button(wish, t) for wish in screen.storefront.wishes()]
    rows = grid(entries or [category_button(screen, category) for category in screen.storefront.categories()], 2)
    if screen.group:
        return [*rows, (button(t.plain("button.models"), "cat", ALL, 0), button(t.plain("button.help"), "help"))]
    helping = [button(t.plain("button.help"), "help"), _language(t)]
    money = [button(t.plain("button.balance"), "balance"), button(t.plain("button.topup"), "topup")]
    if screen.first_order:  # what a phone shows without scrolling: results and more credits are wanted later
        small = [*_favourites(screen), *([] if screen.wallet.available else money), *helping]
        return [*examples(screen), *rows, *grid(small, 2)]
    own = [button(t.plain("button.models"), "cat", ALL, 0), button(t.plain("gallery.button"), "mine")]
    return [*rows, *grid([*own, *_favourites(screen), *money, *helping], 2)]


def _favourites(screen: ScreenContext) -> list[Button]:
    """Return the way to the user's favourite models; none while there are none on sale."""
    if not any(screen.storefront.by_id(model) for model in screen.favourites):
        return []
    return [button(screen.translator.plain("favourite.button"), "favs")]


def _language(t: Translator) -> Button:
    """Switch to the other language; with more than two, choose one."""
    others = [language for language in t.languages.values() if language.code != t.language]
    if len(others) == 1:
        return button(t.plain("button.language", name=others[0].name), "speak", others[0].code)
    return button(t.plain("button.languages"), "language")


def short_list(draft: Draft, wish: Wish, screen: ScreenContext) -> OutgoingMessage:
    """Return the popular models of a wish: what each is good at, its price and how long it takes."""
    t, front = screen.translator, screen.storefront
    every = taking(draft, front.wish_models(wish, draft.category))
    popular = taking(draft, [model for model in front.popular(wish, draft.category) if model in every])
    title = category_title(draft.category, t) if draft.category else t.plain(f"wish.{wish.name}")
    lines: list[str] = [t.html("wish.title", icon=wish.icon, title=title)]
    for model in popular:
        lines += ["", *_about(model, screen)]
    lines += ["", *(carried(draft, screen) or [t.html(f"wish.hint_{wish.name}")])]
    if screen.group:
        lines.append(t.html("ask.in_group"))
    rows: list[Row] = [(model_button(model, wish, draft.category, row(screen, model)),) for model in popular]
    if len(every) > len(popular):
        rows.append((_every(wish, draft.category, len(every), t),))
    return OutgoingMessage(text="\n".join(lines), buttons=(*rows, navigation(draft, screen)))


def _about(model: Model, screen: ScreenContext) -> list[Html]:
    t = screen.translator
    usual = screen.storefront.usual_price(model)
    key = f"wish.facts_{usual.per}" if usual.per else "wish.facts"
    if screen.free_now(model):
        key = "wish.facts_free"
    time = t.duration(screen.storefront.expected_seconds(model))
    good_at = in_language(model.good_at, t) or t.plain(f"about.{model.category.value}")
    price = t.credits(usual.price) if usual.per or usual.exact else t.from_credits(usual.price)
    facts = t.html(key, title=model_label(model, t), price=price, time=time)
    return [facts, t.html("wish.good_at", text=good_at)]


def model_button(model: Model, wish: Wish, category: str, text: str) -> Button:
    """Return the button that begins an order of a model in the category of the wish that it was found in."""
    found_in = (candidate for candidate in wish.categories if candidate in (model.category, *model.also))
    usual = () if wish.asks_settings else (AS_USUAL,)
    return button(text, "model", code_of(model.id), category or next(found_in, model.category.value), *usual)


def _every(wish: Wish, category: str, count: int, t: Translator) -> Button:
    text = t.plain("button.every", models=t.plain("unit.models", n=count))
    return button(text, "cat", category, 0, EVERY) if category else button(text, "wish", wish.name, EVERY)


def examples(screen: ScreenContext) -> list[Row]:
    """Return the examples of the first screen: one tap to a confirmation."""
    t = screen.translator
    with_example = [wish for wish in screen.storefront.wishes() if wish.example and f"try.{wish.name}" in t]
    return [
        (button(t.plain("button.try", icon=wish.icon, text=t.plain(f"try.{wish.name}")), "try", wish.name),)
        for wish in with_example[:EXAMPLES_SHOWN]
    ]


def other_wishes(draft: Draft, screen: ScreenContext) -> list[Button]:
    """Return what else the text of a suggested order could mean, as buttons that keep the text."""
    if not draft.suggested:
        return []
    t = screen.translator
    others = [wish for wish in screen.storefront.wishes() if wish.from_text and wish.name != draft.wish]
    return [
        draft_button(
            t.plain("button.try", icon=wish.icon, text=t.plain(f"wish.as_{wish.name}")),
            draft.version,
            "switch",
            wish.name,
        )
        for wish in others
    ]
