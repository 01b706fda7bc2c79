"""The examples of the documentation work."""

import re
import tomllib
from pathlib import Path

from genlock.catalog import load
from genlock.catalog.next_steps import STEPS
from genlock.catalog.offers import OFFERS
from genlock.catalog.presets import PRESETS
from genlock.catalog.schema import ImproverTable
from genlock.catalog.wishes import WISHES
from genlock.domain.field import FieldType

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "catalog.md"


def examples(folder: Path) -> list[Path]:
    paths = []
    for number, text in enumerate(re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)):
        paths.append(folder / f"example{number}.toml")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def test_the_example_of_a_model_can_be_sold(tmp_path: Path) -> None:
    model_path, steps_path, presets_path, ability, wishes_path, offer_path, *overlays = examples(tmp_path)
    for path in (ability, *overlays):
        path.unlink()
    presets_path.rename(tmp_path / PRESETS)
    (tmp_path / OFFERS).mkdir()
    offer_path.rename(tmp_path / OFFERS / "fal.toml")
    steps_path.rename(tmp_path / STEPS)
    wishes_path.rename(tmp_path / WISHES)
    catalog = load(data=model_path.parent)
    model = catalog.get("maker/painter-2")
    assert [step.key for step in catalog.steps_for(FieldType.IMAGE)] == ["image_edit"]
    assert [wish.popular for wish in catalog.wishes] == [(model.id,)]
    assert ([style.key for style in catalog.styles], len(catalog.ideas)) == (["watercolour"], 1)
    clean = model.validate(
        {"prompt": "x", "resolution": "2K", "num_images": "3", "image_urls": ["https://a.b/c.png"] * 2}
    )
    assert model.credits(clean) == 20_000
    one = model.validate({"prompt": "x", "image_urls": ["https://a.b/c.png"]})
    assert model.offers[1].accepts(one)
    assert model.offers[1].input(one)["image_size"] == "square"
    assert not model.offers[1].accepts(clean), "this provider takes one picture"


def test_the_example_of_an_overlay_is_taken(tmp_path: Path) -> None:
    *_, overlay_path, _ = examples(tmp_path)
    changed = load(overlay_path)
    assert changed.get("z-image").title == "Quick picture"
    assert changed.get("veo3_fast").credits_from() == 65_000


def test_the_example_of_samples_is_taken(tmp_path: Path) -> None:
    *_, samples_path = examples(tmp_path)
    (tmp_path / "samples").mkdir()
    for name in ("z-image.jpg", "brian.mp3", "watercolour.jpg"):
        (tmp_path / "samples" / name).write_bytes(b"x")
    assert set(load(samples_path).samples.models) == {"z-image"}


def test_the_example_of_a_model_that_improves_prompts_is_taken() -> None:
    [ability] = re.findall(r"^improves = .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    table = tomllib.loads(ability)["improves"]
    assert ImproverTable.model_validate(table).field == "prompt"
