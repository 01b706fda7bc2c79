"""A text that is missing or broken is named by the check, and never raises where it is used."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from genlock.i18n.check import find_problems, main
from genlock.i18n.loader import DEFAULT, Forms
from genlock.i18n.translator import Texts, package_texts


def changed(language: str, texts: Mapping[str, Forms], *, without: tuple[str, ...] = ()) -> Texts:
    """The texts of the package with a language changed."""
    languages = Texts.load().languages
    kept = {key: text for key, text in languages[language].texts.items() if key not in without}
    return Texts({**languages, language: replace(languages[language], texts={**kept, **texts})})


def test_every_language_of_the_package_is_complete() -> None:
    assert find_problems(package_texts()) == []
    assert len(package_texts().languages[DEFAULT].texts) > 550


@pytest.mark.usefixtures("_two_languages")
def test_a_missing_text_is_named() -> None:
    assert find_problems(changed("ru", {}, without=("order.caption",))) == ["ru: order.caption is missing"]
    assert "en: order.caption is used in the code and has no text" in find_problems(
        changed("en", {}, without=("order.caption",))
    )


@pytest.mark.usefixtures("_two_languages")
@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("order.caption", "{title}", "must have the names ['code', 'title'] in braces, has ['title']"),
        ("order.caption", "{title} {code", "cannot be read"),
        ("unit.credits", {"one": "{n}", "other": "{n}"}, "the plural forms few, many are missing"),
        ("menu.choose", "<b>x", "has tags that do not fit"),
        ("menu.choose", "<u>x</u>", "has tags that do not fit"),
        ("button.menu", "<b>x</b>", "has tags that do not fit"),
        ("menu.chose", "x", "English has no such text"),
    ],
)
def test_a_text_that_does_not_fit_is_named(key: str, text: Forms, problem: str) -> None:
    [found] = find_problems(changed("ru", {key: text}))

    assert found.startswith(f"ru: {key}: ")
    assert problem in found


def test_a_missing_or_broken_text_is_english() -> None:
    english = package_texts().translator("en")
    broken = changed("ru", {"menu.choose": "{nothing}", "button.menu": "{", "unit.days": {}}, without=("button.help",))
    russian = broken.translator("ru")

    assert russian.html("menu.choose") == english.html("menu.choose")
    assert russian.plain("button.menu") == english.plain("button.menu")
    assert russian.plain("button.help") == english.plain("button.help")
    assert russian.plain("unit.days", n=2) == "2\u00a0days"
    assert "button.help" in russian


def test_a_text_that_is_missing_everywhere_is_its_key() -> None:
    t = package_texts().translator("ru")

    assert t.html("menu.nothing_of_the_kind", name="<b>") == "menu.nothing_of_the_kind"
    assert t.plain("menu.hello") == "menu.hello", "it is not given the name it wants"
    assert t.plain("unit.credits") == "unit.credits", "it is not given its number"
    assert "menu.nothing_of_the_kind" not in t


@pytest.mark.usefixtures("_two_languages")
def test_the_check_names_problems_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    (tmp_path / "de").mkdir()
    (tmp_path / "de" / "language.toml").write_text('name = "Deutsch"\n', encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "de: order.caption is missing" in said.err
    assert "Deutsch (0)" in said.out
    (tmp_path / "de" / "language.toml").write_text("name", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    assert "language.toml" in capsys.readouterr().err
