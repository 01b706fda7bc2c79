"""Offers: other providers that make the same model, read from their files and chosen by the overlay."""

from decimal import Decimal
from pathlib import Path

import pytest

from genlock.catalog import load
from genlock.catalog.check import check
from genlock.domain.catalog import Catalog, Status
from genlock.domain.errors import InvalidCatalog
from genlock.domain.offer import Preference
from tests.packaged import CATALOG

MODELS = """
vendor = "Maker"
[models."maker/one"]
title = "One"
category = "text-to-image"
outputs = ["image"]
expected_seconds = 10
deadline_seconds = 60
prices = [{ credits = 4 }]
fields = [
    { name = "prompt", type = "text", required = true, max_length = 10 },
    { name = "size", type = "choice", choices = ["1K", "2K"], default = "1K" },
    { name = "seed", type = "integer", min = 1, max = 4 },
    { name = "fast", type = "boolean", default = false },
]
"""
OFFER = """
provider = "fal"
[offers."maker/one"]
model = "fal-ai/one"
inputs = { prompt = "text", size = "image_size" }
values = { size = { "1K" = "square", "2K" = "square_hd" } }
ignored = ["seed"]
fixed = { num_images = 1 }
prices = [{ when = { size = "1K" }, credits = 0.01 }, { credits = 0.02 }]
verified = true
"""


def catalog_of(folder: Path, offer: str = OFFER, overlay: str | None = None) -> Catalog:
    (folder / "offers").mkdir(exist_ok=True)
    (folder / "maker.toml").write_text(MODELS)
    (folder / "steps.toml").write_text("")
    (folder / "offers/fal.toml").write_text(offer)
    if overlay is None:
        return load(data=folder)
    path = folder.parent / "overlay.toml"
    path.write_text(f'[models."maker/one"]\n{overlay}\n')
    return load(path, data=folder)


def test_a_model_has_the_offers_of_every_providers_file_and_keeps_its_own_price(tmp_path: Path) -> None:
    model = catalog_of(tmp_path).get("maker/one")

    assert [(offer.provider, offer.model) for offer in model.offers] == [("kie", "maker/one"), ("fal", "fal-ai/one")]
    values = model.validate({"prompt": "a", "size": "2K", "seed": 3})
    own, other = model.offers
    assert (model.credits(values), own.credits(values, {}), other.credits(values, {})) == (4000, 4000, 20)
    assert own.input(values) == values
    assert other.input(values) == {"text": "a", "image_size": "square_hd", "num_images": 1}
    assert other.credit_usd == Decimal(1)
    assert not other.accepts(values | {"fast": True}), "the provider has no such input"


def test_an_unverified_offer_is_used_only_if_the_operator_lists_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    unsure = OFFER.replace("verified = true", "verified = false")

    def used(overlay: str | None) -> list[str]:
        return [offer.provider for offer in catalog_of(data, unsure, overlay).get("maker/one").used_offers()]

    assert used(None) == ["kie"]
    assert used('offers = "cheapest"') == ["kie"]
    assert used('offers = ["fal", "kie"]') == ["fal", "kie"]


def test_the_overlay_chooses_the_order_of_the_offers_or_a_rule(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()

    assert catalog_of(data, overlay='offers = ["fal"]').get("maker/one").preference == ("fal",)
    model = catalog_of(data, overlay='offers = "quickest"').get("maker/one")
    assert model.preference is Preference.QUICKEST
    only = catalog_of(data, overlay='offers = ["fal"]')
    assert only.sold_through({"kie"}).offered() == []
    assert len(only.sold_through({"fal"}).offered()) == 1
    assert len(catalog_of(data).sold_through({"fal"}).offered()) == 1, "its own provider is not needed"


def test_a_model_that_needs_a_file_is_hidden_where_only_providers_make_it_that_can_read_none() -> None:
    edit, text = "bytedance/seedream-v4-edit", "bytedance/seedream-v4-text-to-image"
    sold = CATALOG.sold_through({"kie"}, without_files={"kie"}).models
    assert (sold[edit].status, sold[text].status) == (Status.HIDDEN, Status.OFFERED)
    assert "no configured provider stores files that the one that makes it can read" in sold[edit].reason
    others = {"kie", *(offer.provider for offer in CATALOG.get(edit).used_offers())}
    assert CATALOG.sold_through(others, without_files={"kie"}).models[edit].status is (
        Status.OFFERED if len(others) > 1 else Status.HIDDEN
    )


def test_an_order_larger_than_the_provider_takes_is_not_made_there(tmp_path: Path) -> None:
    offer = catalog_of(tmp_path, OFFER + "most = { prompt = 3 }\n").get("maker/one").offers[1]
    assert offer.accepts({"prompt": "abc"})
    assert not offer.accepts({"prompt": "abcd"})


MISTAKES = [
    ('provider = "fal"', 'provider = "nobody"', "provider must be one of"),
    ('[offers."maker/one"]', '[offers."maker/two"]', "there is no such model"),
    ('prompt = "text", ', "", "the smallest order needs prompt"),
    ('size = "image_size"', 'style = "image_size"', "inputs names 'style', which is not a field"),
    ('"2K" = "square_hd"', '"4K" = "square_hd"', "'4K' is not one of the field's choices"),
    ('ignored = ["seed"]', 'ignored = ["sed"]', "ignored names 'sed'"),
    ("verified = true", "most = { sed = 3 }", "most names 'sed'"),
    ("verified = true", "most = { seed = 0 }", "most"),
    ("num_images = 1", "image_size = 1", "image_size is set twice"),
    ("prices = [", "prices = [{ when = { size = 3 }, credits = 1 }, ", "3 is not one of the field's choices"),
    ('model = "fal-ai/one"', 'model = ""', "model"),
    ("verified = true", 'verified = "yes"', "verified must be true or false"),
    ("verified = true", "sure = true", "unknown key sure"),
    ('provider = "fal"', 'provider = "kie"', "kie offers this model already"),
]


@pytest.mark.parametrize(("good", "bad", "message"), MISTAKES)
def test_a_mistake_in_an_offer_is_reported_with_its_place(tmp_path: Path, good: str, bad: str, message: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    assert good in OFFER
    with pytest.raises(InvalidCatalog, match=r"^fal\.toml") as caught:
        catalog_of(data, OFFER.replace(good, bad))
    assert message in str(caught.value)


@pytest.mark.parametrize("wrong", ['"dearest"', "[]", '["fal", "fal"]', '["nobody"]', "3"])
def test_a_mistake_in_the_overlays_offers_is_reported(tmp_path: Path, wrong: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(InvalidCatalog, match="offers"):
        catalog_of(data, overlay=f"offers = {wrong}")


async def test_the_check_orders_every_offer_with_the_most_that_its_provider_takes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    sent: list[object] = []

    async def send(_: object, values: object) -> None:
        sent.append(values)

    assert await check(catalog_of(data), {"fal": send}) == []
    assert sent == [
        {"text": "A", "image_size": "square", "num_images": 1},
        {"text": "A cat in a", "image_size": "square_hd", "num_images": 1},
    ]
