"""The OpenAPI documents that a simulated provider publishes of its models, with differences on demand."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel


@dataclass(frozen=True, kw_only=True)
class SchemaEdit:
    """How the published schema of a model differs from the inputs that the catalog sends."""

    gone: bool = False
    deprecated: bool = False
    unpublished: bool = False
    add: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, list[Any]] = field(default_factory=dict)
    unit_usd: float | None = None

    def applied(self, model: SimulatedModel) -> SimulatedModel:
        inputs = [
            replace(
                input_,
                name=self.rename.get(input_.name, input_.name),
                choices=tuple(self.choices.get(input_.name, input_.choices)),
                required=input_.required or input_.name in self.require,
            )
            for input_ in model.inputs
            if input_.name not in self.remove
        ]
        known = {input_.name for input_ in inputs}
        inputs += [SimulatedInput(name=name) for name in self.add]
        inputs += [SimulatedInput(name=name, required=True) for name in self.require if name not in known]
        return replace(model, inputs=tuple(inputs), unit_usd=model.unit_usd if self.unit_usd is None else self.unit_usd)


@dataclass(kw_only=True)
class PublishedSchemas:
    models: Mapping[str, SimulatedModel]
    edits: dict[str, SchemaEdit] = field(default_factory=dict)

    def edit(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the differences by these, by model. Raises TypeError for an unknown one."""
        self.edits = {model: SchemaEdit(**edit) for model, edit in changes.items()}

    def get(self, model_id: str) -> SimulatedModel | None:
        """Return a model as it is published; None if the provider does not have it."""
        edit = self.edits.get(model_id, SchemaEdit())
        return edit.applied(self.models[model_id]) if model_id in self.models and not edit.gone else None

    def document(self, model: SimulatedModel, *, input_name: str) -> dict[str, Any]:
        """Return the OpenAPI document of a model that `get` has returned."""
        edit = self.edits.get(model.id, SchemaEdit())
        post: dict[str, Any] = {
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{input_name}"}}},
            }
        }
        schemas: dict[str, Any] = {}
        properties = {input_.name: _property(input_, schemas) for input_ in model.inputs}
        required = [input_.name for input_ in model.inputs if input_.required]
        schemas[input_name] = {"type": "object", "properties": properties, "required": required}
        return {
            "openapi": "3.0.2",
            "info": {"title": model.title or model.id, "version": "1.0.0"},
            "paths": {f"/{model.id}": {"post": post | ({"deprecated": True} if edit.deprecated else {})}},
            "components": {"schemas": {} if edit.unpublished else schemas},
        }


def _property(input_: SimulatedInput, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an input. Choices are in a schema of their own, as the providers' generators write them."""
    usual = {} if input_.default is None else {"default": input_.default}
    if not input_.choices:
        return {"title": input_.name, "description": f"The {input_.name}"} | usual
    schemas[f"{input_.name}_choices"] = {"title": input_.name, "enum": list(input_.choices)}
    return {"allOf": [{"$ref": f"#/components/schemas/{input_.name}_choices"}]} | usual
