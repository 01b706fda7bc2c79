"""Compares the price rows of an offer with the one price for a unit that its provider publishes.

The published price has no conditions. It is taken for the price of a row with the same unit if the amounts are equal,
or if the row is the one that applies to the provider's own defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from genlock.domain.catalog import Model
from genlock.domain.model_schema import ModelSchema
from genlock.domain.offer import Offer
from genlock.domain.tariff import PriceRow

_PER_SECOND = frozenset({"second", "video second", "audio second", "output second"})
_PER_RUN = frozenset({"image", "video", "audio", "request", "generation", "run", "unit", "output"})


class WhyNotCompared(StrEnum):
    """Why price rows of an offer could not be compared with what its provider publishes."""

    NO_PRICE = "no_price"  #: it publishes no price of the model
    ONE_PRICE = "one_price"  #: it publishes one price of the model, which is that of another row
    OTHER_UNIT = "other_unit"  #: it publishes a price for another unit than ours
    UNKNOWN_CONDITIONS = "unknown_conditions"  #: it does not publish for which inputs its price is


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedPrices:
    #: the row whose price differs, and the published price in the provider's credits
    changed: tuple[PriceRow, Decimal] | None = None
    #: the rows for which the provider publishes no price
    not_compared: tuple[PriceRow, ...] = ()
    why: WhyNotCompared = WhyNotCompared.NO_PRICE


def compare_prices(model: Model, offer: Offer, schema: ModelSchema) -> ComparedPrices:
    """Compare the price rows of an offer with the published price of a unit."""
    rows = (*offer.prices, *offer.extras)
    if schema.unit_price is None or not offer.credit_usd:
        return ComparedPrices(not_compared=rows, why=WhyNotCompared.NO_PRICE)
    published = schema.unit_price / offer.credit_usd
    fitting = [row for row in offer.prices if _is_for(model, row, schema.unit)]
    agreeing = [row for row in fitting if row.credits == published]
    usual = _usual_row(offer, schema)
    if agreeing:
        return ComparedPrices(
            not_compared=tuple(row for row in rows if row not in agreeing), why=WhyNotCompared.ONE_PRICE
        )
    if not fitting:
        return ComparedPrices(not_compared=rows, why=WhyNotCompared.OTHER_UNIT)
    if usual is None or usual not in fitting:
        return ComparedPrices(not_compared=rows, why=WhyNotCompared.UNKNOWN_CONDITIONS)
    others = tuple(row for row in rows if row is not usual)
    return ComparedPrices(changed=(usual, published), not_compared=others, why=WhyNotCompared.ONE_PRICE)


def _usual_row(offer: Offer, schema: ModelSchema) -> PriceRow | None:
    """Return the row that applies to the provider's defaults; None if they do not decide it, or an extra is added."""
    defaults: dict[str, object] = {}
    for row in (*offer.prices, *offer.extras):
        for name in row.when:
            value = _default(offer, name, schema)
            if value is None:
                return None
            defaults[name] = value
    if any(extra.matches(defaults) for extra in offer.extras):
        return None
    return next((row for row in offer.prices if row.matches(defaults)), None)


def _default(offer: Offer, field: str, schema: ModelSchema) -> object | None:
    """Return our field's value for the provider's default; None if the provider publishes no default."""
    if offer.inputs is not None and field not in offer.inputs:
        return offer.lacking.get(field)
    name = field if offer.inputs is None else offer.inputs[field]
    input_ = (schema.inputs or {}).get(name)
    if input_ is None or input_.default is None:
        return None
    ours: Mapping[object, object] = offer.values.get(field, {})
    return next((mine for mine, theirs in ours.items() if theirs == input_.default), None if ours else input_.default)


def _is_for(model: Model, row: PriceRow, unit: str) -> bool:
    word = unit.lower().replace("_", " ").strip().removesuffix("s")
    return not row.free and row.each == 1 and word in _units(model, row)


def _units(model: Model, row: PriceRow) -> frozenset[str]:
    """Return the provider's words for the unit of a price row."""
    match row.measure():
        case None:
            return _PER_RUN
        case "times", name if name == model.count:
            return _PER_RUN
        case "seconds", _:
            return _PER_SECOND
        case "times", name if "duration" in name:
            return _PER_SECOND
    return frozenset()
