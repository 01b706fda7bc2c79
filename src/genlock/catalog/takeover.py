"""Differences from the providers' lists that an operator can take over, each as an edit of one model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from genlock.catalog.edits import CREDITS, edited
from genlock.catalog.sync import GONE, Diff
from genlock.domain.catalog import Model, Status
from genlock.domain.catalog_change import Table
from genlock.domain.model_schema import InputSchema, ModelSchema
from genlock.ports import PublicLists


class DifferenceKind(StrEnum):
    PRICE = "price"  #: the provider's price of a row is another one
    GONE = "gone"  #: offered, but no longer in the provider's list
    BACK = "back"  #: paused because it was gone, and in the list again


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    model: str
    kind: DifferenceKind
    #: the name of the price row; empty for a whole model
    row: str = ""
    old: Decimal | None = None
    new: Decimal | None = None

    @property
    def key(self) -> str:
        """Return what names the difference in a form."""
        return json.dumps([self.kind, self.model, self.row], ensure_ascii=False)


def differences(diff: Diff) -> list[Difference]:
    """Return what can be taken over. New models cannot: their inputs have to be described first."""
    kind = DifferenceKind
    return [
        *(Difference(kind=kind.GONE, model=model) for model in diff.gone),
        *(Difference(kind=kind.BACK, model=model) for model in diff.back),
        *(
            Difference(kind=kind.PRICE, model=change.model, row=change.label, old=change.old, new=change.new)
            for change in diff.changed
        ),
    ]


def taken_over(model: Model, table: Table, difference: Difference, today: str) -> dict[str, object]:
    """Return the edit of a model with one difference taken over. `model` is the one without the edit."""
    after = dict(table)
    match difference.kind:
        case DifferenceKind.PRICE:
            rows = after.get(CREDITS, {})
            assert isinstance(rows, Mapping)
            after[CREDITS] = {**rows, difference.row: difference.new}
        case DifferenceKind.GONE:
            after |= {"status": Status.PAUSED.value, "reason": f"{GONE} on {today}"}
        case DifferenceKind.BACK:
            after = {key: value for key, value in after.items() if key not in ("status", "reason", "hidden")}
            if edited(model, after).status is not Status.OFFERED:
                after["status"] = Status.OFFERED.value
    return after


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredLists:
    """The providers' lists as an operator read them last."""

    lists: Mapping[str, PublicLists]
    at: datetime
    author: str

    def dump(self) -> str:
        lists = {
            name: {
                "ids": sorted(provider_lists.ids),
                "families": sorted(provider_lists.families),
                "prices": {label: str(credits_) for label, credits_ in provider_lists.prices.items()},
                "schemas": {model: schema and _dumped(schema) for model, schema in provider_lists.schemas.items()},
            }
            for name, provider_lists in self.lists.items()
        }
        return json.dumps({"at": self.at.isoformat(), "author": self.author, "lists": lists}, ensure_ascii=False)

    @classmethod
    def load(cls, text: str) -> "StoredLists":
        stored = json.loads(text)
        lists = {
            name: PublicLists(
                ids=frozenset(stored_lists["ids"]),
                families=frozenset(stored_lists["families"]),
                prices={label: Decimal(credits_) for label, credits_ in stored_lists["prices"].items()},
                schemas={
                    model: schema and _loaded(schema) for model, schema in stored_lists.get("schemas", {}).items()
                },
            )
            for name, stored_lists in stored["lists"].items()
        }
        return cls(lists=lists, at=datetime.fromisoformat(stored["at"]), author=stored["author"])


def _dumped(schema: ModelSchema) -> dict[str, object]:
    known = None if schema.inputs is None else schema.inputs.items()
    inputs = None if known is None else {name: [input_.required, input_.choices] for name, input_ in known}
    price = None if schema.unit_price is None else str(schema.unit_price)
    return {"inputs": inputs, "deprecated": schema.deprecated, "unit_price": price, "unit": schema.unit}


def _loaded(stored: Mapping[str, Any]) -> ModelSchema:
    inputs, price = stored["inputs"], stored["unit_price"]
    return ModelSchema(
        inputs=inputs
        and {name: InputSchema(required=needed, choices=tuple(values)) for name, (needed, values) in inputs.items()},
        deprecated=stored["deprecated"],
        unit_price=None if price is None else Decimal(price),
        unit=stored["unit"],
    )
