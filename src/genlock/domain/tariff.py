"""Prices: the provider's cost of an input in its credits, and the price a user pays for it in ours."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal

from genlock.domain.money import THOUSANDTHS

#: prices are rounded up to whole hundredths of a credit, so that they are short to read
STEP = THOUSANDTHS // 100

Seconds = Mapping[str, float]
"""Total length of a field's files in seconds, by field name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceRow:
    """The credits of an input that `when` and `given` match, multiplied by at most one measure.

    Each of `times`, `count`, `seconds`, `characters` names a field and measures its value, its number of files, their
    total length, or its number of characters.
    """

    credits: Decimal
    when: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    given: tuple[str, ...] = ()  #: fields that must have been given
    times: str | None = None
    count: str | None = None
    seconds: str | None = None
    characters: str | None = None
    each: int = 1  #: the credits pay for this many units of the measure
    free: int = 0  #: this many units cost nothing
    label: str | None = None  #: the name of this row in the provider's price list

    @property
    def key(self) -> str:
        """Return the name by which an overlay changes the row: its label, or its conditions and its measure."""
        measure = self.measure()
        return self.label or ", ".join([self.conditions() or "always", *([" ".join(measure)] if measure else [])])

    def conditions(self) -> str:
        values = [f"{name} = {' or '.join(map(str, allowed))}" for name, allowed in self.when.items()]
        return ", ".join([*values, *(f"{name} given" for name in self.given)])

    def matches(self, values: Mapping[str, object]) -> bool:
        return all(values.get(name) in allowed for name, allowed in self.when.items()) and all(
            values.get(name) not in (None, "", []) for name in self.given
        )

    def measure(self) -> tuple[str, str] | None:
        """Return the measure that multiplies the row and the field it measures."""
        for how in ("times", "count", "seconds", "characters"):
            if name := getattr(self, how):
                return how, name
        return None

    def cost(self, values: Mapping[str, object], seconds: Seconds) -> Decimal:
        """Return the cost in the provider's credits, not rounded."""
        quantity = self._quantity(values, seconds)
        return self.credits * max(quantity - self.free, Decimal(0)) / self.each

    def _quantity(self, values: Mapping[str, object], seconds: Seconds) -> Decimal:
        if self.times:
            return Decimal(str(values.get(self.times) or 0))
        if self.count:
            return Decimal(len(_as_list(values.get(self.count))))
        if self.seconds:
            return Decimal(str(seconds[self.seconds]))
        if self.characters:
            return Decimal(sum(_lengths(values.get(self.characters))))
        return Decimal(1)


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _lengths(value: object) -> Iterable[int]:
    """Yield the length of a text, or of the `text` of each object in a list."""
    for item in _as_list(value):
        text = item.get("text", "") if isinstance(item, Mapping) else item
        yield len(str(text))


def normalise_label(text: str) -> str:
    """Return a label without case, spaces and the width of brackets, which providers change from week to week."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def thousandths(credits_: Decimal) -> int:
    return int((credits_ * THOUSANDTHS).to_integral_value(ROUND_CEILING))


def our_price(
    provider_thousandths: int, markup: float | Decimal, credit_usd: float | Decimal, provider_credit_usd: Decimal
) -> int:
    """Return what a user pays, in thousandths of our credit, for a cost in thousandths of the provider's credit.

    The price is rounded up to the next hundredth of a credit.
    """
    dollars = provider_thousandths * provider_credit_usd * Decimal(str(markup))
    return int((dollars / Decimal(str(credit_usd)) / STEP).to_integral_value(ROUND_CEILING)) * STEP


def paid_for(price: int, markup: float | Decimal, credit_usd: float | Decimal, provider_credit_usd: Decimal) -> int:
    """Return the highest cost, in thousandths of the provider's credit, from which a price can have been made."""
    return int(price * Decimal(str(credit_usd)) / (provider_credit_usd * Decimal(str(markup))))
