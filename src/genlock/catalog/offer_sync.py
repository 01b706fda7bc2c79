"""Compares the offers with the schemas that their providers publish: inputs, choices, prices, what is gone."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from functools import partial

from genlock.catalog.offer_prices import WhyNotCompared, compare_prices
from genlock.domain.catalog import Model
from genlock.domain.field import Field
from genlock.domain.model_schema import InputSchema, ModelSchema
from genlock.domain.offer import Offer

#: how alike two names must be for one to be taken for the new name of the other
ALIKE = 0.5


class OfferChangeKind(StrEnum):
    """What differs, the worst first."""

    GONE = "gone"  #: the provider does not have the model
    DEPRECATED = "deprecated"  #: the provider will take the model down
    UNPUBLISHED = "unpublished"  #: the provider publishes no schema of the model
    NEEDED = "needed"  #: the provider requires an input that the smallest order does not have
    REMOVED = "removed"  #: we send an input that the provider does not take
    CHOICES_REMOVED = "choices_removed"  #: we send values that the provider does not take
    PRICE = "price"  #: the published price of a unit is another one
    CHOICES_ADDED = "choices_added"  #: the provider takes values that users cannot choose
    ADDED = "added"  #: the provider takes an optional input that the offer does not use


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferChange:
    model: str
    provider: str
    kind: OfferChangeKind
    #: the provider's name of the input
    input: str = ""
    #: an input that may be the new name of a removed one
    renamed: str = ""
    values: tuple[str, ...] = ()
    #: the name of the price row
    row: str = ""
    old: Decimal | None = None
    new: Decimal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UncomparedPrices:
    """Price rows of an offer for which the provider publishes no price."""

    model: str
    provider: str
    rows: tuple[str, ...]
    why: WhyNotCompared


Values = tuple[object, ...]
"""The values that an input may have, as JSON values; empty: any value."""
Sent = Mapping[str, Values]
"""The values that orders send, by the provider's name of the input."""


def offer_changes(model: Model, offer: Offer, schema: ModelSchema | None, used: Sent) -> Iterator[OfferChange]:
    """Yield what differs between an offer and what its provider publishes.

    `used` is what all offers of the same model of the provider send: the inputs of one may be fewer than those of all.
    """
    kind, change = OfferChangeKind, partial(OfferChange, model=model.id, provider=offer.provider)
    if schema is None:
        yield change(kind=kind.GONE)
        return
    if schema.deprecated:
        yield change(kind=kind.DEPRECATED)
    if schema.inputs is None:
        yield change(kind=kind.UNPUBLISHED)
    else:
        yield from _input_changes(model, offer, schema.inputs, used)
    if changed := compare_prices(model, offer, schema).changed:
        row, new = changed
        yield change(kind=kind.PRICE, row=row.key, old=row.credits, new=new)


def _input_changes(model: Model, offer: Offer, inputs: Mapping[str, InputSchema], used: Sent) -> Iterator[OfferChange]:
    sent, kind = sent_inputs(model, offer), OfferChangeKind
    change = partial(OfferChange, model=model.id, provider=offer.provider)
    unused = [name for name in inputs if name not in used]
    renamed = {name: _new_name(name, sent[name], unused, inputs) for name in sent if name not in inputs}
    always = offer.input(model.minimal_input())
    for name, input_ in inputs.items():
        if input_.required and name not in always:
            yield change(kind=kind.NEEDED, input=name)
    for name, new in renamed.items():
        yield change(kind=kind.REMOVED, input=name, renamed=new)
    for name in (sent_name for sent_name in sent if sent_name in inputs):
        yield from _choice_changes(change, name, sent[name], inputs[name].choices, used[name])
    for name in unused:
        if not inputs[name].required and name not in renamed.values():
            yield change(kind=kind.ADDED, input=name)


def _choice_changes(
    change: partial[OfferChange], name: str, values: Values, taken: Values, used: Values
) -> Iterator[OfferChange]:
    """Yield the values of an input that only one side has."""
    if not values or not taken:
        return
    if lost := _without(values, taken):
        yield change(kind=OfferChangeKind.CHOICES_REMOVED, input=name, values=lost)
    if more := _without(taken, used):
        yield change(kind=OfferChangeKind.CHOICES_ADDED, input=name, values=more)


def sent_inputs(model: Model, offer: Offer) -> Sent:
    """Return every input that orders of an offer send."""
    sent = {name: _values(field, offer) for field in model.fields if (name := _name(offer, field.name))}
    fixed = {name: value for key, value in model.fixed.items() if (name := _name(offer, key))} | dict(offer.fixed)
    return sent | {name: (value,) for name, value in fixed.items() if not isinstance(value, list | dict)}


def _name(offer: Offer, field: str) -> str | None:
    return field if offer.inputs is None else offer.inputs.get(field)


def _values(field: Field, offer: Offer) -> Values:
    if field.name in offer.values:
        return tuple(offer.values[field.name].values())
    return () if field.many else field.choices


def _new_name(name: str, values: Values, unused: list[str], inputs: Mapping[str, InputSchema]) -> str:
    """Return the unused input that is most probably the new name of a removed one; empty: none."""
    if alike := get_close_matches(name, unused, n=1, cutoff=ALIKE):
        return alike[0]
    same = [candidate for candidate in unused if values and not _without(values, inputs[candidate].choices)]
    return same[0] if len(same) == 1 else ""


def _without(values: Values, others: Values) -> tuple[str, ...]:
    """Return the values that are not among the others, as JSON: there "5" and 5 differ."""
    known = {_json(value) for value in others}
    return tuple(text for value in values if (text := _json(value)) not in known)


def _json(value: object) -> str:
    shown = int(value) if isinstance(value, float) and value.is_integer() else value
    return json.dumps(shown, ensure_ascii=False)
