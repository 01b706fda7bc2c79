"""Reads a TOML file into its schema. Every mistake is reported as FILE: MODEL: PLACE: what is wrong."""

import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from genlock.catalog.schema import OTHER_LANGUAGES
from genlock.domain.errors import InvalidCatalog

Schema = TypeVar("Schema", bound=BaseModel)

#: what a value must be, by pydantic's type of error
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
#: what one item of a list is called in a message
_ITEMS = {"fields": "field", "prices": "price", "extras": "extra", "rules": "rule"}
#: tables whose keys are the names of models, or that only group other tables
_GROUPS = frozenset({"models", "synced", "offers"})


def parse(path: Path) -> dict[str, Any]:
    """Parse a TOML file, with fractions as exact decimals."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise InvalidCatalog(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidCatalog(f"{path.name}: is not TOML: {error}") from error


def check(schema: type[Schema], data: object, file: str) -> Schema:
    """Return the data as its schema. Raises InvalidCatalog with one line for each mistake."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise InvalidCatalog("\n".join(_explain(problem, data, file) for problem in problems)) from None


def _explain(problem: Mapping[str, Any], data: object, file: str) -> str:
    """Return FILE: MODEL: PLACE: KEY and what is wrong with it."""
    kind, location = problem["type"], problem["loc"]
    *places, key = _places(location, data) or [""]
    if kind == "missing":
        wrong = f"{key} is missing"
    elif kind == "extra_forbidden":
        wrong = f"unknown key {key}"
    elif kind in ("model_type", "model_attributes_type"):
        places, wrong = [*places, key], "must be a table"
    else:
        wrong = f"{key} {wrong_value(kind, problem)}"
    return ": ".join([file, *(place for place in places if place), wrong])


def wrong_value(kind: str, problem: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, from pydantic's error of this kind."""
    context = problem.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "enum":
        members = context["expected"].replace("'", "").replace(" or ", ", ")
        return f"must be one of {members}, not {problem['input']!r}"
    if kind == "greater_than_equal":
        return f"must be {context['ge']} or more"
    if kind == "less_than_equal":
        return f"must be {context['le']} or less"
    return f"must be {_EXPECTED.get(kind, problem['msg'])}, not {problem['input']!r}"


def _places(location: tuple[str | int, ...], data: object) -> list[str]:
    """Return the location in words: the model's id, the field's name or the row's number, and the key."""
    return list(_walk(location, data))


def _walk(location: tuple[str | int, ...], data: object) -> Iterator[str]:
    parent = ""
    for number, step in enumerate(location):
        if step == OTHER_LANGUAGES:
            continue  # not in the file: its keys stand beside the others
        data = _step_into(data, step)
        if isinstance(step, int):
            if parent in _ITEMS:
                name = data.get("name") if parent == "fields" and isinstance(data, dict) else None
                yield name if isinstance(name, str) else f"{_ITEMS[parent]} {step + 1}"
            elif number == len(location) - 1:
                yield parent  # a value of a list: the list's key names the place
            continue
        last = number == len(location) - 1
        is_list = isinstance(data, list) and not last
        if not is_list and not (step in _GROUPS and number == 0 and not last):
            yield step
        parent = step


def _step_into(data: object, step: str | int) -> object:
    if isinstance(data, dict):
        return data.get(step)
    if isinstance(data, list) and isinstance(step, int) and step < len(data):
        return data[step]
    return None
