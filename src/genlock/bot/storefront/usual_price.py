"""What an order with a model's defaults costs, as menus show it."""

from dataclasses import dataclass, replace
from functools import lru_cache

from genlock.bot.storefront.identity_key import IdentityKey
from genlock.domain.catalog import Model, price, price_from
from genlock.domain.errors import InvalidInput
from genlock.domain.tariff import PriceRow, our_price, thousandths

#: for prices by a measure: the unit that menus show, and how much of the measure it is
PER = {"seconds": ("second", 1), "characters": ("characters", 1000)}
#: several times the models of a catalog: all bots of a service share them, and each edit of a model makes one more
PRICES_KEPT = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class UsualPrice:
    price: int
    #: whether the price is exact; else it grows with the files or the text
    exact: bool
    #: unit of the price, "second" or "characters" (a thousand); empty for the whole order
    per: str = ""


def usual_price(model: Model, markup: float, credit_usd: float) -> UsualPrice:
    """Return the price of an order with the model's defaults. It is calculated once per model object."""
    return _usual_price(IdentityKey(model), markup, credit_usd)


@lru_cache(PRICES_KEPT)
def _usual_price(key: IdentityKey[Model], markup: float, credit_usd: float) -> UsualPrice:
    model = paid(key.value)
    least = UsualPrice(price=price_from(model, markup, credit_usd), exact=model.own_price is not None)
    if least.exact:
        return least
    try:
        values = model.minimal_input()
        whole = price(model, values, markup, credit_usd, {})
    except InvalidInput:
        return least
    row = next(row for row in model.prices if row.matches(values))
    measures = {measure[0] for part in (row, *model.extras) if part.matches(values) and (measure := part.measure())}
    if measures & {"seconds", "characters"}:
        return _rate(model, row, least, markup, credit_usd) if len(measures) == 1 else least
    return UsualPrice(price=whole, exact="count" not in measures)


def _rate(model: Model, row: PriceRow, least: UsualPrice, markup: float, credit_usd: float) -> UsualPrice:
    """Return the price of one second or a thousand characters, if the row is priced so."""
    measure = row.measure()
    if measure is None or row.free:
        return least
    per, amount = PER[measure[0]]
    cost = thousandths(row.credits * amount / row.each)
    return UsualPrice(price=our_price(cost, markup, credit_usd, model.provider_credit_usd), exact=False, per=per)


def paid(model: Model) -> Model:
    """Return the model as it is sold to a user without free runs."""
    return replace(model, free=False) if model.free else model
