"""Edits of models that operators make while the service runs, and the history of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

Table = Mapping[str, object]
"""What is changed in one model, in the form of its table in the overlay file. Empty: nothing is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewCatalogChange:
    """An edit to be stored: the model's table becomes `after`."""

    model: str
    before: Table
    after: Table
    author: str
    #: the same key again gives the same change
    request_key: str
    #: the newest change of the model that the edit was made from; 0 if it had none
    follows: int
    #: the change that this one takes back
    undoes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogChange:
    """A stored edit. The newest one of a model decides what is changed in it."""

    id: int
    model: str
    before: Table
    after: Table
    author: str
    at: datetime
    undoes: int | None = None


def dump_table(table: Table) -> str:
    """Return a table as JSON."""
    return json.dumps(table, ensure_ascii=False, sort_keys=True, default=_number)


def load_table(text: str) -> dict[str, object]:
    """Return a table from JSON, with fractions as exact decimals, as the overlay file is read."""
    table = json.loads(text, parse_float=Decimal)
    assert isinstance(table, dict)
    return table


def _number(value: object) -> int | float:
    """Return a decimal as a number of JSON. Up to 15 digits are exact; the form of an overlay allows no more."""
    assert isinstance(value, Decimal), f"{value!r} is not a value of an overlay table"
    return int(value) if value == value.to_integral_value() else float(value)
