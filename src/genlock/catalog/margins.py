"""What an order of a model costs at its provider, what a user pays for it, and what is left."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from genlock.domain.catalog import Model, price, price_from
from genlock.domain.errors import InvalidInput
from genlock.domain.money import THOUSANDTHS
from genlock.domain.tariff import PriceRow, our_price, thousandths


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceRules:
    markup: float
    credit_usd: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Margin:
    """Cost and price of the same thing: an order with default values, or one unit of a price row."""

    #: in thousandths of the provider's credit
    cost: int
    #: in thousandths of our credit
    price: int
    cost_usd: Decimal
    price_usd: Decimal

    @property
    def share(self) -> float | None:
        """Return the part of the price that is left after the cost; None if the price is 0."""
        return float((self.price_usd - self.cost_usd) / self.price_usd) if self.price_usd else None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowMargin:
    row: PriceRow
    #: whether it is added to the price, as an extra
    extra: bool
    #: None where the operator's own price replaces a row that is only a part of an order's cost
    margin: Margin | None
    cost_usd: Decimal


def usual_margin(model: Model, rules: PriceRules) -> Margin | None:
    """Return the margin of an order with default values, without free runs; None if the model has no price."""
    paid = replace(model, free=False)
    try:
        values = paid.minimal_input()
        cost = paid.credits(values) if paid.prices else 0
        ours = price(paid, values, rules.markup, rules.credit_usd)
    except InvalidInput:
        if not paid.prices:
            return None
        cost, ours = paid.credits_from(), price_from(paid, rules.markup, rules.credit_usd)
    return _margin(model, cost, ours, rules)


def row_margins(model: Model, rules: PriceRules) -> Iterator[RowMargin]:
    """Yield every price row with its cost and price for one unit."""
    for extra, rows in ((False, model.prices), (True, model.extras)):
        for row in rows:
            cost = thousandths(row.credits)
            ours = our_price(cost, rules.markup, rules.credit_usd, model.provider_credit_usd)
            margin = _margin(model, cost, ours if model.own_price is None else model.own_price, rules)
            is_comparable = model.own_price is None or (row.measure() is None and not extra)
            yield RowMargin(row=row, extra=extra, margin=margin if is_comparable else None, cost_usd=margin.cost_usd)


def _margin(model: Model, cost: int, ours: int, rules: PriceRules) -> Margin:
    return Margin(
        cost=cost,
        price=ours,
        cost_usd=Decimal(cost) / THOUSANDTHS * model.provider_credit_usd,
        price_usd=Decimal(ours) / THOUSANDTHS * Decimal(str(rules.credit_usd)),
    )
