"""Models and offers of installed plug-ins: part of the catalog, or left out with their plug-in."""

from decimal import Decimal
from pathlib import Path

import pytest

from genlock.app.plugins import find_plugins
from genlock.app.providers import load_catalog
from genlock.catalog.extensions import CatalogExtension
from genlock.catalog.loader import _extend
from genlock.domain.catalog import Status
from genlock.domain.errors import InvalidCatalog
from genlock.settings import Settings
from tests.packaged import CATALOG as PACKAGED
from tests.plugins.packages import CATALOG, PLUGIN, SECRET, Packages, provider_source

MODEL = """
vendor = "Acme"
[models."acme/one"]
title = "One"
category = "text-to-image"
outputs = ["image"]
expected_seconds = 5
deadline_seconds = 60
prices = [{ credits = 2 }]
fields = [{ name = "prompt", type = "text", required = true, max_length = 100 }]
"""
OFFER = """
provider = "acme"
[offers."z-image"]
model = "acme-z"
inputs = { prompt = "text" }
ignored = ["aspect_ratio", "nsfw_checker"]
prices = [{ credits = 0.01 }]
verified = true
"""


def with_models(packages: Packages, model: str = MODEL, offer: str = OFFER) -> None:
    packages.add("acme-pack", provider_source("acme", "settings=Settings, make=make", CATALOG), providers=PLUGIN)
    offers = packages.folder / "acme_models" / "offers"
    offers.mkdir(parents=True)
    offers.parent.joinpath("models.toml").write_text(model)
    offers.joinpath("acme.toml").write_text(offer)


def test_the_models_and_offers_of_a_plug_in_are_in_the_catalog(packages: Packages) -> None:
    with_models(packages)
    catalog = load_catalog(Settings(), find_plugins())

    assert (catalog.get("acme/one").provider, catalog.provider_credit_usd["acme"]) == ("acme", Decimal(1))
    assert "acme" in [offer.provider for offer in catalog.get("z-image").offers]
    assert catalog.sold_through({"kie"}).get("acme/one").status is Status.HIDDEN
    assert catalog.sold_through({"acme"}).get("acme/one").status is Status.OFFERED


def test_a_plug_in_with_a_wrong_catalog_is_left_out_and_everything_else_is_sold(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENLOCK_ACME_KEY", SECRET)
    with_models(packages, offer=OFFER.replace('"acme"', '"kie"'))
    overlay = packages.folder / "overlay.toml"
    overlay.write_text(
        '[models."acme/one"]\nprice = 5\n[models."z-image"]\noffers = ["acme", "kie"]\n'
        '[models."google/nano-banana"]\noffers = ["acme"]\n[wishes.draw]\npopular = ["acme/one", "z-image"]\n'
    )
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(overlay))
    plugins = find_plugins()

    catalog = load_catalog(Settings(), plugins)

    [plugin] = plugins.installed
    assert "provider must be one of acme" in plugin.reason
    assert "acme/one" not in catalog.models
    assert catalog.get("z-image").preference == ("kie",)


WRONG_MODELS = {
    "must begin with 'acme/'": ('"acme/one"', '"one"'),
    "provider must be one of acme": ('vendor = "Acme"', 'vendor = "Acme"\nprovider = "kie"'),
    "unknown key titel": ("title", "titel"),
    "is not TOML": ("[models", "[models."),
}


def test_what_is_wrong_with_a_plug_ins_models_is_named(tmp_path: Path) -> None:
    extension = CatalogExtension(provider="acme", credit_usd=Decimal(1), folder=tmp_path)
    for wrong, (old, new) in WRONG_MODELS.items():
        tmp_path.joinpath("models.toml").write_text(MODEL.replace(old, new, 1))
        with pytest.raises(InvalidCatalog) as raised:
            _extend(PACKAGED.models, extension, {})
        assert wrong in str(raised.value)


def test_an_overlay_may_not_name_models_that_were_never_there(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = packages.folder / "overlay.toml"
    overlay.write_text('[models."acme/one"]\nprice = 5\n')
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(overlay))
    with pytest.raises(InvalidCatalog, match="there is no such model"):
        load_catalog(Settings(), find_plugins())
