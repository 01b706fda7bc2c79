"""Places in the catalog's files, for their errors, and the price rows that models and offers have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genlock.catalog.schema import PriceTable
from genlock.domain.errors import InvalidCatalog
from genlock.domain.field import Field, FieldType
from genlock.domain.tariff import PriceRow

_MEASURES = ("times", "count", "seconds", "characters")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A place in a file and the fields that may be named there."""

    where: str
    fields: Mapping[str, Field]

    def wrong(self, what: str) -> InvalidCatalog:
        return InvalidCatalog(f"{self.where}: {what}")

    def inner(self, place: str) -> "Scope":
        return Scope(where=f"{self.where}: {place}", fields=self.fields)

    def field(self, key: str, name: str) -> Field:
        if name not in self.fields:
            raise self.wrong(f"{key} names {name!r}, which is not a field of this model")
        return self.fields[name]

    def names(self, key: str, names: list[str]) -> tuple[str, ...]:
        return tuple(self.field(key, name).name for name in names)

    def when(self, conditions: Mapping[str, Any]) -> dict[str, tuple[object, ...]]:
        """Return conditions as allowed values by field: in the file, a value or a list of values."""
        return {name: self._allowed(name, value) for name, value in conditions.items()}

    def _allowed(self, name: str, value: Any) -> tuple[object, ...]:
        field, allowed = self.field("when", name), tuple(value if isinstance(value, list) else [value])
        for item in allowed:
            if field.choices and item not in field.choices:
                raise self.wrong(f"when.{name}: {item!r} is not one of the field's choices")
            if field.type is FieldType.BOOLEAN and not isinstance(item, bool):
                raise self.wrong(f"when.{name}: must be true or false, not {item!r}")
        return allowed


def price_row(table: PriceTable, scope: Scope) -> PriceRow:
    named = {key: name for key in _MEASURES if (name := getattr(table, key)) is not None}
    measures = {key: scope.field(key, name).name for key, name in named.items()}
    if len(measures) > 1:
        raise scope.wrong(f"has both {' and '.join(measures)}; a row can have only one measure")
    return PriceRow(
        credits=table.credits,
        when=scope.when(table.when),
        given=scope.names("given", table.given),
        each=table.each,
        free=table.free,
        label=table.label,
        **measures,
    )
