"""The entries of the menu and the words of users: complete in every language, checked at the start, overlaid."""

from pathlib import Path

import pytest

from genlock.catalog import load
from genlock.catalog.wishes import VOCABULARY, WISHES
from genlock.domain.catalog import Status
from genlock.domain.errors import InvalidCatalog
from genlock.i18n.translator import package_texts
from tests.catalog.model_files import GOOD, write
from tests.packaged import CATALOG

MENU = """
[paint]
icon = "🖌"
categories = ["text-to-image"]
popular = ["maker/one"]
"""
WORDS = """
fillers = { en = ["please"] }
[[intents]]
category = "text-to-image"
models = ["maker/one"]
words = { en = ["paint"] }
"""


def test_every_entry_has_its_texts_in_every_language() -> None:
    missing = []
    for language in package_texts().languages.values():
        for wish in CATALOG.wishes:
            keys = [f"wish.{wish.name}", f"wish.hint_{wish.name}"]
            keys += [f"wish.as_{wish.name}"] if wish.from_text else []
            keys += [f"try.{wish.name}", f"try.prompt_{wish.name}"] if wish.example else []
            missing += [f"{language.code}: {key}" for key in keys if key not in language.texts]
    assert missing == []


def test_models_that_the_menu_and_the_words_name_are_on_sale() -> None:
    named = [model_id for wish in CATALOG.wishes for model_id in wish.popular]
    named += [model_id for intent in CATALOG.vocabulary.intents for model_id in intent.models]
    assert [model_id for model_id in named if CATALOG.get(model_id).status is not Status.OFFERED] == []


def test_recommended_models_belong_to_their_entry() -> None:
    wrong = [
        (wish.name, model.id)
        for wish in CATALOG.wishes
        for model in map(CATALOG.get, wish.popular)
        if not {model.category, *model.also}.intersection(wish.categories)
    ]
    assert wrong == []


def test_a_phrase_asks_for_one_thing() -> None:
    phrases = [phrase for intent in CATALOG.vocabulary.intents for phrase in intent.phrases]
    assert sorted({phrase for phrase in phrases if phrases.count(phrase) > 1}) == []
    assert not set(CATALOG.vocabulary.fillers) & set(CATALOG.vocabulary.stops) - {"that"}
    assert all(phrase == phrase.lower().replace("ё", "е") for phrase in phrases), "as texts are compared"  # noqa: RUF001


def test_an_overlay_changes_the_recommended_models_hides_entries_and_writes_sentences(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.toml"
    overlay.write_text(
        '[wishes.draw]\npopular = ["nano-banana-pro"]\n[wishes.avatar]\nhidden = true\n'
        '[models."nano-banana-pro"]\ngood_at = { en = "Ours." }\n',
        encoding="utf-8",
    )
    catalog = load(overlay)
    draw = catalog.wish("draw")
    assert draw is not None
    assert draw.popular == ("nano-banana-pro",)
    assert catalog.wish("avatar") is None
    assert catalog.get("nano-banana-pro").good_at == {"en": "Ours."}


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (WISHES, '"maker/one"', '"maker/two"', "wishes.toml: paint: popular: there is no model 'maker/two'"),
        (WISHES, '"text-to-image"', '"nothing"', "wishes.toml: paint: categories must be one of"),
        (WISHES, "icon", "ikon", "wishes.toml: paint: icon is missing"),
        (VOCABULARY, '"maker/one"', '"maker/two"', "vocabulary.toml: intent 1: there is no model 'maker/two'"),
        (VOCABULARY, 'words = { en = ["paint"] }', "", "vocabulary.toml: words is missing"),
    ],
)
def test_a_mistake_in_the_menu_or_the_words_is_reported_with_its_place(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    write(tmp_path, (MENU if file == WISHES else WORDS).replace(old, new), file)
    with pytest.raises(InvalidCatalog) as caught:
        load(data=write(tmp_path, GOOD))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[wishes.nothing]\nhidden = true", "overlay.toml: wishes: nothing: there is no such entry of the menu"),
        ('[wishes.draw]\npopular = ["nothing"]', "overlay.toml: wishes: draw: there is no model 'nothing'"),
        (
            '[models."z-image"]\ngood_at = { en = "' + "x" * 121 + '" }',
            "overlay.toml: z-image: good_at must be 1 to 120 printable characters",
        ),
    ],
)
def test_a_mistake_in_the_overlay_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    overlay = tmp_path / "overlay.toml"
    overlay.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidCatalog) as caught:
        load(overlay)
    assert str(caught.value).startswith(message)
