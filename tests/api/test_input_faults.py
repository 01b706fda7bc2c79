"""A wrong input is named with a code and its limits, so that a client can say it in words of its own."""

import pytest

from genlock.api.order_acceptance import input_fault
from genlock.api.types import FaultAnswer
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field, FieldType

#: field, wrong value, code, limits
WRONG: list[tuple[Field, object, str, dict[str, float]]] = [
    (Field(name="seed", type=FieldType.INTEGER, min=0, max=9), 10, "range", {"min": 0, "max": 9}),
    (Field(name="seed", type=FieldType.INTEGER, min=0), "x", "type", {"min": 0}),
    (Field(name="speed", type=FieldType.NUMBER, min=0, step=0.5), 0.7, "step", {"step": 0.5}),
    (Field(name="prompt", type=FieldType.TEXT, max_length=3), "abcd", "length", {"min": 0, "max": 3, "given": 4}),
    (Field(name="size", type=FieldType.CHOICE, choices=("1K", "2K")), "9K", "choice", {}),
    (Field(name="image", type=FieldType.IMAGE), "cat", "address", {}),
    (Field(name="images", type=FieldType.IMAGE, many=True, min_count=2), [], "count", {"min": 2, "given": 0}),
]


def test_every_wrong_input_has_a_code_and_its_limits() -> None:
    for name, value, code, limits in WRONG:
        with pytest.raises(InvalidInput) as refused:
            name.clean(value)
        fault = input_fault(refused.value).as_json()
        assert {name: fault[name] for name in fault if name not in ("pointer", "detail")} == {"code": code, **limits}
        assert (fault["pointer"], fault["detail"]) == (f"/input/{name.name}", refused.value.message)
        FaultAnswer.model_validate(fault)
