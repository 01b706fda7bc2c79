"""The inputs of a model, as its page lists them in the operator's language."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from genlock.domain.catalog import Model
from genlock.domain.field import Field, FieldType
from genlock.i18n.catalog_texts import choice_name, field_name
from genlock.i18n.translator import Translator

CHOICES_SHOWN = 12
_TEXTS = "dashboard.models.inputs_table."


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInput:
    name: str
    label: str
    type: str
    required: bool
    default: Any
    allowed: str


def model_inputs(model: Model, t: Translator) -> list[ModelInput]:
    return [
        ModelInput(
            name=field.name,
            label=field_name(field, t),
            type=_type(field, t),
            required=field.required and field.default is None,
            default=field.default,
            allowed=_choices(field, t) if field.choices else ", ".join(_limits(field, t)),
        )
        for field in model.fields
    ]


def _type(field: Field, t: Translator) -> str:
    name = t.plain(f"{_TEXTS}type.{field.type}")
    return t.plain(f"{_TEXTS}several", type=name) if field.many and field.type is not FieldType.OBJECTS else name


def _choices(field: Field, t: Translator) -> str:
    more = " …" if len(field.choices) > CHOICES_SHOWN else ""
    names = (choice_name(field, choice, t) or str(choice) for choice in field.choices[:CHOICES_SHOWN])
    return ", ".join(names) + more


def _limits(field: Field, t: Translator) -> Iterator[str]:
    limits = {
        "min": field.min,
        "max": field.max,
        "characters": field.max_length,
        "min_count": field.min_count or None,
        "max_count": field.max_count,
        "megabytes": field.max_mb,
        "seconds": field.max_seconds,
    }
    for name, limit in limits.items():
        if limit is not None:
            yield t.plain(f"{_TEXTS}limit.{name}", n=limit)
