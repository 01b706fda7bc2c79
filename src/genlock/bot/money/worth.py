"""What credits buy: the approximate number of pictures, short videos or songs, at the prices of popular models."""

from collections.abc import Sequence

from genlock.bot.screen_context import ScreenContext
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.catalog import Category
from genlock.i18n.translator import Translator

#: what a balance is counted in, and the category whose models make it
COUNTED = {
    "pictures": Category.TEXT_TO_IMAGE,
    "videos": Category.TEXT_TO_VIDEO,
    "songs": Category.MUSIC,
}
#: kinds that one line names
KINDS_SHOWN = 2


def usual_cost(storefront: Storefront, category: Category) -> int | None:
    """Return the lowest price of an order among the popular models of a category; None if no price is known."""
    wish = storefront.catalog.wish_of(category.value)
    models = storefront.popular(wish, category.value) if wish else storefront.models(category)
    usual = [storefront.usual_price(model) for model in models]
    return min((price.price for price in usual if price.price > 0 and not price.per), default=None)


def worth(screen: ScreenContext, amount: int) -> str:
    """Return what an amount of thousandths of a credit buys, as a text; empty if it buys nothing."""
    t, parts = screen.translator, []
    for kind, category in COUNTED.items():
        cost = usual_cost(screen.storefront, category)
        if cost is not None and amount >= cost:
            parts.append(t.plain(f"worth.{kind}", n=_rounded(amount // cost)))
    return _alternatives(parts[:KINDS_SHOWN], t)


def _alternatives(parts: Sequence[str], t: Translator) -> str:
    first, *rest = parts or [""]
    return t.plain("worth.either", first=first, second=rest[0]) if rest else first


def _rounded(count: int) -> int:
    """Round down to two digits: the number is an estimate."""
    scale: int = 10 ** max(len(str(count)) - 2, 0)
    return count // scale * scale
