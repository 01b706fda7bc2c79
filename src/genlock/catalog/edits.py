"""What an operator's edit changes in a model: checked as the overlay file is, compared, and taken back.

An edit is a table in the form of the overlay file. It is applied after the package and the overlay file, so it wins.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from genlock.catalog.overlay import changed_model
from genlock.catalog.reader import wrong_value
from genlock.catalog.schema import ChangeTable
from genlock.domain.catalog import Model
from genlock.domain.catalog_change import CatalogChange, Table
from genlock.domain.errors import EditProblem, InvalidCatalog, InvalidEdit, StaleEdit

CREDITS = "credits"
#: kinds of problems by the key that is wrong, where the values are well formed but contradict the model
_CONTRADICTIONS = {"status": "no_price", "expected_seconds": "seconds", CREDITS: "unknown_row"}
#: kinds of problems by the key that is malformed
_MALFORMED = {
    "title": "title",
    "status": "choice",
    "reason": "text",
    "price": "amount",
    CREDITS: "amount",
    "order": "position",
    "expected_seconds": "whole",
    "deadline_seconds": "whole",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldChange:
    """One value that differs between two tables. None: it is not changed by the table."""

    field: str
    #: the price row, for `credits`
    row: str
    old: object
    new: object


def edited(model: Model, table: Table) -> Model:
    """Return a model with an edit applied. Raises InvalidEdit, which names every wrong value."""
    try:
        change = ChangeTable.model_validate(table)
    except ValidationError as error:
        raise InvalidEdit(dict(_malformed(error))) from None
    try:
        return changed_model(model, change, model.id)
    except InvalidCatalog as error:
        problem = EditProblem(message=str(error), code=_CONTRADICTIONS.get(error.key, "invalid"))
        raise InvalidEdit({error.key: problem}) from None


def _malformed(error: ValidationError) -> Iterator[tuple[str, EditProblem]]:
    for found in error.errors(include_url=False):
        key = str(found["loc"][0])
        message = f"{key} {wrong_value(found['type'], found)}"
        yield key, EditProblem(message=message, code=_MALFORMED.get(key, "invalid"))


def differences(before: Table, after: Table) -> list[FieldChange]:
    """Return the values that differ between two tables; price rows one by one."""
    old, new = dict(_flat(before)), dict(_flat(after))
    return [
        FieldChange(field=field, row=row, old=old.get((field, row)), new=new.get((field, row)))
        for field, row in dict.fromkeys((*old, *new))
        if old.get((field, row)) != new.get((field, row))
    ]


def undone(table: Table, change: CatalogChange) -> dict[str, object]:
    """Return a table without a change. Raises StaleEdit, with the values that later changes have set."""
    values = dict(_flat(table))
    overwritten = []
    for difference in differences(change.before, change.after):
        place = (difference.field, difference.row)
        if values.get(place) != difference.new:
            overwritten.append(difference.row or difference.field)
        elif difference.old is None:
            values.pop(place, None)
        else:
            values[place] = difference.old
    if overwritten:
        raise StaleEdit(f"changed again since: {', '.join(overwritten)}")
    return _nested(values)


def rebased(base: Table, mine: Table, current: Table) -> dict[str, object]:
    """Return what `mine` changed in `base`, applied to `current`: an edit that began before another was stored."""
    values = dict(_flat(current))
    for difference in differences(base, mine):
        if difference.new is None:
            values.pop((difference.field, difference.row), None)
        else:
            values[difference.field, difference.row] = difference.new
    return _nested(values)


def _flat(table: Table) -> Iterator[tuple[tuple[str, str], object]]:
    for field, value in table.items():
        if isinstance(value, Mapping):
            yield from (((field, str(row)), credits_) for row, credits_ in value.items())
        else:
            yield (field, ""), value


def _nested(values: Mapping[tuple[str, str], object]) -> dict[str, object]:
    table: dict[str, object] = {field: value for (field, row), value in values.items() if not row}
    rows = {row: value for (field, row), value in values.items() if row}
    return table | ({CREDITS: rows} if rows else {})
