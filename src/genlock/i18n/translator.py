"""What the bot says, in the person's language: the texts of `texts/LANGUAGE.toml`, numbers, money and times."""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from html import escape
from importlib.resources import files

from genlock.domain.money import THOUSANDTHS

LANGUAGES = ("en", "ru")
DEFAULT = "en"
#: whoever has set their Telegram to one of these reads Russian rather than English
READS_RUSSIAN = ("ru", "be", "kk", "ky", "tg", "tt", "uz")
PLURALS = frozenset({"one", "few", "many", "other"})
MINUTE, HOUR, DAY = 60, 3600, 86400

_POINT = {"en": (",", "."), "ru": ("\N{NO-BREAK SPACE}", ",")}
_MONTHS = {
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "ru": ("янв.", "февр.", "марта", "апр.", "мая", "июня", "июля", "авг.", "сент.", "окт.", "нояб.", "дек."),
}

Number = int | float | Decimal
Forms = str | Mapping[str, str]


class Html(str):
    """Text that is Telegram's HTML already."""

    __slots__ = ()


def guess_language(code: str | None) -> str:
    """The first guess, from what a person's Telegram says."""
    return "ru" if code and code.split("-")[0].lower() in READS_RUSSIAN else DEFAULT


def plural(language: str, number: Number) -> str:
    """Which form goes with a number."""
    if number != int(number):
        return "other"
    whole = abs(int(number))
    if language != "ru":
        return "one" if whole == 1 else "other"
    last, tens = whole % 10, whole % 100
    if last == 1 and tens != 11:  # noqa: PLR2004 - the rule of the language
        return "one"
    return "few" if last in (2, 3, 4) and tens not in (12, 13, 14) else "many"


def flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, Forms]:
    """`{"a": {"b": "text"}}` as `{"a.b": "text"}`; a table of plural forms stays together."""
    found: dict[str, Forms] = {}
    for name, value in table.items():
        if isinstance(value, str):
            found[prefix + name] = value
        elif isinstance(value, Mapping) and value.keys() <= PLURALS:
            found[prefix + name] = {form: str(text) for form, text in value.items()}
        elif isinstance(value, Mapping):
            found |= flatten(value, f"{prefix}{name}.")
    return found


@cache
def texts(language: str) -> Mapping[str, Forms]:
    file = files("genlock.i18n") / language / "bot.toml"
    return flatten(tomllib.loads(file.read_text(encoding="utf-8")))


class Translator:
    """One language. `say` makes Telegram's HTML, `tag` the plain text of a button or a toast."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else DEFAULT
        self._texts = texts(self.language)

    def __contains__(self, key: str) -> bool:
        return key in self._texts

    def html(self, key: str, /, **values: object) -> Html:
        """A text with its places filled; whatever is not Html is made harmless."""
        return Html(self._fill(key, {name: self._safe(value) for name, value in values.items()}, values))

    def plain(self, key: str, /, **values: object) -> str:
        return self._fill(key, {name: self._plain(value) for name, value in values.items()}, values)

    def _fill(self, key: str, shown: Mapping[str, str], values: Mapping[str, object]) -> str:
        text = self._texts[key]
        if not isinstance(text, str):
            count = values["n"]
            assert isinstance(count, int | float | Decimal), "a text with plural forms wants its number as `n`"
            text = text[plural(self.language, count)]
        return text.format_map(shown)

    def _safe(self, value: object) -> str:
        return value if isinstance(value, Html) else escape(self._plain(value), quote=False)

    def _plain(self, value: object) -> str:
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return self.number(value)
        return str(value)

    def number(self, value: Number) -> str:
        """Up to three decimals, none that say nothing."""
        thousands, point = _POINT[self.language]
        text = f"{Decimal(str(value)):,.3f}"
        whole, _, rest = text.partition(".")
        rest = rest.rstrip("0")
        return whole.replace(",", thousands) + (point + rest if rest else "")

    def amount(self, thousandths: int) -> str:
        """How many credits, as a number."""
        return self.number(Decimal(thousandths) / THOUSANDTHS)

    def credits(self, thousandths: int) -> str:
        """How many credits, with the word."""
        return self.plain("unit.credits", n=Decimal(thousandths) / THOUSANDTHS)

    def lasting(self, seconds: float) -> str:
        """A length of time, as people say it."""
        whole = max(1, round(seconds))
        if whole < MINUTE + MINUTE // 2:
            return self.plain("unit.seconds", n=whole)
        if whole < HOUR + HOUR // 2:
            return self.plain("unit.minutes", n=round(whole / MINUTE))
        if whole < DAY + DAY // 2:
            return self.plain("unit.hours", n=round(whole / HOUR))
        return self.plain("unit.days", n=round(whole / DAY))

    def when(self, at: datetime) -> str:
        """A day and a time, UTC."""
        at = at.astimezone(UTC)
        return f"{at.day} {_MONTHS[self.language][at.month - 1]}, {at:%H:%M}"

    def day(self, at: datetime) -> str:
        """A day, UTC."""
        at = at.astimezone(UTC)
        return f"{at.day} {_MONTHS[self.language][at.month - 1]}"

    def date(self, at: datetime) -> str:
        """A day with its year, UTC."""
        return f"{self.day(at)} {at.astimezone(UTC).year}"

    def moment(self, at: datetime) -> str:
        """A day and a time to the second, UTC."""
        return f"{self.day(at)}, {at.astimezone(UTC):%H:%M:%S}"

    def file_size(self, size: int) -> str:
        return self.plain("unit.megabytes", n=Decimal(size * 10 // 1_000_000) / 10)


@cache
def translator(language: str) -> Translator:
    return Translator(language)
