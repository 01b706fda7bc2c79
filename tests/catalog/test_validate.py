"""Text from a chat is converted to the provider's input, or refused with what is allowed."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genlock.domain.catalog import Model
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field, FieldType
from tests.packaged import CATALOG
from tests.random_examples import examples

INTEGER = Field(name="n", type=FieldType.INTEGER, min=1, max=10)
SEED = Field(name="seed", type=FieldType.INTEGER, min=0, max=2147483647)
NUMBER = Field(name="x", type=FieldType.NUMBER, min=0, max=1, step=0.25)
CHOICE = Field(name="c", type=FieldType.CHOICE, choices=("5", "10", "768P"))
SWITCH = Field(name="b", type=FieldType.BOOLEAN)
TEXT = Field(name="t", type=FieldType.TEXT, min_length=2, max_length=5)
IMAGE = Field(name="i", type=FieldType.IMAGE)
IMAGES = Field(name="is", type=FieldType.IMAGE, many=True, required=True, max_count=2)
SHOTS = Field(name="o", type=FieldType.OBJECTS, many=True, members=("text",), max_count=2)
TASK = Field(name="k", type=FieldType.TASK)
URL = "https://example.com/a.png"

ACCEPTED: list[tuple[Field, object, object]] = [
    (INTEGER, "5", 5),
    (INTEGER, " 7 ", 7),
    (INTEGER, 3.0, 3),
    (NUMBER, "0,5", 0.5),
    (NUMBER, 1, 1),
    (CHOICE, 5, "5"),
    (CHOICE, "768p", "768P"),
    (SWITCH, "Да", True),
    (SWITCH, "off", False),
    (SWITCH, 1, True),
    (TEXT, "  abc ", "abc"),
    (TEXT, 12, "12"),
    (IMAGE, URL, URL),
    (IMAGES, URL, [URL]),
    (IMAGES, f"{URL}\n{URL}", [URL, URL]),
    (IMAGES, (URL,), [URL]),
    (SHOTS, '[{"text": "hello"}]', [{"text": "hello"}]),
    (TASK, "abc-1", "abc-1"),
]

REFUSED: list[tuple[Field, object, str, str]] = [
    (INTEGER, "five", "type", "must be a whole number from 1 to 10"),
    (INTEGER, "5.5", "type", "must be a whole number from 1 to 10"),
    (INTEGER, "11", "range", "must be a whole number from 1 to 10"),
    (INTEGER, True, "type", "must be a whole number from 1 to 10"),
    (INTEGER, "9" * 5000, "type", "must be a whole number from 1 to 10"),
    (INTEGER, 10**400, "type", "must be a whole number from 1 to 10"),
    (SEED, "x", "type", "must be a whole number from 0 to 2147483647"),
    (NUMBER, "nan", "type", "must be a number from 0 to 1"),
    (NUMBER, "0.3", "step", "must go in steps of 0.25"),
    (Field(name="m", type=FieldType.NUMBER, min=2), "1", "range", "must be a number of 2 or more"),
    (CHOICE, "7", "choice", "must be one of 5, 10, 768P"),
    (CHOICE, None, "choice", "must be one of 5, 10, 768P"),
    (SWITCH, "maybe", "type", "must be yes or no"),
    (SWITCH, 2, "type", "must be yes or no"),
    (TEXT, "a", "length", "must have 2 to 5 characters, not 1"),
    (TEXT, "abcdef", "length", "must have 2 to 5 characters, not 6"),
    (TEXT, ["abc"], "type", "must be text"),
    (TEXT, "a\x00b", "type", "contains characters that are not text"),
    (TEXT, "a\ud800b", "type", "contains characters that are not text"),
    (IMAGE, "ftp://example.com/a.png", "address", "must be the http(s) address of an image"),
    (IMAGE, "https://", "address", "must be the http(s) address of an image"),
    (IMAGE, "http://[", "address", "must be the http(s) address of an image"),
    (IMAGE, "https://example.com/" + "a" * 3000, "address", "must be the http(s) address of an image"),
    (IMAGES, [URL] * 3, "count", "needs 1 to 2 of them, not 3"),
    (IMAGES, [], "count", "needs 1 to 2 of them, not 0"),
    (SHOTS, [{"text": "a\x00b"}], "type", "contains characters that are not text"),
    (SHOTS, '[{"text": [{"x": "\\ud800"}]}]', "type", "contains characters that are not text"),
    (SHOTS, [{"text": "a", "\ud800": 1}], "type", "contains characters that are not text"),
    (SHOTS, "hello", "type", "must be a list of objects with text"),
    (SHOTS, [{"words": "x"}], "type", "must be a list of objects with text"),
    (SHOTS, [{"text": object()}], "type", "must be a list of objects with text"),
    (SHOTS, [{"text": "a", "more": "b" * 20_000}], "length", "must have at most 20000 characters each"),
    (TASK, "a b", "type", "must be the id of an earlier task"),
]


@pytest.mark.parametrize(("field", "value", "clean"), ACCEPTED)
def test_text_of_users_is_converted(field: Field, value: object, clean: object) -> None:
    converted = field.clean(value)
    assert (converted, type(converted)) == (clean, type(clean))


@pytest.mark.parametrize(("field", "value", "problem", "message"), REFUSED)
def test_a_refusal_says_what_is_allowed(field: Field, value: object, problem: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        field.clean(value)
    refused = caught.value
    assert (refused.field, refused.problem, refused.message) == (field.name, problem, message)
    assert str(refused) == f"{field.name}: {message}"


def test_a_refusal_carries_what_is_allowed_as_data() -> None:
    with pytest.raises(InvalidInput) as caught:
        INTEGER.clean("11")
    assert caught.value.allowed == {"type": "integer", "min": 1, "max": 10}


def test_a_long_list_of_choices_is_cut_short() -> None:
    field = Field(name="c", type=FieldType.CHOICE, choices=tuple(range(100)))
    with pytest.raises(InvalidInput, match=r"28, 29 and 70 more$"):
        field.clean("x")


def test_a_field_that_is_not_given_has_its_default_or_is_left_out() -> None:
    model = CATALOG.get("bytedance/seedream")
    clean = model.validate({"prompt": "x", "seed": None, "image_size": ""})
    assert clean == {"prompt": "x", "guidance_scale": 2.5, "image_size": "square_hd"}


def test_a_missing_required_field_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        CATALOG.get("z-image").validate({"prompt": "  "})
    assert (caught.value.field, caught.value.problem) == ("prompt", "missing")


def again(model: Model, clean: dict[str, object]) -> dict[str, object]:
    """Validate an accepted input again: it must be accepted again and have a price."""
    try:
        assert not model.prices or model.credits(clean) >= 0
        return model.validate(clean)
    except InvalidInput as refused:
        raise AssertionError(f"{model.id} first accepts and then refuses: {refused}") from refused


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.sampled_from([URL, "5", "да", "1K"])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_any_input_is_either_accepted_repeatedly_or_refused(fuzz_cases: int) -> None:
    settings(max_examples=fuzz_cases // 160)(given(st.data())(accepted_repeatedly_or_refused))()


def accepted_repeatedly_or_refused(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(sorted(CATALOG.models.values(), key=lambda model: model.id)))
    names = [field.name for field in model.fields] or ["prompt"]
    noise: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(names), ANYTHING, max_size=5))
    start = data.draw(st.sampled_from([{}, model.minimal_input()]))
    with suppress(InvalidInput):
        clean = model.validate(start | noise)
        assert again(model, clean) == clean


@settings(max_examples=examples(200))
@given(data=st.data())
def test_every_choice_on_offer_has_a_price(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(CATALOG.offered()))
    values = model.minimal_input()
    for field in model.fields:
        if field.choices:
            values[field.name] = data.draw(st.sampled_from(field.choices))
        elif field.type is FieldType.BOOLEAN:
            values[field.name] = data.draw(st.booleans())
    with suppress(InvalidInput):  # some choices cannot be combined
        clean = model.validate(values)
        assert again(model, clean) == clean
