"""The operator's file: hide, rename, free or price a model without touching the package.

Tables [models."ID"] are the operator's. Tables [synced."ID"], below a mark, are written by
`genlock models sync --apply` and give way to the operator's.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from genlock.catalog.coverage import check_model
from genlock.catalog.reader import Table
from genlock.domain.catalog import Model, Status
from genlock.domain.errors import InvalidCatalog
from genlock.domain.tariff import PriceRow, thousandths

MARK = "# ---- Below this line `genlock models sync --apply` writes; the rest is yours. ----"


def apply(models: Mapping[str, Model], data: dict[str, Any], name: str) -> dict[str, Model]:
    """The models as the overlay wants them."""
    top = Table(data, name)
    synced, own = top.take("synced", dict, {}), top.take("models", dict, {})
    top.end()
    changed = dict(models)
    for layer, known_only in ((synced, False), (own, True)):
        for model_id, change in layer.items():
            where = f"{name}: {model_id}"
            if model_id in changed:
                changed[model_id] = _changed(changed[model_id], Table(change, where))
            elif known_only:
                raise InvalidCatalog(f"{where}: there is no such model")
    return changed


def _changed(model: Model, table: Table) -> Model:
    hidden = table.take("hidden", bool, default=False)
    status = table.member("status", Status, Status.HIDDEN if hidden else model.status)
    reason = table.take("reason", str, "hidden by the operator" if hidden else "")
    own_price = thousandths(table.amount("price")) if "price" in table else model.own_price
    prices, extras = _repriced(model, table)
    changed = replace(
        model,
        title=table.take("title", str, model.title),
        status=status,
        reason=reason or (model.reason if status is model.status else "set by the operator"),
        free=table.take("free", bool, default=model.free),
        own_price=own_price,
        prices=prices,
        extras=extras,
        expected_seconds=table.take("expected_seconds", int, model.expected_seconds),
        deadline_seconds=table.take("deadline_seconds", int, model.deadline_seconds),
    )
    table.end()
    check_model(changed, table.where)
    return changed


def _repriced(model: Model, table: Table) -> tuple[tuple[PriceRow, ...], tuple[PriceRow, ...]]:
    """New credits for rows, by the labels they have in the provider's price list."""
    labels = {row.label for row in (*model.prices, *model.extras)} - {None}
    new: dict[str, Decimal] = {}
    for label, credits_ in table.take("credits", dict, {}).items():
        if label not in labels:
            raise table.wrong(f"credits: there is no price row labelled {label!r}")
        new[label] = Table({label: credits_}, f"{table.where}: credits").amount(label)

    def priced(row: PriceRow) -> PriceRow:
        return replace(row, credits=new[row.label]) if row.label in new else row

    return tuple(map(priced, model.prices)), tuple(map(priced, model.extras))


def written(path: Path, synced: Mapping[str, Mapping[str, object]]) -> str:
    """The overlay's text with this below the mark, and what the operator wrote untouched above it."""
    own = path.read_text(encoding="utf-8").partition(MARK)[0].rstrip() if path.exists() else ""
    tables = "\n\n".join(_table(model_id, change) for model_id, change in sorted(synced.items()))
    return f"{own}\n\n{MARK}\n\n{tables}".strip() + "\n"


def write(path: Path, text: str) -> None:
    """Replace the file at once, so that nobody reads half of it."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise InvalidCatalog(f"{path}: cannot be written: {error.strerror}") from error


def _table(model_id: str, change: Mapping[str, object]) -> str:
    lines = [f"[synced.{_quoted(model_id)}]"]
    for key, value in change.items():
        if isinstance(value, Mapping):
            rows = ", ".join(f"{_quoted(str(label))} = {credits_}" for label, credits_ in value.items())
            lines.append(f"{key} = {{ {rows} }}")
        else:
            lines.append(f"{key} = {_quoted(str(value))}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's rules are the same for what occurs here."""
    return json.dumps(text, ensure_ascii=False)
