"""Turns the parameters of OpenAI's requests into values of a model's own fields, and names those it cannot."""

from collections.abc import Mapping
from typing import Any

from genlock.api.openai.sizes import nearest_ratio, nearest_resolution, ratio_field, read_size, resolution_field
from genlock.api.problems import Fault, invalid
from genlock.domain.catalog import NOTHING, Model, Output
from genlock.domain.errors import InvalidInput
from genlock.domain.field import FILES, Field, FieldType

AUTO = "auto"
PROMPT = "prompt"
SECONDS_UNIT = "seconds"


class ModelInput:
    """The input of an order as it is collected. `check` raises if a parameter could not be used."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.values: dict[str, Any] = {}
        #: the parameter that has set a field, by the field's name
        self.parameters: dict[str, str] = {}
        self._faults: list[Fault] = []

    def refuse(self, parameter: str, detail: str) -> None:
        self._faults.append(Fault(pointer=f"/{parameter}", detail=detail))

    def check(self) -> None:
        """Raise Problem with every parameter that the model does not take."""
        if self._faults:
            raise invalid(self._faults, "invalid_input")

    def set(self, parameter: str, field: Field, value: Any) -> None:
        if field.name in self.parameters:
            self.refuse(parameter, f"cannot be combined with {self.parameters[field.name]}")
            return
        self.parameters[field.name] = parameter
        try:
            self.values[field.name] = value if field.type in FILES else field.clean(value)
        except InvalidInput as error:
            self.refuse(parameter, error.message)

    def set_prompt(self, prompt: str, output: Output) -> None:
        field = self.model.field(PROMPT)
        if output not in self.model.outputs or field is None or field.type is not FieldType.TEXT:
            self.refuse("model", f"does not make {output.value}s from a prompt here; order it with POST /v1/jobs")
        else:
            self.set(PROMPT, field, prompt)

    def set_count(self, count: int | None) -> None:
        made = self.model.count
        field = self.model.field(made) if isinstance(made, str) else None
        if count is None or count == made:
            return
        if field is not None:
            self.set("n", field, count)
        else:
            self.refuse("n", f"must be {made}: {self.model.title} does not let you choose")

    def set_size(self, size: str | None) -> None:
        if size in (None, AUTO):
            return
        shape, resolution, pixels = ratio_field(self.model), resolution_field(self.model), read_size(size)
        if shape is None:
            self.refuse("size", f"must be auto: {self.model.title} does not let you choose")
        elif pixels is None:
            self.set("size", shape, size)  # one of the model's own words, such as 16:9
        elif (choice := nearest_ratio(shape, *pixels)) is None:
            known = ", ".join(str(option) for option in shape.choices)
            self.refuse("size", f"has an aspect ratio that {self.model.title} does not make; it makes {known}")
        else:
            self.set("size", shape, choice)
            if resolution is not None:
                self.set("size", resolution, nearest_resolution(self.model, resolution, *pixels))

    def set_seconds(self, seconds: str | int | None) -> None:
        if seconds is None:
            return
        field = seconds_field(self.model)
        if field is None:
            self.refuse("seconds", f"must be left out: {self.model.title} does not let you choose")
        else:
            self.set("seconds", field, seconds)

    def set_same_named(self, parameter: str, value: str | None) -> None:
        """Set the model's field of the same name, written with or without underscores."""
        if value is None:
            return
        field = next((field for field in self._fields() if _plain(field.name) == _plain(parameter)), None)
        if field is not None and value == "jpeg" and value not in field.choices and "jpg" in field.choices:
            value = "jpg"
        if field is not None and (value != AUTO or AUTO in field.choices):
            self.set(parameter, field, value)
        elif field is None and value != AUTO:
            self.refuse(parameter, f"is not supported by {self.model.title}")

    def set_own(self, values: Mapping[str, Any]) -> None:
        """Set fields that the request names as the model does."""
        known = {field.name: field for field in self._fields()}
        for name, value in values.items():
            if value in NOTHING:
                continue
            if name in known:
                self.set(name, known[name], value)
            else:
                self.refuse(name[:100], f"is not supported by {self.model.title}")

    def image_field(self) -> Field | None:
        """Return the field for a reference image; refuse the parameter if there is none."""
        field = next((field for field in self._fields() if field.type is FieldType.IMAGE), None)
        if field is None:
            self.refuse("input_reference", f"must be left out: {self.model.title} takes no image")
        return field

    def _fields(self) -> list[Field]:
        return [field for field in self.model.fields if not field.internal]


def seconds_field(model: Model) -> Field | None:
    return next((field for field in model.fields if field.unit == SECONDS_UNIT and not field.internal), None)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
