"""Reading tables strictly: a wrong or unknown key is an error that says where it stands."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar, cast

from genlock.domain.errors import InvalidCatalog

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

NAMES = {str: "text", int: "a whole number", bool: "true or false", dict: "a table", list: "a list"}


def parse(path: Path) -> dict[str, Any]:
    """A TOML file, fractions kept exact."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise InvalidCatalog(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidCatalog(f"{path.name}: is not TOML: {error}") from error


class Table:
    """One table of a file. Take every key it may have, then call `end`."""

    def __init__(self, data: object, where: str) -> None:
        self.where = where
        if not isinstance(data, dict):
            raise self.wrong("must be a table")
        self._left: dict[str, Any] = dict(data)

    def wrong(self, what: str) -> InvalidCatalog:
        return InvalidCatalog(f"{self.where}: {what}")

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def raw(self, key: str, default: object = None) -> Any:
        return self._left.pop(key, default)

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of a key. Without a default the key must be there."""
        value = self._left.pop(key, default)
        if value is None:
            raise self.wrong(f"{key} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"{key} must be {NAMES[kind]}, not {value!r}")
        return value

    def number(self, key: str) -> int | float | None:
        value = self._left.pop(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self.wrong(f"{key} must be a number, not {value!r}")
        return value if isinstance(value, int) else float(value)

    def amount(self, key: str) -> Decimal:
        value = self._left.pop(key, None)
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or value < 0:
            raise self.wrong(f"{key} must be a number of 0 or more, not {value!r}")
        return Decimal(value)

    def words(self, key: str) -> tuple[str, ...]:
        value = self.take(key, list, [])
        if not all(isinstance(item, str) for item in value):
            raise self.wrong(f"{key} must be a list of texts")
        return tuple(value)

    def texts(self, key: str) -> dict[str, str]:
        value = self.take(key, dict, {})
        if not all(isinstance(text, str) for text in value.values()):
            raise self.wrong(f"{key} must be a table of texts")
        return cast("dict[str, str]", value)

    def all_texts(self) -> dict[str, str]:
        """The whole table, which has texts only."""
        if not all(isinstance(text, str) for text in self._left.values()):
            raise self.wrong("a label must be a text, or a table of language = text")
        return cast("dict[str, str]", self._left)

    def tables(self, key: str, name: str) -> list["Table"]:
        items = self.take(key, list, [])
        return [Table(item, f"{self.where}: {name} {number}") for number, item in enumerate(items, 1)]

    def member(self, key: str, kind: type[E], default: E | None = None) -> E:
        word = str(self.take(key, str, default))
        try:
            return kind(word)
        except ValueError:
            raise self.wrong(f"{key} must be one of {', '.join(kind)}, not {word!r}") from None

    def members(self, key: str, kind: type[E]) -> tuple[E, ...]:
        words = self.words(key)
        try:
            return tuple(kind(word) for word in words)
        except ValueError:
            raise self.wrong(f"{key} must be of {', '.join(kind)}, not {', '.join(words)}") from None

    def end(self) -> None:
        if self._left:
            raise self.wrong(f"unknown key {', '.join(sorted(self._left))}")


def plain(value: object) -> object:
    """A value as the provider takes it: fractions as floats, tables and lists all through."""
    match value:
        case Decimal():
            return float(value)
        case list():
            return [plain(item) for item in value]
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value
