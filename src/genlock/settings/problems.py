"""Sentences for operators about settings that are missing or wrong. None shows a value."""

from typing import Any

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

#: what a value must be, by pydantic's type of error
_MUST_BE = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "literal_error": "{expected}",
    "enum": "{expected}",
}


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
    message = _wrong_value(problem)
    if name is None:
        return f"{prefix}{str(problem['loc'][0] if problem['loc'] else '').upper()} {message}"
    field, place = kind.model_fields[name], str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{prefix}{name.upper()} is not set" + (f": it is {field.description}" if field.description else "")
    rest = "" if field.is_required() else f"; default: {_shown(field.get_default())}"
    is_told = problem["type"] == "value_error" or not field.description
    meaning = "" if is_told else f" ({field.description}{rest})"
    return f"{place if place.isupper() else f'{prefix}{name.upper()}'} {message}{meaning}"


def _wrong_value(problem: Any) -> str:
    """Return what the value must be; pydantic's own words where this list has none."""
    must_be = _MUST_BE.get(problem["type"])
    if must_be is not None:
        limits = {name: _number(limit) for name, limit in problem.get("ctx", {}).items()}
        return f"must be {must_be.format(**limits)}"
    return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input ")


def _shown(default: Any) -> str:
    """Return a default as operators write it."""
    if default is None:
        return "not set"
    return str(default).lower() if isinstance(default, bool) else str(_number(default))


def _number(limit: Any) -> Any:
    """Return a limit as operators write it: 5 instead of 5.0."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit
