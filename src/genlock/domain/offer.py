"""Offers: which providers can make what a model promises, under which id, with which inputs, at which cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from genlock.domain.errors import InvalidInput
from genlock.domain.tariff import PriceRow, Seconds, thousandths

#: values that count as not given
NOTHING: tuple[object, ...] = (None, "", [])


class Preference(StrEnum):
    """How the first offer of an order is chosen where the operator has not listed the providers."""

    CHEAPEST = "cheapest"  #: by the cost of these values, in money
    QUICKEST = "quickest"  #: by the median time from the order to the result, as measured here


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """One way to have a model made. A model has at most one offer of each provider."""

    provider: str
    #: the provider's own id of the model
    model: str
    family: str = ""  #: which of the provider's interfaces takes the order; empty: its usual one
    operation: str = "generate"  #: which endpoint of that interface
    #: the provider's name of each field that it takes; None: it takes all fields under our names
    inputs: Mapping[str, str] | None = None
    #: by field: the provider's value for each of our values; a value that is missing here cannot be ordered
    values: Mapping[str, Mapping[object, object]] = field(default_factory=dict)
    #: fields of ours that hold a list of files, of which the provider takes exactly one
    single: tuple[str, ...] = ()
    #: fields of ours that hold one file, which the provider wants in a list
    listed: tuple[str, ...] = ()
    #: fields that the provider lacks, with the only value that can be ordered without them
    lacking: Mapping[str, object] = field(default_factory=dict)
    #: the most that the provider takes of a field: characters of a text, items of a list
    most: Mapping[str, int] = field(default_factory=dict)
    #: what is sent with every order, under the provider's names
    fixed: Mapping[str, object] = field(default_factory=dict)
    prices: tuple[PriceRow, ...] = ()  #: the first matching row is the cost, in the provider's credits
    extras: tuple[PriceRow, ...] = ()  #: every matching row is added
    credit_usd: Decimal = Decimal(0)  #: US dollars per credit of the provider
    #: whether id, inputs and cost were seen in the provider's own documents or answers; others are not used by default
    verified: bool = True
    note: str = ""  #: for operators: the document in which this was seen, or what was not seen

    def credits(self, values: Mapping[str, object], lengths: Seconds) -> int:
        """Return the cost of our values in thousandths of the provider's credit. Raises InvalidInput without a row."""
        row = next((row for row in self.prices if row.matches(values)), None)
        if row is None:
            raise InvalidInput(self.model, "has no price for these inputs", problem="price")
        extras = (extra.cost(values, lengths) for extra in self.extras if extra.matches(values))
        return thousandths(row.cost(values, lengths) + sum(extras, Decimal(0)))

    def accepts(self, values: Mapping[str, object]) -> bool:
        """Return whether the provider can be asked for these values, all of them."""
        return self.inputs is None or all(self._accepts(name, value) for name, value in values.items())

    def _accepts(self, name: str, value: object) -> bool:
        assert self.inputs is not None
        if value in NOTHING:
            return True
        if name not in self.inputs:
            return name in self.lacking and self.lacking[name] in (value, None)
        if isinstance(value, list) and name in self.single and len(value) != 1:
            return False
        if isinstance(value, str | list) and len(value) > self.most.get(name, len(value)):
            return False
        return name not in self.values or (not isinstance(value, list | dict) and value in self.values[name])

    @property
    def keeps_input(self) -> bool:
        """Whether the provider takes our values as they are."""
        return self.inputs is None and not self.fixed

    def input(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the input under the provider's names. The offer must accept the values."""
        if self.inputs is None:
            return {**values, **self.fixed}
        return {
            **{self.inputs[name]: self._value(name, value) for name, value in values.items() if name in self.inputs},
            **self.fixed,
        }

    def _value(self, name: str, value: object) -> object:
        if name in self.values and not isinstance(value, list | dict) and value in self.values[name]:
            return self.values[name][value]
        if name in self.single and isinstance(value, list):
            return value[0] if value else None
        if name in self.listed and not isinstance(value, list):
            return [value]
        return value
