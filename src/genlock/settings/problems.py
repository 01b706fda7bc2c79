"""Sentences for operators about settings that are missing or wrong. None shows a value."""

from typing import Any

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo


def aliases(field: FieldInfo) -> list[str]:
    """Return the other names of a variable that a field declares."""
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [choice for choice in choices if isinstance(choice, str)]


def field_at_fault(kind: type[BaseModel], problem: Any) -> str | None:
    """Return the name of the field that a problem is about; None: it is about several."""
    place = str(problem["loc"][0]) if problem["loc"] else ""
    return next(
        (name for name, field in kind.model_fields.items() if place == name or place in aliases(field)),
        None,
    )


def explain(kind: type[BaseModel], problem: Any, prefix: str) -> str:
    """Return which variable is wrong, why, and what it means. Never its value."""
    name = field_at_fault(kind, problem)
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if name is None:
        return f"{prefix}{str(problem['loc'][0] if problem['loc'] else '').upper()} {message}"
    field, place = kind.model_fields[name], str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{prefix}{name.upper()} is not set" + (f": it is {field.description}" if field.description else "")
    rest = "" if field.is_required() else f" (default: {field.get_default()!s})"
    is_told = problem["type"] == "value_error" or not field.description
    meaning = "" if is_told else f"; it is {field.description}{rest}"
    return f"{place if place.isupper() else f'{prefix}{name.upper()}'} {message}{meaning}"
