"""Makes the models of a simulated provider from the catalog's offers."""

from collections.abc import Iterator
from dataclasses import replace

from genlock.domain.catalog import Catalog, Model, Output
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field
from genlock.domain.offer import Offer
from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel


def simulated_models(catalog: Catalog, provider: str) -> dict[str, SimulatedModel]:
    """Return the models that the catalog's offers order from this provider, by the provider's id.

    Several models of the catalog may be one model at the provider, which then takes the inputs of all of them.
    """
    found: dict[str, SimulatedModel] = {}
    for model in catalog.models.values():
        for offer in (offer for offer in model.offers if offer.provider == provider):
            made = _simulated(model, offer)
            found[made.id] = _merge(found[made.id], made) if made.id in found else made
    return found


def _simulated(model: Model, offer: Offer) -> SimulatedModel:
    output = model.outputs[0]
    unit_usd, unit = _unit_price(model, offer, output)
    return SimulatedModel(
        id=offer.model.partition(":")[0],  # an offer may name a version
        title=model.title,
        output=output,
        inputs=tuple(_inputs(model, offer)),
        expected_seconds=model.expected_seconds,
        price_usd=_price_usd(model, offer),
        unit_usd=unit_usd,
        unit=unit,
        count_input=_name(offer, model.count) if isinstance(model.count, str) else None,
        single=model.count == 1 and output is not Output.IMAGE,
    )


def _inputs(model: Model, offer: Offer) -> Iterator[SimulatedInput]:
    for field in model.fields:
        if name := _name(offer, field.name):
            choices = _choices(field, offer)
            yield SimulatedInput(name=name, required=field.required, choices=choices, default=_default(field, offer))
    own = {name: value for key, value in model.fixed.items() if (name := _name(offer, key))}
    for name, value in (own | dict(offer.fixed)).items():
        yield SimulatedInput(name=name, required=True, choices=(value,))


def _name(offer: Offer, field: str) -> str | None:
    """Return the provider's name of a field; None if the provider does not take it."""
    return field if offer.inputs is None else offer.inputs.get(field)


def _choices(field: Field, offer: Offer) -> tuple[object, ...]:
    """Return the values that the provider takes; none: any value."""
    if field.name in offer.values:
        return tuple(offer.values[field.name].values())
    return () if field.many else field.choices


def _default(field: Field, offer: Offer) -> object:
    """Return the provider's word for the default of a field; None: it has none."""
    if field.many or field.default in (None, ""):
        return None
    return offer.values[field.name].get(field.default) if field.name in offer.values else field.default


def _price_usd(model: Model, offer: Offer) -> float:
    try:
        cost = offer.credits(model.minimal_input(), model.lengths())
    except InvalidInput:  # an offer may be without prices
        return 0.0
    return float(cost * offer.credit_usd / 1000)


def _unit_price(model: Model, offer: Offer, output: Output) -> tuple[float, str]:
    """Return the price that the provider publishes, and its unit: that of an order with its defaults."""
    defaults = {field.name: field.default for field in model.fields} | dict(offer.lacking)
    row = next((price for price in offer.prices if price.matches(defaults)), None)
    if row is None or row.each != 1 or any(extra.matches(defaults) for extra in offer.extras):
        return 0.0, ""
    how, name = row.measure() or ("", "")
    per_second = how == "seconds" or "duration" in name
    return float(row.credits * offer.credit_usd), "seconds" if per_second else f"{output}s"


def _merge(first: SimulatedModel, second: SimulatedModel) -> SimulatedModel:
    """Return one model that takes what either takes, and requires what both require."""
    inputs = {input_.name: input_ for input_ in first.inputs}
    others = {input_.name: input_ for input_ in second.inputs}
    merged = [
        SimulatedInput(
            name=name,
            required=all(name in given and given[name].required for given in (inputs, others)),
            choices=_either(inputs.get(name), others.get(name)),
            default=(inputs.get(name) or others[name]).default,
        )
        for name in (inputs | others)
    ]
    return replace(first, inputs=tuple(merged), count_input=first.count_input or second.count_input)


def _either(first: SimulatedInput | None, second: SimulatedInput | None) -> tuple[object, ...]:
    given = [input_.choices for input_ in (first, second) if input_ is not None]
    return tuple(dict.fromkeys(value for choices in given for value in choices)) if all(given) else ()
