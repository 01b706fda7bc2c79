"""Reads the inputs of a model from the OpenAPI document that its provider publishes. Documents are untrusted."""

from collections.abc import Iterator, Mapping
from typing import Any

from genlock.domain.model_schema import InputSchema, ModelSchema
from genlock.providers.json_values import clean

INPUTS_MAX = 200
CHOICES_MAX = 500
NAME_CHARS_MAX = 100
CHOICE_CHARS_MAX = 200
#: references that are followed, one inside the other
_DEPTH_MAX = 6
_PREFIX = "#/components/schemas/"
_NESTED = ("allOf", "anyOf", "oneOf")
#: the methods that a model's operation may have
_METHODS = ("post",)


def read_schema(document: Any) -> ModelSchema:
    """Return what the document says about the model's input."""
    schemas = _mapping(_mapping(_mapping(document).get("components")).get("schemas"))
    operations = list(_operations(document))
    found = _input(schemas, operations)
    return ModelSchema(
        inputs=None if found is None else _inputs(found, schemas),
        deprecated=any(part.get("deprecated") is True for part in (*operations, _mapping(found))),
    )


def _operations(document: Any) -> Iterator[Mapping[str, Any]]:
    for path in _mapping(_mapping(document).get("paths")).values():
        yield from (_mapping(_mapping(path).get(method)) for method in _METHODS)


def _input(schemas: Mapping[str, Any], operations: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the schema of the input: the one named `Input`, else the body of the call that creates a task."""
    if "properties" in _mapping(schemas.get("Input")):
        return _mapping(schemas["Input"])
    for operation in operations:
        content = _mapping(_mapping(operation.get("requestBody")).get("content"))
        body = _resolved(_mapping(content.get("application/json")).get("schema"), schemas)
        if "properties" in body:
            return body
    return None


def _inputs(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, InputSchema]:
    listed = schema.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return {
        clean(name)[:NAME_CHARS_MAX]: InputSchema(
            required=name in required,
            choices=tuple(_choices(input_, schemas, 0) or ())[:CHOICES_MAX],
            default=next(iter(_values([_resolved(input_, schemas).get("default")])), None),
        )
        for name, input_ in list(_mapping(schema.get("properties")).items())[:INPUTS_MAX]
    }


def _choices(schema: Any, schemas: Mapping[str, Any], depth: int) -> list[object] | None:
    """Return the values that an input takes; None: any value."""
    resolved = _resolved(schema, schemas)
    if "const" in resolved:
        return _values([resolved["const"]])
    if isinstance(resolved.get("enum"), list):
        return _values(resolved["enum"])
    alternatives = [
        part for key in _NESTED for part in _list(resolved.get(key)) if _mapping(part).get("type") != "null"
    ]
    if not alternatives or depth >= _DEPTH_MAX:
        return None
    found = [_choices(part, schemas, depth + 1) for part in alternatives[:CHOICES_MAX]]
    return None if any(part is None for part in found) else [value for part in found for value in part or ()]


def _values(listed: list[Any]) -> list[object]:
    plain = (value for value in listed[:CHOICES_MAX] if isinstance(value, str | int | float | bool))
    return [clean(value)[:CHOICE_CHARS_MAX] if isinstance(value, str) else value for value in plain]


def _resolved(schema: Any, schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema, or the one that it refers to."""
    for _ in range(_DEPTH_MAX):
        name = _mapping(schema).get("$ref")
        if not isinstance(name, str):
            break
        schema = schemas.get(name.removeprefix(_PREFIX))
    return _mapping(schema)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
