"""The texts: complete in both languages, with the same places, and every form that the language has."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from string import Formatter

import pytest

from genlock.catalog import load
from genlock.domain.catalog import Category
from genlock.i18n import translator as tongue_module
from genlock.i18n.translator import LANGUAGES, Forms, Html, guess_language, plural, texts, translator

FORMS = {"en": {"one", "other"}, "ru": {"one", "few", "many", "other"}}
SOURCE = Path(tongue_module.__file__).parent


def forms(text: Forms) -> Mapping[str, str]:
    return {"": text} if isinstance(text, str) else text


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts() -> None:
    assert texts("en").keys() == texts("ru").keys()
    assert len(texts("en")) > 250


def test_both_languages_have_the_same_places() -> None:
    wrong = []
    for key in texts("en"):
        found = [places(text) for language in LANGUAGES for text in forms(texts(language)[key]).values()]
        if any(one != found[0] for one in found):
            wrong.append(f"{key}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_with_a_number_has_every_form_of_its_language(language: str) -> None:
    for key, text in texts(language).items():
        if not isinstance(text, str):
            assert text.keys() == FORMS[language], key
            assert all("{n}" in form for form in text.values()), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_html_of_every_text_is_whole(language: str) -> None:
    for key, text in texts(language).items():
        for form in forms(text).values():
            opened = re.findall(r"<(\w+)>", form)
            assert sorted(opened) == sorted(re.findall(r"</(\w+)>", form)), key
            assert set(opened) <= {"b", "i", "code"}, key


def test_buttons_and_toasts_are_plain() -> None:
    for language in LANGUAGES:
        for key, text in texts(language).items():
            if key.startswith(("button.", "unit.", "choice.", "command.")):
                assert all("<" not in form for form in forms(text).values()), key


def test_no_text_is_left_over() -> None:
    """A text that nothing says any more is a promise nobody keeps."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    made = ("about.", "example.", "failed.", "choice.", "command.", "refused.", "history.", "balance.", "admin.",
            "list.row_", "card.facts_", "member.")  # fmt: skip
    left = [key for key in texts("en") if f'"{key}"' not in code and not key.startswith((*made, "ask.", "invite."))]

    assert left == []


def test_every_category_is_described() -> None:
    for category in Category:
        assert f"about.{category.value}" in translator("en")


def test_every_input_of_every_offered_model_is_called_something_in_both_languages() -> None:
    nameless = [
        (model.id, one.name)
        for model in load().offered()
        for one in model.fields
        if not (one.about.get("en") and one.about.get("ru"))
    ]

    assert nameless == []


@pytest.mark.parametrize(
    ("number", "english", "russian"),
    [
        (0, "other", "many"), (1, "one", "one"), (2, "other", "few"), (4, "other", "few"), (5, "other", "many"),
        (11, "other", "many"), (12, "other", "many"), (21, "other", "one"), (22, "other", "few"),
        (111, "other", "many"), (112, "other", "many"), (121, "other", "one"), (Decimal("0.8"), "other", "other"),
    ],
)  # fmt: skip
def test_the_form_goes_with_the_number(number: int, english: str, russian: str) -> None:
    assert (plural("en", number), plural("ru", number)) == (english, russian)


def test_money_is_written_as_the_language_writes_it() -> None:
    assert [translator("en").credits(amount) for amount in (1000, 2000, 800, 1_234_500, 0)] == [
        "1 credit", "2 credits", "0.8 credits", "1,234.5 credits", "0 credits",
    ]  # fmt: skip
    assert [translator("ru").credits(amount) for amount in (1000, 2000, 5000, 800, 1_234_500)] == [
        "1 кредит", "2 кредита", "5 кредитов", "0,8 кредита", "1\N{NO-BREAK SPACE}234,5 кредита",
    ]  # fmt: skip


def test_times_are_said_as_people_say_them() -> None:
    at = datetime(2026, 11, 5, 9, 7, tzinfo=UTC)

    assert (translator("en").when(at), translator("ru").when(at)) == ("5 Nov, 09:07", "5 нояб., 09:07")
    assert [translator("en").lasting(seconds) for seconds in (0.2, 55, 150, 3600, 90_000)] == [
        "1 second", "55 seconds", "2 minutes", "60 minutes", "25 hours",
    ]  # fmt: skip
    assert [translator("ru").lasting(seconds) for seconds in (1, 2, 55, 300)] == [
        "1 сек", "2 сек", "55 сек", "5 мин",
    ]  # fmt: skip


def test_what_people_write_cannot_break_the_html() -> None:
    assert translator("en").html("menu.hello", name="<b>&", models=Html("<i>9</i>")).count("&lt;b&gt;&amp;") == 1
    assert "<b>" in translator("en").plain("list.row", title="<b>", price="1")


@pytest.mark.parametrize(("code", "language"), [("ru", "ru"), ("ru-RU", "ru"), ("en-GB", "en"),
                                                 ("de", "en"), (None, "en"), ("", "en")])  # fmt: skip
def test_the_first_guess_is_telegrams(code: str | None, language: str) -> None:
    assert guess_language(code) == language
