"""Phrases that read like a translation were replaced, in the bot, the catalog and the command line, and stay away."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import genlock
from genlock.i18n.translator import package_texts

PHRASES = tomllib.loads(Path(__file__).with_name("replaced_phrases.toml").read_text(encoding="utf-8"))


def _texts(found: object) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, Mapping):
        for text in found.values():
            yield from _texts(text)


def _found(phrases: Sequence[str], texts: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{where}: {phrase!r}" for where, text in texts for phrase in phrases if phrase in text]


def test_replaced_phrases_do_not_come_back_to_the_chats() -> None:
    for language, phrases in (("ru", PHRASES["ru"]), ("en", [*PHRASES["en"], *PHRASES["en_chat"]])):
        texts = package_texts().languages[language].texts
        assert _found(phrases, [(key, text) for key, forms in texts.items() for text in _texts(forms)]) == []


def test_replaced_phrases_do_not_come_back_to_the_catalog_and_the_command_line() -> None:
    data = [file for file in (files("genlock.catalog") / "data").iterdir() if file.name.endswith(".toml")]
    commands = (Path(genlock.__file__).parent / "cli").rglob("*.py")
    texts = [(file.name, file.read_text(encoding="utf-8")) for file in (*data, *commands)]

    assert _found([*PHRASES["ru"], *PHRASES["en"]], texts) == []


def test_numbers_in_russian_have_a_decimal_comma_and_stay_on_the_line_of_their_unit() -> None:
    wrong = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])|\d (?:\d{3}\b|сек|мин|МБ|кредит|%|\$)")
    texts = package_texts().languages["ru"].texts
    assert [key for key, forms in texts.items() for text in _texts(forms) if wrong.search(text)] == []
