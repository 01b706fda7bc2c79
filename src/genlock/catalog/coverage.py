"""Checks the parts of a model against each other before it may be sold."""

from collections.abc import Iterator
from itertools import product

from genlock.domain.catalog import Field, Model, Status
from genlock.domain.errors import InvalidCatalog, InvalidInput
from genlock.domain.field import FieldType
from genlock.domain.rule import Rule

COMBINATIONS_MAX = 5000


def check_model(model: Model, where: str) -> None:
    """Raise InvalidCatalog, with the place, if the parts of the model contradict each other."""
    key, wrong = _first_mistake(model) or ("fields", _field_mistake(model))
    if wrong:
        raise InvalidCatalog(f"{where}: {wrong}", key=key)
    if model.prices:
        _check_prices(model, where)


def _first_mistake(model: Model) -> tuple[str, str] | None:
    """Return the key that is wrong, and what is wrong."""
    offered = model.status is Status.OFFERED
    if not model.outputs:
        return "outputs", "outputs is missing"
    if not 0 < model.expected_seconds <= model.deadline_seconds:
        return "expected_seconds", "expected_seconds must be more than 0 and at most deadline_seconds"
    if not offered and not model.reason:
        return "reason", f"is {model.status} but gives no reason"
    if offered and not model.prices and model.own_price is None and not model.free:
        return "status", "is offered but has no price"
    return None


def _field_mistake(model: Model) -> str | None:
    names = [field.name for field in model.fields]
    for name in names:
        if names.count(name) > 1:
            return f"{name}: is described twice"
        if name in model.fixed:
            return f"{name}: is both a field and fixed"
    if isinstance(model.count, str) and model.count not in names:
        return f"count names {model.count!r}, which is not a field of this model"
    return None


def _check_prices(model: Model, where: str) -> None:
    for values in _combinations(model):
        if not any(row.matches(values) for row in model.prices):
            inputs = ", ".join(f"{name} = {'not given' if value is None else value}" for name, value in values.items())
            raise InvalidCatalog(f"{where}: prices: no row for {inputs or 'any input'}")


def _combinations(model: Model) -> Iterator[dict[str, object]]:
    """Yield every combination of the fields that decide the price, without those that a rule excludes."""
    names = sorted({name for row in model.prices for name in (*row.when, *row.given)})
    fields = [field for field in model.fields if field.name in names]
    excluding = [rule for rule in model.rules if rule.never and set(rule.when) <= set(names)]
    for number, combination in enumerate(product(*(_values(field, model) for field in fields))):
        if number >= COMBINATIONS_MAX:
            return
        values = {field.name: value for field, value in zip(fields, combination, strict=True)}
        if not _excluded(excluding, values):
            yield values


def _excluded(rules: list[Rule], values: dict[str, object]) -> bool:
    try:
        for rule in rules:
            rule.check(values)
    except InvalidInput:
        return True
    return False


def _values(field: Field, model: Model) -> list[object]:
    absent: list[object] = [None] if not field.required and field.default is None else []
    if field.choices:
        return [*field.choices, *absent]
    if field.type is FieldType.BOOLEAN:
        return [False, True, *absent]
    named = [value for row in model.prices for value in row.when.get(field.name, ())]
    return [*named, field.least(), *absent]
