"""Reads the offers: the files of other providers that make the catalog's models, and the operator's preference."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from genlock.catalog.reader import check, parse
from genlock.catalog.schema import OfferFile, OfferTable
from genlock.catalog.scope import Scope, price_row
from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidCatalog
from genlock.domain.field import Field
from genlock.domain.offer import Offer

#: the folder of the offers, one file for each provider
OFFERS = "offers"


def add_offers(models: Mapping[str, Model], folder: Path, credit_usd: Mapping[str, Decimal]) -> dict[str, Model]:
    """Return the models with the offers of every file in the folder. Raises InvalidCatalog."""
    known = dict(models)
    for path in sorted(folder.glob("*.toml")):
        file = check(OfferFile, parse(path), path.name)
        if file.provider not in credit_usd:
            raise InvalidCatalog(f"{path.name}: provider must be one of {', '.join(credit_usd)}, not {file.provider!r}")
        for model_id, table in file.offers.items():
            where = f"{path.name}: {model_id}"
            if model_id not in known:
                raise InvalidCatalog(f"{where}: there is no such model; `genlock models ls --all` lists every model")
            model = known[model_id]
            if any(other.provider == file.provider for other in model.offers):
                raise InvalidCatalog(f"{where}: {file.provider} offers this model already")
            offer = _offer(model, table, file.provider, credit_usd[file.provider], where)
            known[model_id] = replace(model, more_offers=(*model.more_offers, offer))
    return known


def _offer(model: Model, table: OfferTable, provider: str, credit_usd: Decimal, where: str) -> Offer:
    fields = {field.name: field for field in model.fields}
    scope = Scope(where=where, fields=fields)
    for key in ("inputs", "values", "ignored", "most"):
        for name in getattr(table, key):
            scope.field(key, name)
    for key in ("single", "listed"):
        scope.names(key, getattr(table, key))
    offer = Offer(
        provider=provider,
        model=table.model,
        family=table.family,
        operation=table.operation,
        inputs=table.inputs,
        values={name: _values(fields[name], values, where) for name, values in table.values.items()},
        single=tuple(table.single),
        listed=tuple(table.listed),
        lacking=dict(_lacking(model, table)),
        most=table.most,
        fixed=table.fixed,
        prices=tuple(price_row(row, scope.inner(f"price {n}")) for n, row in enumerate(table.prices, 1)),
        extras=tuple(price_row(row, scope.inner(f"extra {n}")) for n, row in enumerate(table.extras, 1)),
        credit_usd=credit_usd,
        verified=table.verified,
        note=table.note,
    )
    _check(model, offer, where)
    return offer


def _values(field: Field, values: Mapping[str, object], where: str) -> dict[object, object]:
    """Return the provider's value by ours. In a file, keys are text; a field's choices may be numbers."""
    known = {_key(choice): choice for choice in field.choices or (True, False)}
    for key in values:
        if key not in known:
            raise InvalidCatalog(f"{where}: values.{field.name}: {key!r} is not one of the field's choices")
    return {known[key]: value for key, value in values.items()}


def _key(choice: object) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def _lacking(model: Model, table: OfferTable) -> Iterator[tuple[str, object]]:
    """Yield what the provider has no input for, and the value that can be ordered all the same; None: any value."""
    for field in model.fields:
        if field.name in table.ignored:
            yield field.name, None
        elif field.name not in table.inputs and field.default is not None:
            yield field.name, field.default
    for name in model.fixed:
        if name not in table.inputs:
            yield name, None


def _check(model: Model, offer: Offer, where: str) -> None:
    """Raise InvalidCatalog if the offer could not make the smallest order, or has no cost for it."""
    names = list((offer.inputs or {}).values())
    twice = {name for name in names if names.count(name) > 1} | (set(names) & set(offer.fixed))
    if twice:
        raise InvalidCatalog(f"{where}: inputs: {', '.join(sorted(twice))} is set twice")
    least = model.minimal_input()
    if not offer.accepts(least):
        refused = [name for name, value in least.items() if not offer.accepts({name: value})]
        raise InvalidCatalog(f"{where}: the smallest order needs {', '.join(refused)}, which the offer does not take")
    if offer.prices and not any(row.matches(least) for row in offer.prices):
        raise InvalidCatalog(f"{where}: prices: no row for the smallest order")


def check_preference(model: Model, preference: object, where: str) -> None:
    """Raise InvalidCatalog if an overlay's `offers` names a provider that does not make the model."""
    known = [offer.provider for offer in model.offers]
    for name in preference if isinstance(preference, tuple) else ():
        if name not in known:
            raise InvalidCatalog(
                f"{where}: offers: {name!r} does not make this model; there are {', '.join(known)}", key="offers"
            )
