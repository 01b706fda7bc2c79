"""The overlay: an operator's file that changes models."""

import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import pytest

from genlock.catalog import load, overlay
from genlock.domain.catalog import Catalog, Status, price, price_from
from genlock.domain.errors import InvalidCatalog
from genlock.domain.tariff import PriceRow

MODEL = "kling-2.6/text-to-video"
LABEL = "kling 2.6, text-to-video, without audio-5.0s"


def overlaid(folder: Path, text: str) -> Catalog:
    path = folder / "overlay.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_a_model_is_hidden(tmp_path: Path, catalog: Catalog) -> None:
    changed = overlaid(tmp_path, f'[models."{MODEL}"]\nhidden = true\n')
    assert (changed.get(MODEL).status, changed.get(MODEL).reason) == (Status.HIDDEN, "hidden by the operator")
    assert len(changed.offered()) == len(catalog.offered()) - 1


def test_a_model_is_renamed_freed_and_given_more_time(tmp_path: Path) -> None:
    text = f'[models."{MODEL}"]\ntitle = "Films"\nfree = true\ndeadline_seconds = 9000\n'
    model = overlaid(tmp_path, text).get(MODEL)
    assert (model.title, model.free, model.deadline_seconds) == ("Films", True, 9000)
    assert price(model, model.minimal_input(), 2, 0.01) == price_from(model, 2, 0.01) == 0


def test_the_operator_s_own_price_applies_to_every_input(tmp_path: Path) -> None:
    model = overlaid(tmp_path, f'[models."{MODEL}"]\nprice = 12.5\n').get(MODEL)
    assert {price(model, values, 2, 0.01) for values in (model.minimal_input(), model.maximal_input())} == {12_500}


def test_the_provider_s_credits_of_one_row_are_changed(tmp_path: Path) -> None:
    model = overlaid(tmp_path, f'[models."{MODEL}"]\ncredits = {{ "{LABEL}" = 60 }}\n').get(MODEL)
    assert model.credits(model.validate({"prompt": "x", "duration": "5"})) == 60_000
    assert model.credits(model.validate({"prompt": "x", "duration": "10"})) == 110_000


def test_every_price_row_can_be_changed_with_or_without_a_label(tmp_path: Path, catalog: Catalog) -> None:
    rows = {model.id: (*model.prices, *model.extras) for model in catalog.models.values()}
    assert any(row.label is None for of_model in rows.values() for row in of_model)
    tables = [
        f"[models.{json.dumps(model_id)}.credits]\n" + "".join(f"{key} = 77\n" for key in _keys(of_model))
        for model_id, of_model in rows.items()
    ]
    changed = overlaid(tmp_path, "\n".join(tables))
    for model in changed.models.values():
        assert {row.credits for row in (*model.prices, *model.extras)} <= {77}


def _keys(rows: Iterable[PriceRow]) -> set[str]:
    return {json.dumps(row.key, ensure_ascii=False) for row in rows}


def test_a_row_without_a_label_is_named_by_its_conditions_and_its_measure() -> None:
    row = PriceRow(credits=Decimal(1), when={"size": ("1K", "2K")}, given=("image",), times="count")
    assert row.key == "size = 1K or 2K, image given, times count"
    assert PriceRow(credits=Decimal(1)).key == "always"
    assert PriceRow(credits=Decimal(1), when={"size": ("1K",)}, label="Maker, 1K").key == "Maker, 1K"


def test_a_paused_model_can_be_offered_again(tmp_path: Path) -> None:
    changed = overlaid(tmp_path, '[models."sora-2-text-to-video"]\nstatus = "offered"\n')
    assert "sora-2-text-to-video" in [model.id for model in changed.offered()]


def test_the_operator_s_table_wins_over_the_synced_one(tmp_path: Path) -> None:
    text = f'[models."{MODEL}"]\nstatus = "offered"\n[synced."{MODEL}"]\nstatus = "paused"\nreason = "gone"\n'
    assert overlaid(tmp_path, text).get(MODEL).status is Status.OFFERED


def test_a_synced_table_of_an_unknown_model_is_ignored(tmp_path: Path, catalog: Catalog) -> None:
    assert overlaid(tmp_path, '[synced."old/one"]\nstatus = "paused"\n').models == catalog.models


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[models."no/one"]\nfree = true', "overlay.toml: no/one: there is no such model"),
        (f'[models."{MODEL}"]\ncolour = 1', f"overlay.toml: {MODEL}: unknown key colour"),
        (f'[models."{MODEL}"]\nprice = "5"', f"overlay.toml: {MODEL}: price must be a number of 0 or more, not '5'"),
        (f'[models."{MODEL}"]\nfree = 1', f"overlay.toml: {MODEL}: free must be true or false, not 1"),
        (
            f'[models."{MODEL}"]\ncredits = {{ "nothing" = 1 }}',
            f"overlay.toml: {MODEL}: credits: there is no price row 'nothing'; this model has: kling 2.6",
        ),
        (
            '[models."seedream/5-flash-text-to-image"]\nstatus = "offered"',
            "overlay.toml: seedream/5-flash-text-to-image: is offered but has no price",
        ),
        ("[modells]", "overlay.toml: unknown key modells"),
        ("models = ", "overlay.toml: is not TOML: "),
    ],
)
def test_a_wrong_overlay_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidCatalog) as caught:
        overlaid(tmp_path, text)
    assert str(caught.value).startswith(message)


def test_a_missing_overlay_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.toml"
    with pytest.raises(InvalidCatalog) as caught:
        load(path)
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_a_sync_does_not_change_the_operator_s_text(tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"
    own = f'# my own\n[models."{MODEL}"]\ntitle = "Films"\n'
    path.write_text(own, encoding="utf-8")
    for credits_ in (60, 61):
        overlay.write(path, overlay.written(path, {MODEL: {"credits": {LABEL: credits_}}}))
    assert path.read_text(encoding="utf-8").startswith(own)
    model = load(path).get(MODEL)
    assert (model.title, model.credits_from()) == ("Films", 61_000)
