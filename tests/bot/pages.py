"""Find pages and buttons of the bot by the key of their text, so that tests do not copy texts."""

import re
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Protocol

from genlock.i18n.translator import package_texts, translator

EN = translator("en")


class HasText(Protocol):
    """A message, or the answer to a tap."""

    @property
    def text(self) -> str | None: ...


_TAG = re.compile(r"<[^>]+>")
_PLACE = re.compile(r"\{(\w*)[^}]*\}")


def page(*keys: str, language: str = "en", **values: object) -> Callable[[HasText], bool]:
    """Whether a message holds one of these texts; placeholders without a value match anything."""
    patterns = [text_pattern(key, language, **values) for key in keys]
    return lambda message: any(pattern.search(message.text or "") for pattern in patterns)


def label(*keys: str, language: str = "en", **values: object) -> re.Pattern[str]:
    """The pattern of a button's label."""
    return re.compile("|".join(text_pattern(key, language, **values).pattern for key in keys), re.DOTALL)


def text_pattern(key: str, language: str = "en", **values: object) -> re.Pattern[str]:
    """A text as a pattern, without its HTML tags."""
    forms = _forms(key, language)
    return re.compile("|".join(_pattern(form, language, values) for form in forms), re.DOTALL)


@cache
def _forms(key: str, language: str) -> tuple[str, ...]:
    text = package_texts().languages[language].texts[key]
    return (text,) if isinstance(text, str) else tuple(text.values())


def _pattern(form: str, language: str, values: dict[str, object]) -> str:
    t = package_texts().translator(language)
    plain, pattern, place = unescape(_TAG.sub("", form)), "", 0
    for match in _PLACE.finditer(plain):
        pattern += re.escape(plain[place : match.start()])
        value = values.get(match[1])
        pattern += ".*?" if value is None else re.escape(value if isinstance(value, str) else t.number(value))  # type: ignore[arg-type]
        place = match.end()
    return pattern + re.escape(plain[place:])
