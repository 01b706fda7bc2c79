"""Texts in the user's language, with numbers, money, dates and lists as that language writes them.

A text that a language lacks is taken from English. No method raises for a text that is missing or broken everywhere:
it returns the key, because a wrong caption is better than a finished result that is not delivered.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import Literal

from babel import Locale
from babel.dates import format_datetime, format_skeleton
from babel.lists import format_list
from babel.numbers import parse_pattern

from genlock.domain.money import THOUSANDTHS
from genlock.domain.public_number import PublicNumbers
from genlock.i18n.loader import DEFAULT, Language, load_languages

MINUTE, HOUR, DAY = 60, 3600, 86400
#: up to three decimals, no trailing zeros
_NUMBER = parse_pattern("#,##0.###")
_CENTS = parse_pattern("#,##0.00")
_FINE = parse_pattern("#,##0.0000")
_TENTHS = parse_pattern("#,##0.0")
_ALIGNED = parse_pattern("#,##0.00#")

#: a screen has dozens of numbers, most of them the same as on the screen before
CACHE_MAX = 4096

Number = int | float | Decimal


class Html(str):
    """Text that is Telegram HTML already."""

    __slots__ = ()


class Translator:
    """One language. `html` makes Telegram HTML, `plain` the plain text of a button or a toast."""

    def __init__(self, language: Language, languages: Mapping[str, Language], numbers: PublicNumbers) -> None:
        self.language = language.code
        #: how orders and accounts are numbered for users
        self.numbers = numbers
        #: every language there is, for menus
        self.languages = languages
        self._settings = language
        self._locale = language.locale
        self._sources = (language,) if language.code == DEFAULT else (language, languages[DEFAULT])

    def __contains__(self, key: str) -> bool:
        return any(key in source.texts for source in self._sources)

    def html(self, key: str, /, **values: object) -> Html:
        """Return a text with its values filled in; values that are not Html are escaped."""
        return Html(self._fill(key, {name: self._escaped(value) for name, value in values.items()}, values))

    def plain(self, key: str, /, **values: object) -> str:
        return self._fill(key, {name: self._written(value) for name, value in values.items()}, values)

    def _fill(self, key: str, written: Mapping[str, str], values: Mapping[str, object]) -> str:
        for source in self._sources:
            try:
                return _form(source, key, values.get("n")).format_map(written)
            except (LookupError, ValueError, AttributeError):
                continue  # missing, or written with a name that this text is not given: `genlock.i18n.check` names it
        return key

    def _escaped(self, value: object) -> str:
        return value if isinstance(value, Html) else escape(self._written(value), quote=False)

    def _written(self, value: object) -> str:
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return self.number(value)
        return str(value)

    def number(self, value: Number) -> str:
        return _written_number(Decimal(str(value)), self._locale)

    def dollars(self, value: Decimal, *, fine: bool = False) -> str:
        """Return an amount of US dollars as the language writes it; a `fine` one has four decimals, not two."""
        sign = "\N{MINUS SIGN}" if value < 0 else ""
        amount = _written_money(abs(value), self._locale, fine=fine)
        return sign + self.plain("unit.dollars", amount=amount)

    def dollars_of_sum(self, *amounts: Decimal) -> list[str]:
        """Return amounts that a reader adds up, all with four decimals if one of them is less than a dollar."""
        fine = any(0 < abs(amount) < 1 for amount in amounts)
        return [self.dollars(amount, fine=fine) for amount in amounts]

    def percent(self, share: Decimal) -> str:
        """Return a share of 1 in percent, with a tenth below ten percent."""
        percent = share * 100
        digits = 0 if abs(percent) >= 10 or percent == int(percent) else 1  # noqa: PLR2004 - below ten, a tenth matters
        return self.plain("unit.percent", percent=self.number(round(percent, digits)))

    def aligned_percent(self, share: Decimal | float) -> str:
        """Return a share of 1 in percent for a column: always with a tenth."""
        return self.plain("unit.percent", percent=_TENTHS.apply(Decimal(str(share)) * 100, self._locale))

    def amount(self, thousandths: int) -> str:
        """Return an amount of credits, as a number."""
        return self.number(Decimal(thousandths) / THOUSANDTHS)

    def aligned_amount(self, thousandths: int) -> str:
        """Return an amount of credits for a column: two decimals even if they are 0; a third only if there is one."""
        written: str = _ALIGNED.apply(Decimal(thousandths) / THOUSANDTHS, self._locale)
        return written

    def credits(self, thousandths: int) -> str:
        """Return an amount of credits, with the noun."""
        return self.plain("unit.credits", n=Decimal(thousandths) / THOUSANDTHS)

    def from_credits(self, thousandths: int) -> str:
        """Return a lowest price, with the noun in the form that follows "from"."""
        return self.plain("unit.from_credits", n=Decimal(thousandths) / THOUSANDTHS)

    def duration(self, seconds: float) -> str:
        """Return a length of time in its largest fitting unit."""
        whole = max(1, round(seconds))
        if whole < MINUTE + MINUTE // 2:
            return self.plain("unit.seconds", n=whole)
        if whole < HOUR + HOUR // 2:
            return self.plain("unit.minutes", n=round(whole / MINUTE))
        if whole < DAY + DAY // 2:
            return self.plain("unit.hours", n=round(whole / HOUR))
        return self.plain("unit.days", n=round(whole / DAY))

    def day(self, at: datetime) -> str:
        """Return a day, UTC."""
        return self._formatted(at, self._settings.day, "MMMd")

    def date(self, at: datetime) -> str:
        """Return a day with its year, UTC."""
        return self._formatted(at, self._settings.date, "yMMMd")

    def day_and_time(self, at: datetime) -> str:
        return f"{self.day(at)}, {at.astimezone(UTC):%H:%M}"

    def day_and_second(self, at: datetime) -> str:
        return f"{self.day(at)}, {at.astimezone(UTC):%H:%M:%S}"

    def _formatted(self, at: datetime, pattern: str, skeleton: str) -> str:
        return _written_day(at.astimezone(UTC).date(), self._locale, pattern, skeleton)

    def list(self, items: Sequence[str], *, style: Literal["standard", "or"] = "standard") -> str:
        """Several things in a sentence: `a, b and c`, or with the style `or`, `a, b or c`."""
        return format_list(items, style=style, locale=self._locale)

    def file_size(self, size: int) -> str:
        return self.plain("unit.megabytes", n=Decimal(size * 10 // 1_000_000) / 10)

    def language_name(self, code: str) -> str:
        """Return the name of a language in this one."""
        return self._locale.languages.get(code) or code


def _form(source: Language, key: str, count: object) -> str:
    """Return the text, in the plural form of its number."""
    text = source.texts[key]
    if isinstance(text, str):
        return text
    form = plural_form(source, count) if isinstance(count, int | float | Decimal) else "other"
    return text.get(form) or text["other"]


def plural_form(language: Language, number: Number) -> str:
    """Return the CLDR plural category of a number, as it is written: 1.0 is written `1`."""
    return _plural_form(Decimal(str(number)), language.locale)


@lru_cache(CACHE_MAX)
def _plural_form(number: Decimal, locale: Locale) -> str:
    return locale.plural_form(int(number) if number == int(number) else number)


@lru_cache(CACHE_MAX)
def _written_money(amount: Decimal, locale: Locale, *, fine: bool) -> str:
    written: str = (_FINE if fine else _CENTS).apply(amount, locale)
    return written


@lru_cache(CACHE_MAX)
def _written_day(day: date, locale: Locale, pattern: str, skeleton: str) -> str:
    at = datetime.combine(day, time(), UTC)
    return format_datetime(at, pattern, locale=locale) if pattern else format_skeleton(skeleton, at, locale=locale)


@lru_cache(CACHE_MAX)
def _written_number(number: Decimal, locale: Locale) -> str:
    written: str = _NUMBER.apply(number, locale)
    return written


class Texts:
    """All texts in all languages, with the numbers of one bot."""

    def __init__(self, languages: Mapping[str, Language], numbers: PublicNumbers = PublicNumbers()) -> None:  # noqa: B008 - immutable
        self.languages = languages
        self.numbers = numbers
        self._translators = {code: Translator(language, languages, numbers) for code, language in languages.items()}

    @classmethod
    def load(cls, *more: Path) -> "Texts":
        """Return the languages of the package, and those whose folders are in `more`. Raises InvalidLanguage."""
        return cls(load_languages(*more))

    def numbered(self, numbers: PublicNumbers) -> "Texts":
        """Return the same texts with the order and account numbers of a bot."""
        return Texts(self.languages, numbers)

    def translator(self, language: str) -> Translator:
        """Return the translator of a language; English if there is no such language."""
        return self._translators.get(language) or self._translators[DEFAULT]

    def guess_language(self, telegram_code: str | None) -> str:
        """Return the language to begin with, from the language code of the user's Telegram client."""
        code = (telegram_code or "").lower()
        return self._served.get(code) or self._served.get(code.split("-")[0]) or DEFAULT

    @cached_property
    def _served(self) -> Mapping[str, str]:
        """Languages by the Telegram language codes they serve; a language's own code comes first."""
        additional = {code: language.code for language in self.languages.values() for code in language.telegram_codes}
        return additional | {code.lower(): code for code in self.languages}


@cache
def package_texts() -> Texts:
    """Return the texts that come with the package."""
    return Texts.load()


def translator(language: str) -> Translator:
    return package_texts().translator(language)
