"""Find messages and buttons by the key of their text, so that tests do not repeat the wording."""

import re
from collections.abc import Callable
from html import unescape
from typing import Protocol

from genlock.i18n.loader import Forms
from genlock.i18n.translator import Number, package_texts, plural_form


class HasText(Protocol):
    """A message, or the answer to a button."""

    @property
    def text(self) -> str | None: ...


_TAG = re.compile(r"</?(?:b|i|code)>")
_NAME = re.compile(r"\{(\w+)\}")


def text(key: str, /, language: str = "en", **values: object) -> str:
    """A text as the user reads it. Without some of its values: the part before the first that is missing."""
    template = _template(key, language, values.get("n"))
    missing = [match.start() for match in _NAME.finditer(template) if match[1] not in values]
    shown = template[: missing[0]] if missing else template
    filled = _NAME.sub(lambda match: _written(values[match[1]], language), shown)
    assert filled.strip(), f"{key} begins with a value: give it"
    return filled


def says(key: str, /, language: str = "en", **values: object) -> Callable[[HasText], bool]:
    """Whether a message has this text, with any values in the places of those that are not given."""

    def piece_pattern(piece: str) -> str:
        name = _NAME.fullmatch(piece)
        if name is None:
            return re.escape(piece)
        return re.escape(_written(values[name[1]], language)) if name[1] in values else ".+?"

    pieces = re.split(r"(\{\w+\})", _template(key, language, values.get("n")))
    pattern = "".join(map(piece_pattern, pieces))
    return lambda message: re.search(pattern, message.text or "", re.DOTALL) is not None


def _template(key: str, language: str, count: object) -> str:
    forms: Forms = package_texts().languages[language].texts[key]
    if not isinstance(forms, str):
        assert isinstance(count, Number), f"{key} has plural forms: give n"
        forms = forms[plural_form(package_texts().languages[language], count)]
    return unescape(_TAG.sub("", forms))


def _written(value: object, language: str) -> str:
    return package_texts().translator(language).number(value) if isinstance(value, Number) else str(value)
