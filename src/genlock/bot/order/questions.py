"""What an order asks of the user: the fields of a model, in the order in which a person thinks of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from genlock.bot.storefront.storefront import BEGINS_WITH
from genlock.domain.catalog import NOTHING, Category, Model, Rule
from genlock.domain.errors import InvalidInput
from genlock.domain.field import Field, FieldType

#: number fields with at most this many possible values get buttons
NUMBERS_OFFERED = 15
NUMBER_DIGITS = 10
PROMPT = "prompt"
#: kinds of fields that are asked before all others
ASKED_FIRST = (FieldType.TASK, FieldType.IMAGE, FieldType.VIDEO, FieldType.AUDIO)


def main_text(model: Model) -> Field | None:
    """Return the field that a text message fills."""
    texts = [one for one in model.fields if one.type is FieldType.TEXT and not one.many and not one.advanced]
    named = next((one for one in texts if one.name == PROMPT), None)
    return named or next((one for one in texts if one.required), None)


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
    if begins and any(one.type is begins and one.required for one in model.fields):
        begins = None
    about = next((one for one in model.fields if one.type is begins and not one.advanced), None) if begins else None
    asked = (
        one
        for one in model.fields
        if (one.required and not (one.advanced and one.default is not None))
        or (one.name == PROMPT and not one.advanced)
        or one is about
    )
    return sorted(asked, key=lambda one: ASKED_FIRST.index(one.type) if one.type in ASKED_FIRST else len(ASKED_FIRST))


def editable_fields(model: Model) -> list[Field]:
    """Return fields the user can change, the common ones first."""
    return sorted((one for one in model.fields if not one.internal), key=lambda one: one.advanced)


def may_skip(one: Field) -> bool:
    """Whether the field by itself is optional."""
    return not one.required or one.default is not None


def choices_of(one: Field) -> Sequence[Any]:
    """Return the values to offer as buttons; empty if there are too many or none."""
    if one.many and one.type is not FieldType.CHOICE:
        return ()
    match one.type:
        case FieldType.CHOICE:
            return one.choices
        case FieldType.BOOLEAN:
            return (True, False)
        case FieldType.INTEGER if one.min is not None and one.max is not None:
            step = int(one.step or 1)
            numbers = range(int(one.min), int(one.max) + 1, step)
            return numbers if len(numbers) <= NUMBERS_OFFERED else ()
        case _:
            return ()


def read_list(one: Field, text: str) -> object:
    """Parse a typed list: one item per line, members of an object separated by bars; or JSON."""
    if one.type is not FieldType.OBJECTS:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith(("[", "{")):
        return text if text.lstrip().startswith("[") else f"[{text}]"
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.strip()]
    return [dict(zip(one.members, map(_scalar, row), strict=False)) for row in rows]


def _scalar(word: str) -> str | int:
    return int(word) if word.isdecimal() and len(word) < NUMBER_DIGITS else word


def broken_rule(model: Model, values: Mapping[str, Any]) -> Rule | None:
    """Return the first rule of the model that the values break."""
    whole: dict[str, object] = {one.name: one.default for one in model.fields if one.default is not None}
    whole |= {name: value for name, value in values.items() if value not in NOTHING}
    whole |= model.fixed
    for rule in model.rules:
        try:
            rule.check(whole)
        except InvalidInput:
            return rule
    return None
