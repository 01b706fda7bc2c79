"""The card of a model: what it does, what must be sent, its price and its duration; and a sample prompt."""

from genlock.bot.order.draft import Draft
from genlock.bot.order.questions import asked_fields, main_text, may_skip
from genlock.bot.screen_context import ScreenContext, field_label, model_label
from genlock.bot.storefront.screens import is_fixed
from genlock.bot.storefront.storefront import BEGINS_WITH
from genlock.domain.catalog import Category, Model
from genlock.domain.field import FILES, Field
from genlock.i18n.translator import Html, Translator


def card(draft: Draft, model: Model, screen: ScreenContext) -> list[str]:
    """Return what a model does in the category it was chosen from, what must be sent, its price and its duration."""
    t = screen.translator
    usual, least = screen.storefront.usual_price(model), screen.storefront.price_from(model)
    key = "card.facts_usual" if usual.exact and least < usual.price else "card.facts"
    if usual.per:
        key = f"card.facts_{usual.per}"
    if is_fixed(model):
        key = "card.facts"
    varies = key == "card.facts" and not is_fixed(model)
    values_shown = {
        "price": t.from_credits(usual.price) if varies else t.credits(usual.price),
        "least": t.amount(least),
        "time": t.duration(screen.storefront.expected_seconds(model)),
    }
    own = model.title.lower().startswith(model.vendor.lower())
    lines = [
        t.html("card.head_own" if own else "card.head", title=model_label(model, t), vendor=model.vendor),
        t.html(f"about.{category_of(draft, model)}"),
        *_needed(draft, model, t),
        t.html(key, **values_shown),
    ]
    if screen.free_now(model):
        lines += screen.free_runs()
    if isinstance(model.count, int) and model.count > 1:
        lines.append(t.html("card.results", n=model.count))
    return list(lines)


def category_of(draft: Draft, model: Model) -> Category:
    """Return the category that the model was chosen from; its own if it was found by a search."""
    return Category(draft.category) if draft.category in {model.category, *model.also} else model.category


def _needed(draft: Draft, model: Model, t: Translator) -> list[Html]:
    """Return the line that lists what must be sent; none if a text is all."""
    asked = asked_fields(model, category_of(draft, model))
    about = BEGINS_WITH.get(category_of(draft, model))
    wanted = [field for field in asked if not may_skip(field) or (field.type in FILES and field.type is about)]
    if not any(field.type in FILES for field in wanted):
        return []
    return [t.html("card.needed", fields=t.list([_needed_name(field, model, t) for field in wanted]))]


def _needed_name(field: Field, model: Model, t: Translator) -> str:
    """Name an input: by its kind, or by its own name if the model has several of the kind."""
    alike = [other for other in model.fields if other.type is field.type and other.required]
    key = f"ask.needed_{field.type.value}{'s' if field.many and field.max_count != 1 else ''}"
    named_by_kind = field.type in FILES or field is main_text(model)
    return t.plain(key) if len(alike) < 2 and named_by_kind and key in t else field_label(field, t).lower()  # noqa: PLR2004 - one alone


def example(draft: Draft, model: Model, t: Translator) -> str:
    """Return a sample prompt for a model in the category it was chosen from."""
    key = f"example.{category_of(draft, model)}"
    return t.plain(key if key in t else "example.other")
