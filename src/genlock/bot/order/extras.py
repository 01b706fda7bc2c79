"""What a card and a confirmation offer besides the order itself: styles, ideas, a better prompt, favourites. Pure."""

from collections.abc import Sequence

from genlock.bot.buttons import Row, draft_button
from genlock.bot.order import improve_screens
from genlock.bot.order.card import category_of
from genlock.bot.order.draft import MISPLACED, Draft, Step
from genlock.bot.order.questions import PROMPT
from genlock.bot.order.remembered import settings_of
from genlock.bot.order.styles import style_of, styles_for
from genlock.bot.screen_context import ScreenContext, choice_label, field_label, value_label
from genlock.domain.catalog import Catalog, Category, Model
from genlock.domain.field import Field, FieldType
from genlock.domain.presets import Idea
from genlock.i18n.catalog_texts import in_language
from genlock.i18n.translator import Html, Translator
from genlock.ports import Button

SETTINGS_SHOWN = 5


def is_card(draft: Draft) -> bool:
    """Whether the screen is the first question of an order, which shows the model's card."""
    return draft.step is Step.ASK and not draft.path


def step_line(draft: Draft, t: Translator) -> list[Html]:
    """Return what the order does with a result, if it is a next step."""
    key = f"button.next_{draft.next_step}"  # a draft may be older than the steps of this version
    return [t.html("next.title", step=t.plain(key))] if key in t else []


def order_instead(draft: Draft, screen: ScreenContext) -> list[Row]:
    """Offer another order for a file that this model has no field for."""
    if not draft.sent or draft.problem is None or not draft.problem.name.startswith(MISPLACED):
        return []
    return [(draft_button(screen.translator.plain("button.instead"), draft.version, "instead"),)]


def last_settings(draft: Draft, model: Model, t: Translator) -> list[Html]:
    """Return the line about the settings that the order begins with because the last one had them."""
    settings = settings_of(model, draft.values)
    shown = [_setting(field, settings[field.name], t) for field in model.fields if field.name in settings]
    return [t.html("settings.as_last", values=" · ".join(shown[:SETTINGS_SHOWN]))] if shown else []


def _setting(field: Field, value: object, t: Translator) -> str:
    """Return the value of a setting, with its name unless the value says enough."""
    label = value_label(field, value, t)
    return label if field.type is FieldType.CHOICE else f"{field_label(field, t)}: {label}"


def ideas_for(catalog: Catalog, category: Category) -> Sequence[Idea]:
    return [idea for idea in catalog.ideas if category.value in idea.of]


def prompt_sources(draft: Draft, model: Model, screen: ScreenContext) -> Row:
    """Return the buttons that write the prompt for the user: the example of the card, or a surprise."""
    t = screen.translator
    row: Row = (draft_button(t.plain("button.example"), draft.version, "example"),)
    if not ideas_for(screen.storefront.catalog, category_of(draft, model)):
        return row
    return (*row, draft_button(t.plain("idea.surprise"), draft.version, "surprise"))


def star(draft: Draft, model: Model, screen: ScreenContext) -> Button:
    """Return the button that makes the model a favourite, or no longer one."""
    starred = model.id in screen.favourites
    text = screen.translator.plain("favourite.remove" if starred else "favourite.add")
    return draft_button(text, draft.version, "star", int(not starred))


def style_line(draft: Draft, model: Model, screen: ScreenContext) -> list[Html]:
    """Return the style of the order, or that the prompt leaves no room for it."""
    t, catalog = screen.translator, screen.storefront.catalog
    if (style := style_of(draft, model, catalog)) is not None:
        return [t.html("style.line", name=in_language(style.name, t))]
    chosen = any(style.key == draft.style for style in styles_for(catalog, model))
    return [t.html("style.no_room")] if chosen and draft.values.get(PROMPT) else []


def style_button(draft: Draft, model: Model, screen: ScreenContext) -> list[Button]:
    """Return the button that opens the styles, if the order can have one."""
    if not draft.values.get(PROMPT) or not styles_for(screen.storefront.catalog, model):
        return []
    return [draft_button(screen.translator.plain("style.button"), draft.version, "styles")]


def prompt_rows(draft: Draft, model: Model, screen: ScreenContext) -> list[Row]:
    """Return the wide buttons of a confirmation that change how it will look or sound: better prompt, voice."""
    t, rows = screen.translator, list[Row]()
    if (found := improve_screens.quote(draft, model, screen)) is not None:
        price = found[1].price
        text = t.plain("improve.button", price=t.credits(price)) if price else t.plain("improve.button_free")
        rows.append((draft_button(text, draft.version, "improve"),))
    return [
        *rows,
        *((_voice(draft, model, field, t),) for field in model.fields if field.traits and not field.internal),
    ]


def _voice(draft: Draft, model: Model, field: Field, t: Translator) -> Button:
    """Return the button that opens the list of voices."""
    name = choice_label(field, draft.values.get(field.name) or field.default, t)
    return draft_button(t.plain("voice.button", name=name), draft.version, "edit", model.fields.index(field))
