"""Read the texts of every language from `i18n/<language>/*.toml`. A language is one folder with a `language.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from babel import Locale, UnknownLocaleError

#: the language that every missing text falls back to
DEFAULT = "en"
SETTINGS_FILE = "language.toml"
#: prefix of the keys of title endings
TITLE_KEYS = "title."
PLURAL_FORMS = frozenset({"zero", "one", "two", "few", "many", "other"})

#: a text, or its plural forms by CLDR category
Forms = str | Mapping[str, str]


class InvalidLanguage(ValueError):
    """A language folder cannot be read; the message names the file."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """One language: how it is called, which Telegram language codes it serves, and its texts by key."""

    code: str
    #: in the language itself, for the language menu
    name: str
    flag: str = ""
    #: Telegram language codes served besides `code`
    telegram_codes: tuple[str, ...] = ()
    #: Babel date patterns; empty: the usual order of the language
    day: str = ""
    date: str = ""
    texts: Mapping[str, Forms]

    @cached_property
    def title_endings(self) -> Mapping[str, str]:
        """The endings of models' titles by key, such as `from an image`."""
        return {key: text for key, text in self.texts.items() if key.startswith(TITLE_KEYS) and isinstance(text, str)}

    @property
    def locale(self) -> Locale:
        return Locale.parse(self.code, sep="-")


def load_languages(*more: Path) -> Mapping[str, Language]:
    """All languages, the default first. A folder in `more` adds a language, or replaces texts of one that exists."""
    found: dict[str, Language] = {}
    for root in (files("genlock.i18n"), *more):
        for folder in _language_folders(root):
            found[folder.name] = _read_language(folder, found.get(folder.name))
    if DEFAULT not in found:
        raise InvalidLanguage(f"the texts of the default language `{DEFAULT}` are missing")
    return {code: found[code] for code in sorted(found, key=lambda code: (code != DEFAULT, code))}


def _language_folders(root: Traversable) -> Iterator[Traversable]:
    for folder in root.iterdir():
        if folder.is_dir() and any(file.name.endswith(".toml") for file in folder.iterdir()):
            yield folder


def _read_language(folder: Traversable, known: Language | None) -> Language:
    texts: dict[str, Forms] = dict(known.texts) if known else {}
    settings: dict[str, Any] | None = None
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name == SETTINGS_FILE:
            settings = _parse(file)
        elif file.name.endswith(".toml"):
            texts |= flatten(_parse(file))
    if settings is not None:
        return _make_language(folder, settings, texts)
    if known is not None:
        return Language(**{**vars(known), "texts": texts})
    raise InvalidLanguage(f"{folder / SETTINGS_FILE} is missing: it names the language")


def _make_language(folder: Traversable, settings: Mapping[str, Any], texts: Mapping[str, Forms]) -> Language:
    where = folder / SETTINGS_FILE
    try:
        codes = tuple(settings.get("telegram_codes", ()))
        rest = {name: value for name, value in settings.items() if name != "telegram_codes"}
        language = Language(code=folder.name, telegram_codes=codes, texts=texts, **rest)
        _ = language.locale
    except TypeError as error:
        raise InvalidLanguage(f"{where}: {error}") from None
    except (UnknownLocaleError, ValueError):
        raise InvalidLanguage(f"{where}: {folder.name!r} is not a language code that Babel knows") from None
    return language


def _parse(file: Traversable) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidLanguage(f"{file}: {error}") from None


def flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, Forms]:
    """`{"a": {"b": "text"}}` as `{"a.b": "text"}`; a table of plural forms stays together."""
    found: dict[str, Forms] = {}
    for name, value in table.items():
        if isinstance(value, str):
            found[prefix + name] = value
        elif isinstance(value, Mapping) and value.keys() <= PLURAL_FORMS:
            found[prefix + name] = {form: str(text) for form, text in value.items()}
        elif isinstance(value, Mapping):
            found |= flatten(value, f"{prefix}{name}.")
    return found
