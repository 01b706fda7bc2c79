"""Reading the inputs of a model from the OpenAPI document that its provider publishes."""

from dataclasses import replace
from typing import Any

from genlock.domain.model_schema import InputSchema, ModelSchema
from genlock.providers.openapi import CHOICES_MAX, INPUTS_MAX, read_schema


def document(properties: object, **schemas: object) -> dict[str, Any]:
    return {"components": {"schemas": {"Input": {"properties": properties, "required": ["a"]}, **schemas}}}


def test_choices_are_found_where_the_generators_of_the_providers_write_them() -> None:
    properties = {
        "a": {"type": "string"},
        "plain": {"enum": ["x", 1, 2.5, True]},
        "referred": {"allOf": [{"$ref": "#/components/schemas/Size"}], "default": "big"},
        "optional": {"anyOf": [{"$ref": "#/components/schemas/Size"}, {"type": "null"}]},
        "one value": {"const": "only"},
        "choice or anything": {"anyOf": [{"$ref": "#/components/schemas/Size"}, {"type": "string"}]},
    }
    found = read_schema(document(properties, Size={"enum": ["big", "small"]})).inputs
    sizes = InputSchema(choices=("big", "small"))
    assert found == {
        "a": InputSchema(required=True),
        "plain": InputSchema(choices=("x", 1, 2.5, True)),
        "referred": replace(sizes, default="big"),
        "optional": sizes,
        "one value": InputSchema(choices=("only",)),
        "choice or anything": InputSchema(),
    }


def test_the_body_of_the_create_call_is_the_input_where_no_schema_has_that_name() -> None:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/FluxInput"}}}}
    found = read_schema(
        {
            "paths": {"/x/requests/{id}": {"get": {}}, "/x": {"post": {"requestBody": body, "deprecated": True}}},
            "components": {"schemas": {"Output": {"properties": {"no": {}}}, "FluxInput": {"properties": {"p": {}}}}},
        }
    )
    assert found == ModelSchema(inputs={"p": InputSchema()}, deprecated=True)


def test_a_hostile_document_is_read_as_far_as_it_is_one_and_within_limits() -> None:
    deep: Any = {"enum": ["end"]}
    for _ in range(50):
        deep = {"anyOf": [deep]}
    circle = {"$ref": "#/components/schemas/circle"}
    many = {f"i{n}": {"enum": list(range(CHOICES_MAX * 2))} for n in range(INPUTS_MAX * 2)}
    hostile: Any
    for hostile in (None, [], 5, {"components": []}, {"paths": [1]}, {"paths": {"/": 1}}, document([1])["components"]):
        assert read_schema(hostile).inputs is None
    assert read_schema(document(5)).inputs == {}
    assert read_schema(document({"a": deep, "b": circle, "c": {"allOf": [circle] * 9}}, circle=circle)).inputs == {
        "a": InputSchema(required=True),
        "b": InputSchema(),
        "c": InputSchema(),
    }
    found = read_schema(document(many)).inputs or {}
    assert len(found) == INPUTS_MAX
    assert {len(input_.choices) for input_ in found.values()} == {CHOICES_MAX}
    assert read_schema(document({"a\x00" + "x" * 999: {"enum": ["\ud800", None, [], "y" * 9999]}})).inputs == {
        "a" + "x" * 99: InputSchema(choices=("", "y" * 200))
    }
