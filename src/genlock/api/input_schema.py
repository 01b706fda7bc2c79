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
    fields = [field for field in model.fields if not field.internal]
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {field.name: _field(field) for field in fields},
        "additionalProperties": False,
    }
    required = [field.name for field in fields if field.required and field.default is None]
    return schema | ({"required": required} if required else {})


def _field(field: Field) -> dict[str, Any]:
    schema = _single_value(field)
    if field.many:
        limits = {"minItems": field.min_count or None, "maxItems": field.max_count}
        schema = {"type": "array", "items": schema, **_given(limits)}
    others = {language: text for language, text in field.about.items() if language != "en"}
    notes = {"description": field.about.get("en"), "x-descriptions": others or None, "default": field.default}
    return schema | _given(notes)


def _single_value(field: Field) -> dict[str, Any]:
    if field.type is FieldType.CHOICE:
        return {"enum": list(field.choices)}
    if field.type in FILES:
        limits = {"x-max-megabytes": field.max_mb, "x-max-seconds": field.max_seconds}
        return {"type": "string", "maxLength": ADDRESS_LENGTH, "x-file": field.type.value, **_given(limits)}
    if field.type is FieldType.TASK:
        return {"type": "string", "maxLength": TASK_LENGTH, "x-job": True}
    if field.type is FieldType.OBJECTS:
        return {"type": "object", **({"required": list(field.members)} if field.members else {})}
    limits = {
        "minLength": field.min_length or None,
        "maxLength": field.max_length,
        "minimum": field.min,
        "maximum": field.max,
        "multipleOf": field.step if field.step and not field.min else None,
    }
    return {"type": _SCALARS[field.type], **_given(limits)}


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in limits.items() if value is not None}
