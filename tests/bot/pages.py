"""Find pages and buttons of the bot by the key of their text, so that tests do not copy texts."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import unescape
from typing import Any, Protocol

from genlock.i18n.translator import package_texts, translator

EN = translator("en")


class HasText(Protocol):
    """A message, or the answer to a tap."""

    @property
    def text(self) -> str | None: ...


class HasButtons(Protocol):
    @property
    def buttons(self) -> Sequence[Mapping[str, Any]]: ...


_TAG = re.compile(r"<[^>]+>")
_PLACE = re.compile(r"\{(\w*)[^}]*\}")


def page(*keys: str, language: str = "en", **values: object) -> Callable[[HasText], bool]:
    """Whether a message holds one of these texts; placeholders without a value match anything."""
    patterns = [text_pattern(key, language, **values) for key in keys]
    return lambda message: any(pattern.search(message.text or "") for pattern in patterns)


def label(*keys: str, language: str = "en", **values: object) -> re.Pattern[str]:
    """The pattern of a button's label."""
    return re.compile("|".join(text_pattern(key, language, **values).pattern for key in keys), re.DOTALL)


def heading_of(key: str, language: str = "en") -> str:
    """The first line of a text, without its tags and the symbol before it."""
    [form] = _forms(key, language)
    return _TAG.sub("", form).partition("\n")[0].partition(" ")[2]


def has_button(message: HasButtons, *keys: str, language: str = "en", **values: object) -> bool:
    """Whether a message has a button with one of these labels."""
    pattern = label(*keys, language=language, **values)
    return any(pattern.search(button["text"]) for button in message.buttons)


def text_pattern(key: str, /, language: str = "en", **values: object) -> re.Pattern[str]:
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
