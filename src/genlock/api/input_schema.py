"""JSON Schema of a model's input, as `GET /v1/models` shows it."""

from typing import Any

from genlock.domain.catalog import Model
from genlock.domain.field import ADDRESS_LENGTH, FILES, TASK_LENGTH, Field, FieldType

_SCALARS = {
    FieldType.TEXT: "string",
    FieldType.NUMBER: "number",
    FieldType.INTEGER: "integer",
    FieldType.BOOLEAN: "boolean",
}


def input_schema(model: Model) -> dict[str, Any]:
    """Return the schema of the fields. Rules between fields are checked when the order is made."""
    fields = [one for one in model.fields if not one.internal]
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {one.name: _field(one) for one in fields},
        "additionalProperties": False,
    }
    required = [one.name for one in fields if one.required and one.default is None]
    return schema | ({"required": required} if required else {})


def _field(one: Field) -> dict[str, Any]:
    schema = _one(one)
    if one.many:
        limits = {"minItems": one.min_count or None, "maxItems": one.max_count}
        schema = {"type": "array", "items": schema, **_given(limits)}
    others = {language: text for language, text in one.about.items() if language != "en"}
    notes = {"description": one.about.get("en"), "x-descriptions": others or None, "default": one.default}
    return schema | _given(notes)


def _one(one: Field) -> dict[str, Any]:
    if one.type is FieldType.CHOICE:
        return {"enum": list(one.choices)}
    if one.type in FILES:
        limits = {"x-max-megabytes": one.max_mb, "x-max-seconds": one.max_seconds}
        return {"type": "string", "maxLength": ADDRESS_LENGTH, "x-file": one.type.value, **_given(limits)}
    if one.type is FieldType.TASK:
        return {"type": "string", "maxLength": TASK_LENGTH, "x-job": True}
    if one.type is FieldType.OBJECTS:
        return {"type": "object", **({"required": list(one.members)} if one.members else {})}
    limits = {
        "minLength": one.min_length or None,
        "maxLength": one.max_length,
        "minimum": one.min,
        "maximum": one.max,
        "multipleOf": one.step if one.step and not one.min else None,
    }
    return {"type": _SCALARS[one.type], **_given(limits)}


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in limits.items() if value is not None}
