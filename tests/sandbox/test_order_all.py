"""The simulators of every provider sell what the catalog's offers order, under the provider's own names."""

from pathlib import Path

import pytest

from genlock.catalog import load
from genlock.domain.catalog import Catalog, Output
from genlock.domain.errors import SubmitRefused
from genlock.domain.offer import Offer
from genlock.sandbox.generations.from_catalog import simulated_models
from genlock.sandbox.order_all import SIMULATORS, order_all

MODEL = """
[models."maker/{name}"]
title = "{name}"
category = "text-to-image"
outputs = ["image"]
expected_seconds = 10
deadline_seconds = 60
count = "images"
prices = [{{ credits = 4 }}]
fields = [
    {{ name = "prompt", type = "text", required = true, max_length = 10 }},
    {{ name = "size", type = "choice", choices = ["1K", "2K"], default = "1K" }},
    {{ name = "images", type = "integer", min = 1, max = 4, default = 1 }},
]
"""
FAL = """
provider = "fal"
[offers."maker/one"]
model = "fal-ai/one"
inputs = { prompt = "text", size = "image_size", images = "num_images" }
values = { size = { "1K" = "square", "2K" = "square_hd" } }
fixed = { sync_mode = false }
prices = [{ credits = 0.01 }]
verified = true
"""
REPLICATE = """
provider = "replicate"
[offers."maker/one"]
model = "maker/shared"
inputs = { prompt = "prompt", size = "size", images = "n" }
prices = [{ credits = 0.01 }]
verified = false
[offers."maker/two"]
model = "maker/shared:VERSION"
inputs = { prompt = "prompt", size = "resolution", images = "n" }
prices = [{ credits = 0.02 }]
verified = true
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    (tmp_path / "offers").mkdir()
    (tmp_path / "maker.toml").write_text('vendor = "Maker"' + MODEL.format(name="one") + MODEL.format(name="two"))
    (tmp_path / "steps.toml").write_text("")
    (tmp_path / "offers/fal.toml").write_text(FAL)
    (tmp_path / "offers/replicate.toml").write_text(REPLICATE.replace("VERSION", "0" * 64))
    return load(data=tmp_path)


def offer_of(catalog: Catalog, model: str, provider: str) -> Offer:
    return next(offer for offer in catalog.get(model).offers if offer.provider == provider)


def test_a_simulated_model_has_the_providers_names_choices_and_price(catalog: Catalog) -> None:
    [one] = simulated_models(catalog, "fal").values()

    assert (one.id, one.output, one.count_input, one.expected_seconds) == ("fal-ai/one", Output.IMAGE, "num_images", 10)
    assert one.price_usd == pytest.approx(0.01)
    assert one.problems({"text": "a", "image_size": "square_hd", "sync_mode": False}) == []
    problems = dict(one.problems({"image_size": "2K", "sync_mode": True}))
    assert set(problems) == {"text", "image_size", "sync_mode"}
    assert simulated_models(catalog, "elsewhere") == {}


def test_models_that_are_one_model_at_the_provider_share_its_inputs(catalog: Catalog) -> None:
    [shared] = simulated_models(catalog, "replicate").values()

    assert shared.id == "maker/shared"
    assert {input_.name for input_ in shared.inputs} == {"prompt", "size", "resolution", "n"}
    assert [input_.name for input_ in shared.inputs if input_.required] == ["prompt"]


async def test_every_offer_is_ordered_from_its_provider_and_all_are_accepted(catalog: Catalog) -> None:
    assert {offer.provider for model in catalog.offered() for offer in model.offers} == set(SIMULATORS)
    assert [failure for failure in await order_all(catalog) if failure.provider != "kie"] == []


@pytest.mark.parametrize(
    ("provider", "model"), [("fal", "maker/one"), ("replicate", "maker/one"), ("replicate", "maker/two")]
)
async def test_an_order_that_the_provider_does_not_take_is_a_failure(
    catalog: Catalog, provider: str, model: str
) -> None:
    offer = offer_of(catalog, model, provider)
    async with SIMULATORS[provider](catalog) as send:
        await send(offer, offer.input(catalog.get(model).minimal_input()))
        with pytest.raises(SubmitRefused):
            await send(offer, {})
        with pytest.raises(SubmitRefused):
            await send(Offer(provider=provider, model="maker/unknown"), {"prompt": "a", "text": "a"})
