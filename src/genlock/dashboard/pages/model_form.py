"""The form that edits a model: read into an overlay table, and written from one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from genlock.catalog.edits import CREDITS
from genlock.dashboard.forms import Form
from genlock.domain.catalog import Model, Status
from genlock.domain.catalog_change import Table
from genlock.domain.money import read_decimal
from genlock.domain.tariff import PriceRow

#: statuses that an operator may set; a dead model is removed by the provider, not by an operator
STATUSES = (Status.OFFERED, Status.HIDDEN, Status.PAUSED)
TEXT_LENGTH_MAX = 300
ROWS_MAX = 500
_WHOLE = re.compile(r"\d{1,9}")
_TEXTS = ("title", "reason")
_WHOLES = ("order", "expected_seconds", "deadline_seconds")
_SWITCHES = ("free", "featured")


@dataclass(frozen=True, kw_only=True)
class ModelForm:
    """What the boxes of the form hold, as text. An empty box means: as in the package and the overlay file."""

    boxes: Mapping[str, str] = field(default_factory=dict)
    #: the provider's credits by price row
    rows: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> "ModelForm":
        boxes = {name: _written(value) for name, value in table.items() if not isinstance(value, Mapping)}
        if table.get("hidden") and "status" not in table:
            boxes["status"] = Status.HIDDEN.value
        rows = table.get(CREDITS, {})
        assert isinstance(rows, Mapping)
        return cls(boxes=boxes, rows={str(row): _written(value) for row, value in rows.items()})

    @classmethod
    def read(cls, form: Form) -> "ModelForm":
        boxes = {name: form[name][:TEXT_LENGTH_MAX] for name in (*_TEXTS, "status", "price", *_WHOLES, *_SWITCHES)}
        pairs = list(zip(form.all("row"), form.all(CREDITS), strict=False))[:ROWS_MAX]
        return cls(
            boxes={name: text for name, text in boxes.items() if text},
            rows={row: text.strip()[:TEXT_LENGTH_MAX] for row, text in pairs if text.strip()},
        )

    def table(self) -> tuple[dict[str, object], dict[str, str]]:
        """Return the edit, and the kinds of problems by box. A box with a problem is not in the edit."""
        table: dict[str, object] = {}
        problems: dict[str, str] = {}
        for name, text in self.boxes.items():
            value = _parsed(name, text)
            if value is None:
                problems[name] = _PROBLEMS.get(name, "whole")
            else:
                table[name] = value
        rows: dict[str, object] = {}
        for row, text in self.rows.items():
            if (amount := _amount(text)) is None:
                problems[f"{CREDITS}:{row}"] = "amount"
            else:
                rows[row] = amount
        return table | ({CREDITS: rows} if rows else {}), problems


_PROBLEMS = {"price": "amount", "order": "position", "status": "choice", "free": "choice", "featured": "choice"}


def _parsed(name: str, text: str) -> object:
    """Return the value of a box; None if it is not one."""
    match name:
        case "price":
            return _amount(text)
        case "status":
            return text if text in set(STATUSES) else None
        case _ if name in _SWITCHES:
            return {"yes": True, "no": False}.get(text)
        case _ if name in _WHOLES:
            return int(text) if _WHOLE.fullmatch(text) else None
        case _:
            return text


def _amount(text: str) -> int | Decimal | None:
    amount = read_decimal(text)
    return int(amount) if amount is not None and amount == amount.to_integral_value() else amount


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def unique_rows(model: Model) -> list[PriceRow]:
    """Return the price rows that an edit can name: rows with the same key change together."""
    return list({row.key: row for row in (*model.prices, *model.extras)}.values())


def value_of(model: Model, name: str) -> object:
    """Return what a model has for a field of an edit; None if nothing."""
    match name:
        case "price":
            return None if model.own_price is None else Decimal(model.own_price) / 1000
        case _:
            return getattr(model, name)
