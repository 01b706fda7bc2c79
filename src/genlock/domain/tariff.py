"""What a combination of inputs costs: the provider's credits in thousandths, and our price made from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal

from genlock.domain.money import THOUSANDTHS

PROVIDER_CREDIT_USD = Decimal("0.005")
#: prices are whole hundredths of a credit: nobody wants to read more
STEP = THOUSANDTHS // 100

Seconds = Mapping[str, float]
"""How long the files given for a field are, together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceRow:
    """So many credits when the inputs are these; times what one of `times`, `count`, `seconds`, `characters` measures.

    Each of the four names a field: its value, how many files it has, how long they are, or how many characters.
    """

    credits: Decimal
    when: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    given: tuple[str, ...] = ()  #: fields that must have been given
    times: str | None = None
    count: str | None = None
    seconds: str | None = None
    characters: str | None = None
    each: int = 1  #: the credits are for so many of them
    free: int = 0  #: so many of them cost nothing
    label: str | None = None  #: what the provider's price list calls this row

    def matches(self, values: Mapping[str, object]) -> bool:
        return all(values.get(name) in allowed for name, allowed in self.when.items()) and all(
            values.get(name) not in (None, "", []) for name in self.given
        )

    def measure(self) -> tuple[str, str] | None:
        """What the row is multiplied by: how it is measured, and the field."""
        for how in ("times", "count", "seconds", "characters"):
            if name := getattr(self, how):
                return how, name
        return None

    def cost(self, values: Mapping[str, object], seconds: Seconds) -> Decimal:
        """In credits, exactly."""
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
    """The lengths of a text, or of the texts that a list of objects carries."""
    for item in _as_list(value):
        text = item.get("text", "") if isinstance(item, Mapping) else item
        yield len(str(text))


def thousandths(credits_: Decimal) -> int:
    return int((credits_ * THOUSANDTHS).to_integral_value(ROUND_CEILING))


def our_price(provider_thousandths: int, markup: float | Decimal, credit_usd: float | Decimal) -> int:
    """What a person pays, in thousandths of our credit, for what costs us so many thousandths of the provider's."""
    dollars = provider_thousandths * PROVIDER_CREDIT_USD * Decimal(str(markup))
    return int((dollars / Decimal(str(credit_usd)) / STEP).to_integral_value(ROUND_CEILING)) * STEP


def paid_for(price: int, markup: float | Decimal, credit_usd: float | Decimal) -> int:
    """The most that may have cost us, in thousandths of the provider's credit, what a person pays so much for."""
    return int(price * Decimal(str(credit_usd)) / (PROVIDER_CREDIT_USD * Decimal(str(markup))))
