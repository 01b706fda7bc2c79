"""Presets and samples: what the files may say, and what is wrong is named."""

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from genlock.catalog import load
from genlock.catalog.loader import DATA, load_providers, read
from genlock.catalog.presets import load_presets
from genlock.catalog.reader import parse
from genlock.catalog.schema import SharedFieldTable
from genlock.domain.catalog import Catalog, Category
from genlock.domain.errors import InvalidCatalog
from genlock.domain.presets import PromptImprover, SampleFiles


def overlaid(folder: Path, text: str) -> Catalog:
    path = folder / "overlay.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_samples_are_files_beside_the_overlay(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.mp3", "c.png"):
        (tmp_path / name).write_bytes(b"x")
    text = '[samples.models]\n"z-image" = "a.jpg"\n[samples.voices]\nv = "b.mp3"\n[samples.styles]\noil = "c.png"\n'
    catalog = overlaid(tmp_path, text)
    assert catalog.samples.models == {"z-image": str(tmp_path / "a.jpg")}
    assert catalog.samples.voices == {"v": str(tmp_path / "b.mp3")}
    assert next(style for style in catalog.styles if style.key == "oil").picture == str(tmp_path / "c.png")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('[samples.models]\n"z-image" = "none.jpg"', "there is no file"),
        ('[samples.models]\n"z-image" = "secret.txt"', "must end in"),
        ('[samples.models]\nnothing = "a.jpg"', "there is no model 'nothing'"),
        ('[samples.models]\n"z-image" = "empty.jpg"', "must have 1 byte"),
        ('[samples.voices]\nv = "a.jpg"', "must end in one of .mp3"),
        ('[samples.styles]\nnothing = "a.jpg"', "there is no style 'nothing'"),
        ("[samples]\nmodel = 1", "unknown key model"),
    ],
)
def test_a_wrong_sample_is_named(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "a.jpg").write_bytes(b"x")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "secret.txt").write_bytes(b"x")
    with pytest.raises(InvalidCatalog, match=wrong):
        overlaid(tmp_path, text)


PRESETS = """
[styles.oil]
en = "Oil"
ru = "Масло"
de = "Öl"
text = "Oil painting"
of = ["image"]
picture = "oil.jpg"

[[ideas]]
of = ["text-to-image"]
en = "A fox"
ru = "Лиса"
pt-BR = "Uma raposa"
"""


def test_presets_and_inputs_may_have_a_text_in_any_language(tmp_path: Path) -> None:
    path = tmp_path / "presets.toml"
    path.write_text(PRESETS, encoding="utf-8")
    [style], [idea] = load_presets(path, SampleFiles())
    assert style.name == {"en": "Oil", "ru": "Масло", "de": "Öl"}
    assert idea.text == {"en": "A fox", "ru": "Лиса", "pt-BR": "Uma raposa"}
    assert SharedFieldTable.model_validate({"en": "Seed", "de": "Startwert"}).texts() == {
        "en": "Seed",
        "de": "Startwert",
    }


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ('de = "Öl"', 'xx = "Oil"', "presets.toml: styles: oil: unknown key xx"),
        ('de = "Öl"', "de = 5", "presets.toml: styles: oil: de must be text, not 5"),
        ('en = "Oil"', "", "presets.toml: styles: oil: en is missing"),
    ],
)
def test_what_is_wrong_with_a_preset_is_named(tmp_path: Path, old: str, new: str, wrong: str) -> None:
    path = tmp_path / "presets.toml"
    path.write_text(PRESETS.replace(old, new), encoding="utf-8")
    with pytest.raises(InvalidCatalog) as raised:
        load_presets(path, SampleFiles())
    assert str(raised.value) == wrong


def test_ideas_are_in_both_languages_and_fit_their_models() -> None:
    catalog = load()
    for idea in catalog.ideas:
        assert set(idea.text) >= {"en", "ru"}
        for category in idea.of:
            for model in catalog.offered(Category(category)):
                prompt = model.field("prompt")
                assert prompt is None or all(len(text) <= (prompt.max_length or 200) for text in idea.text.values())


def model_file(improves: str) -> dict[str, object]:
    text = f"""
vendor = "Maker"
[models.writer]
title = "Writer"
category = "music"
outputs = ["text"]
expected_seconds = 5
deadline_seconds = 60
prices = [{{ credits = 1 }}]
fields = [
    {{ name = "prompt", type = "text", required = true, max_length = 500 }},
    {{ name = "size", type = "integer" }},
]
improves = {improves}
"""
    return tomllib.loads(text, parse_float=Decimal)


def improver(improves: str) -> PromptImprover | None:
    [model] = read(model_file(improves), "file.toml", {}, load_providers())
    return model.improves


def test_a_model_that_improves_prompts_says_how() -> None:
    found = improver('{ field = "prompt", of = ["music"], instruction = "Better: {prompt}!" }')
    assert found is not None
    assert found.request("a {b}") == "Better: a {b}!"
    assert found.prompt_of("Better: a {b}!") == "a {b}"
    assert found.prompt_of("another instruction") == ""


@pytest.mark.parametrize(
    ("improves", "wrong"),
    [
        ('{ field = "none" }', "none"),
        ('{ field = "size" }', "is not a text"),
        ('{ field = "prompt", instruction = "no mark" }', "must have {prompt} once"),
        ('{ field = "prompt", of = ["cooking"] }', "must be one of"),
    ],
)
def test_a_wrong_ability_is_named(improves: str, wrong: str) -> None:
    with pytest.raises(InvalidCatalog, match=wrong):
        improver(improves)


def test_the_presets_of_the_package_have_no_other_files() -> None:
    pictures = {path.name for path in (DATA / "styles").iterdir()}
    assert pictures == {table["picture"] for table in parse(DATA / "presets.toml")["styles"].values()}
