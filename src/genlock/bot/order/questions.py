"""What an order asks of the user: the fields of a model, in the order in which users think of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from genlock.bot.storefront.storefront import BEGINS_WITH
from genlock.domain.catalog import NOTHING, Category, Model
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field, FieldType
from genlock.domain.rule import Rule

#: number fields with at most this many possible values get buttons
NUMBERS_OFFERED = 15
NUMBER_DIGITS = 10
PROMPT = "prompt"
#: kinds of fields that are asked before all others
ASKED_FIRST = (FieldType.TASK, FieldType.IMAGE, FieldType.VIDEO, FieldType.AUDIO)


def main_text(model: Model) -> Field | None:
    """Return the field that a text message fills."""
    texts = [field for field in model.fields if field.type is FieldType.TEXT and not field.many and not field.advanced]
    named = next((field for field in texts if field.name == PROMPT), None)
    return named or next((field for field in texts if field.required), None)


def takes_text(model: Model, text: str) -> bool:
    """Whether the model has a field for such a text and does not refuse it, for example because of its length."""
    main = main_text(model)
    if main is None:
        return False
    try:
        main.clean(text)
    except InvalidInput:
        return False
    rule = broken_rule(model, {main.name: text})
    return rule is None or main.name not in rule.most


def asked_fields(model: Model, category: str) -> list[Field]:
    """Return fields asked one by one: required ones, the prompt, and the file that the category is about.

    Files come first, and of them pictures: a user thinks of the photo, then of the speech, then of what happens.
    """
    begins = BEGINS_WITH.get(Category(category)) if category in set(Category) else None
    if begins and any(field.type is begins and field.required for field in model.fields):
        begins = None
    about = (
        next((field for field in model.fields if field.type is begins and not field.advanced), None) if begins else None
    )
    asked = (
        field
        for field in model.fields
        if (field.required and not (field.advanced and field.default is not None))
        or (field.name == PROMPT and not field.advanced)
        or field is about
    )
    return sorted(
        asked, key=lambda field: ASKED_FIRST.index(field.type) if field.type in ASKED_FIRST else len(ASKED_FIRST)
    )


def editable_fields(model: Model) -> list[Field]:
    """Return fields the user can change, the common ones first."""
    return sorted((field for field in model.fields if not field.internal), key=lambda field: field.advanced)


def may_skip(field: Field) -> bool:
    """Whether the field by itself is optional."""
    return not field.required or field.default is not None


def choices_of(field: Field) -> Sequence[Any]:
    """Return the values to offer as buttons; empty if there are too many or none."""
    if field.many and field.type is not FieldType.CHOICE:
        return ()
    match field.type:
        case FieldType.CHOICE:
            return field.choices
        case FieldType.BOOLEAN:
            return (True, False)
        case FieldType.INTEGER if field.min is not None and field.max is not None:
            step = int(field.step or 1)
            numbers = range(int(field.min), int(field.max) + 1, step)
            return numbers if len(numbers) <= NUMBERS_OFFERED else ()
        case _:
            return ()


def read_list(field: Field, text: str) -> object:
    """Parse a typed list: one item per line, members of an object separated by bars; or JSON."""
    if field.type is not FieldType.OBJECTS:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith(("[", "{")):
        return text if text.lstrip().startswith("[") else f"[{text}]"
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.strip()]
    return [dict(zip(field.members, map(_scalar, row), strict=False)) for row in rows]


def _scalar(word: str) -> str | int:
    return int(word) if word.isdecimal() and len(word) < NUMBER_DIGITS else word


def broken_rule(model: Model, values: Mapping[str, Any]) -> Rule | None:
    """Return the first rule of the model that the values break."""
    whole: dict[str, object] = {field.name: field.default for field in model.fields if field.default is not None}
    whole |= {name: value for name, value in values.items() if value not in NOTHING}
    whole |= model.fixed
    for rule in model.rules:
        try:
            rule.check(whole)
        except InvalidInput:
            return rule
    return None
