"""Suggests an order for a typed text: by what the user wants, never by the lowest price. Pure functions."""

from dataclasses import dataclass, replace

from genlock.bot.order import per_file, wizard
from genlock.bot.order.draft import Draft, Step
from genlock.bot.storefront.intents import Request
from genlock.bot.storefront.storefront import BEGINS_WITH, Storefront
from genlock.domain.catalog import Category, Model
from genlock.domain.field import FILES
from genlock.domain.wish import Wish

#: what a text is that names no wish
USUAL = Category.TEXT_TO_IMAGE.value
#: categories in which the last model is used again for a text that names no wish
REPEATED = (Category.TEXT_TO_IMAGE.value, Category.TEXT_TO_VIDEO.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is wanted: the entry of the menu, the category in it, and the text for the model."""

    wish: Wish
    category: str
    text: str
    #: ids of the only models that do it; empty: those of the wish
    models: tuple[str, ...] = ()


def target_of(storefront: Storefront, text: str, wish: Wish | None = None, last_model: str = "") -> Target:
    """Return what a text asks for. In an entry of the menu, words of other entries describe the picture or video.

    A text that is nothing but such words asks for the other entry.
    """
    request = storefront.intents.read(text)
    elsewhere = wish is not None and request is not None and request.intent.category not in wish.categories
    if request is not None and not (elsewhere and request.text):
        return _asked(storefront, request)
    last = storefront.by_id(last_model)
    usual = last.category.value if last is not None and last.category in REPEATED else USUAL
    wish = wish or storefront.catalog.wish_of(usual) or _unlisted(usual)
    return Target(wish=wish, category=_main_category(storefront, wish), text=text)


def _asked(storefront: Storefront, request: Request) -> Target:
    intent = request.intent
    wish = storefront.catalog.wish_of(intent.category) or _unlisted(intent.category)
    return Target(wish=wish, category=intent.category, text=request.text, models=intent.models)


def _unlisted(category: str) -> Wish:
    """Return the wish for a category that the menu has no entry for."""
    return Wish(name="", icon="", categories=(category,))


def _main_category(storefront: Storefront, wish: Wish) -> str:
    """Return the first category of a wish with a model on sale."""
    return next(
        (category for category in wish.categories if storefront.wish_models(wish, category)), wish.categories[0]
    )


def suggest(
    storefront: Storefront, draft: Draft, target: Target, last_model: str = "", *, budget: int | None = None
) -> Draft | None:
    """Return the order that a text asks for, with the first model that it is enough for; None if no model is on sale.

    The user's last model is used again where it does what is wanted. With a budget, in thousandths of a credit, a model
    within it goes before all others.
    """
    models = _candidates(storefront, target, last_model)
    if not models:
        return None
    carried = replace(draft.cleared(), text=target.text, sent=draft.sent, aspects=draft.aspects)
    if target.category in BEGINS_WITH or not target.text:
        return _start(carried, models[0], target)
    ready = ((model, one) for model in models if (one := _start(carried, model, target)).suggested)
    if budget is None:
        return next((suggestion for _, suggestion in ready), None) or _start(carried, models[0], target)
    by_price = sorted(ready, key=lambda found: _price(storefront, *found) > budget)
    return by_price[0][1] if by_price else _start(carried, models[0], target)


def _price(storefront: Storefront, model: Model, draft: Draft) -> int:
    return storefront.price(model, model.validate(draft.values), draft.seconds)


def suggest_for_file(storefront: Storefront, draft: Draft, wish: Wish, category: str = "") -> Draft | None:
    """Return the order of a wish for the files that wait; None if none of its models takes them."""
    kinds = {file.kind for file in draft.sent}
    for model in storefront.recommended(wish, category):
        required = {
            field.type for field in model.fields if field.type in FILES and (field.required or field.type in kinds)
        }
        found_in = category or next(
            candidate for candidate in wish.categories if candidate in (model.category, *model.also)
        )
        if kinds and kinds <= required and BEGINS_WITH.get(Category(found_in)) in (None, *kinds):
            started = per_file.start(draft, model, found_in, defaults=not wish.asks_settings)
            return replace(started, wish=wish.name, path=())
    return None


def _start(carried: Draft, model: Model, target: Target) -> Draft:
    started = wizard.start_with_defaults(carried, model, target.category)
    return replace(started, wish=target.wish.name, path=(), suggested=started.step is Step.CONFIRM)


def _candidates(storefront: Storefront, target: Target, last_model: str) -> list[Model]:
    models = [model for model_id in target.models if (model := storefront.by_id(model_id))]
    models += [model for model in storefront.recommended(target.wish, target.category) if model not in models]
    last = storefront.by_id(last_model)
    fits = last is not None and target.category in (last.category, *last.also) and not target.models
    return [last, *models] if fits and last is not None else models
