"""`genlock models sync` for providers that publish a schema of each model: their simulators, over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typer.testing import CliRunner

from genlock.app.providers import fetch_public_lists
from genlock.catalog import load, overlay, sync
from genlock.catalog.offer_prices import WhyNotCompared
from genlock.catalog.offer_sync import OfferChange, OfferChangeKind
from genlock.catalog.takeover import StoredLists
from genlock.cli import app
from genlock.domain.catalog import Catalog, Status
from genlock.domain.errors import ProviderError
from genlock.ports import PublicLists
from genlock.ports.provider import ListsIncomplete
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.providers import MoreProviders, running_more_providers

KLING = "kling/v2-1-pro"
KLING_AT_FAL = "fal-ai/kling-video/v2.1/pro/image-to-video"
ONLY_FAL = "recraft/v4.1-text-to-image"
ONLY_FAL_AT_FAL = "fal-ai/recraft/v4.1/text-to-image"
BY_LENGTH = "hailuo-2.3/text-to-video-standard"
BY_LENGTH_AT_FAL = "fal-ai/minimax/hailuo-2.3/standard/text-to-video"
FLUX = "flux-kontext-pro"
FLUX_AT_REPLICATE = "black-forest-labs/flux-kontext-pro"
KIND = OfferChangeKind


@pytest.fixture
async def sims(monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> AsyncIterator[MoreProviders]:
    async with running_kie(catalog=catalog) as kie, running_more_providers(catalog) as sims:
        for name, value in (sims.settings() | {"GENLOCK_KIE_API_URL": kie.url}).items():
            monkeypatch.setenv(name, value)
        yield sims


async def lists(catalog: Catalog) -> dict[str, PublicLists]:
    return await fetch_public_lists(catalog)


async def publish(url: str, **schemas: Any) -> None:
    """Change what a simulator publishes, through its control address."""
    async with aiohttp.ClientSession() as http, http.post(f"{url}/_control", json=schemas) as answer:
        assert answer.status == 200, await answer.text()


async def changes(catalog: Catalog) -> list[OfferChange]:
    found = sync.diff(catalog, await lists(catalog))
    assert (found.new, found.gone, found.back, found.changed, found.unlisted) == ((), (), (), (), ())
    return list(found.offers)


def change(kind: OfferChangeKind, model: str = KLING, provider: str = "fal", **more: Any) -> OfferChange:
    return OfferChange(model=model, provider=provider, kind=kind, **more)


@pytest.mark.usefixtures("sims")
async def test_published_schemas_that_say_what_the_catalog_says_show_no_difference(catalog: Catalog) -> None:
    found = await lists(catalog)
    assert len(found["fal"].schemas) > 60
    assert len(found["replicate"].schemas) > 5
    assert not sync.diff(catalog, found)


async def test_inputs_that_were_added_removed_renamed_or_became_required_are_reported(
    sims: MoreProviders, catalog: Catalog
) -> None:
    edits = {
        KLING_AT_FAL: {
            "add": ["camera"],
            "require": ["licence", "negative_prompt"],
            "remove": ["cfg_scale"],
            "rename": {"image_url": "start_image_url"},
        }
    }
    await publish(sims.fal.url, schemas=edits)
    assert await changes(catalog) == [
        change(KIND.NEEDED, input="start_image_url"),
        change(KIND.NEEDED, input="negative_prompt"),
        change(KIND.NEEDED, input="licence"),
        change(KIND.REMOVED, input="image_url", renamed="start_image_url"),
        change(KIND.REMOVED, input="cfg_scale"),
        change(KIND.ADDED, input="camera"),
    ]


async def test_a_renamed_input_with_the_same_choices_is_recognised_whatever_its_name(
    sims: MoreProviders, catalog: Catalog
) -> None:
    await publish(sims.fal.url, schemas={KLING_AT_FAL: {"rename": {"duration": "clip"}}})
    [found] = await changes(catalog)
    assert found == change(KIND.REMOVED, input="duration", renamed="clip")


async def test_choices_that_differ_are_reported_in_both_directions_and_text_is_not_a_number(
    sims: MoreProviders, catalog: Catalog
) -> None:
    await publish(sims.fal.url, schemas={KLING_AT_FAL: {"choices": {"duration": ["5", "8", 10]}}})
    assert await changes(catalog) == [
        change(KIND.CHOICES_REMOVED, input="duration", values=('"10"',)),
        change(KIND.CHOICES_ADDED, input="duration", values=('"8"', "10")),
    ]


async def test_each_offer_is_judged_by_its_own_provider(sims: MoreProviders, catalog: Catalog) -> None:
    await publish(sims.replicate.url, schemas={FLUX_AT_REPLICATE: {"choices": {"output_format": ["png", "webp"]}}})
    assert await changes(catalog) == [
        change(KIND.CHOICES_REMOVED, FLUX, "replicate", input="output_format", values=('"jpg"',)),
        change(KIND.CHOICES_ADDED, FLUX, "replicate", input="output_format", values=('"webp"',)),
    ]


async def test_a_deprecated_model_and_one_without_a_schema_are_reported(sims: MoreProviders, catalog: Catalog) -> None:
    await publish(sims.fal.url, schemas={KLING_AT_FAL: {"deprecated": True}, ONLY_FAL_AT_FAL: {"unpublished": True}})
    assert await changes(catalog) == [change(KIND.DEPRECATED), change(KIND.UNPUBLISHED, ONLY_FAL)]


async def test_a_changed_price_of_a_model_is_reported_and_taken_over_by_apply(
    sims: MoreProviders, catalog: Catalog, tmp_path: Path
) -> None:
    await publish(sims.fal.url, schemas={ONLY_FAL_AT_FAL: {"unit_usd": 0.05}})
    found = await lists(catalog)
    assert sync.diff(catalog, found).changed == (
        sync.PriceChange(model=ONLY_FAL, label="always", old=Decimal("0.04"), new=Decimal("0.05")),
    )
    path = tmp_path / "overlay.toml"
    overlay.write(path, overlay.written(path, sync.overlay(catalog, found, "2026-11-16")))
    assert load(path).get(ONLY_FAL).credits_from() == 50
    assert not sync.diff(load(path), found)


async def test_a_published_price_is_compared_with_the_row_of_the_providers_defaults(
    sims: MoreProviders, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One price for a unit is published, without conditions: 6 seconds are the default, 10 cost twice as much."""
    found = {}
    for unit_usd in (0.28, 0.30, 0.56):
        await publish(sims.fal.url, schemas={BY_LENGTH_AT_FAL: {"unit_usd": unit_usd}})
        one = sync.diff(catalog, await lists(catalog))
        [rest] = [rows.rows for rows in one.not_compared if (rows.model, rows.provider) == (BY_LENGTH, "fal")]
        found[unit_usd] = [(each.label, each.old, each.new) for each in one.changed], rest
    assert found == {
        0.28: ([], ("duration = 10",)),
        0.30: ([("duration = 6", Decimal("0.28"), Decimal("0.3"))], ("duration = 10",)),
        0.56: ([], ("duration = 6",)),
    }
    monkeypatch.setenv("COLUMNS", "300")
    shown = await asyncio.to_thread(CliRunner().invoke, app, ["models", "sync"])
    assert "These prices were not compared" in shown.output
    assert "duration = 6" in shown.output
    assert "it publishes only one price of this model" in shown.output


@pytest.mark.usefixtures("sims")
async def test_prices_that_no_provider_publishes_are_named(catalog: Catalog) -> None:
    found = sync.diff(catalog, await lists(catalog))
    replicate = {offer.model for model in catalog.offered() for offer in model.offers if offer.provider == "replicate"}
    named = {
        offer.model
        for skipped in found.not_compared
        for offer in catalog.get(skipped.model).offers
        if offer.provider == skipped.provider == "replicate"
    }
    assert named == replicate, "Replicate publishes none"
    assert {skipped.why for skipped in found.not_compared if skipped.provider == "replicate"} == {
        WhyNotCompared.NO_PRICE
    }
    whole = [skipped for skipped in found.not_compared if skipped.provider == "fal"]
    compared = [
        (model.id, offer.model)
        for model in catalog.offered()
        for offer in model.offers
        if offer.provider == "fal"
        and not any(
            skipped.model == model.id and len(skipped.rows) == len({row.key for row in offer.prices})
            for skipped in whole
        )
    ]
    assert len(compared) > 60


async def test_a_changed_price_of_a_second_offer_is_reported_beside_its_provider(
    sims: MoreProviders, catalog: Catalog
) -> None:
    model, offer = next(
        (model, offer)
        for model in catalog.offered()
        for offer in model.more_offers
        if offer.provider == "fal" and sims.fal.service.models[offer.model].unit
    )
    await publish(sims.fal.url, schemas={offer.model: {"unit_usd": 7}})
    [found] = [found_change for found_change in await changes(catalog) if found_change.model == model.id]
    assert (found.kind, found.provider, found.new) == (KIND.PRICE, "fal", Decimal(7))


async def test_a_model_that_is_gone_from_its_only_provider_is_paused_and_comes_back(
    sims: MoreProviders, catalog: Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "overlay.toml"
    await publish(sims.fal.url, schemas={ONLY_FAL_AT_FAL: {"gone": True}})
    found = await lists(catalog)
    assert (sync.diff(catalog, found).gone, sync.diff(catalog, found).offers) == ((ONLY_FAL,), ())
    overlay.write(path, overlay.written(path, sync.overlay(catalog, found, "2026-11-16")))
    paused = load(path)
    assert paused.get(ONLY_FAL).status is Status.PAUSED
    assert not sync.diff(paused, found)

    await publish(sims.fal.url, schemas={})
    assert sync.diff(paused, await lists(catalog)).back == (ONLY_FAL,)


async def test_a_gone_offer_leaves_the_model_on_sale_through_the_other_provider(
    sims: MoreProviders, catalog: Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "overlay.toml"
    await publish(sims.fal.url, schemas={KLING_AT_FAL: {"gone": True}})
    found = await lists(catalog)
    diff = sync.diff(catalog, found)
    assert (diff.gone, diff.offers) == ((), (change(KIND.GONE),))
    overlay.write(path, overlay.written(path, sync.overlay(catalog, found, "2026-11-16")))
    left = load(path)
    assert [offer.provider for offer in left.get(KLING).used_offers()] == ["kie"]
    assert left.get(KLING).status is Status.OFFERED
    assert not sync.diff(left, found)


async def test_a_provider_that_is_down_is_named_and_the_others_are_compared(
    sims: MoreProviders, catalog: Catalog
) -> None:
    await publish(sims.replicate.url, schemas={FLUX_AT_REPLICATE: {"add": ["seed"]}})
    await sims.fal.listener.close()
    with pytest.raises(ListsIncomplete, match=r"fal: GET http.*/api/openapi/queue/openapi.json: ") as incomplete:
        await lists(catalog)
    assert set(incomplete.value.problems) == {"fal"}
    found = sync.diff(catalog, incomplete.value.lists)
    assert found.offers == (change(KIND.ADDED, FLUX, "replicate", input="seed"),)


async def test_schemas_that_have_all_moved_are_an_error_and_pause_nothing(
    sims: MoreProviders, catalog: Catalog
) -> None:
    everything = {model: {"gone": True} for model in sims.fal.service.models}
    await publish(sims.fal.url, schemas=everything)
    with pytest.raises(ProviderError, match=r"fal: none of .* models was found"):
        await lists(catalog)


@pytest.mark.usefixtures("sims")
async def test_a_refused_key_is_named(monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> None:
    monkeypatch.setenv("GENLOCK_REPLICATE_TOKEN", "wrong")
    with pytest.raises(ListsIncomplete, match=r"replicate: Replicate's schema of .* cannot be read: status 401"):
        await lists(catalog)


@pytest.mark.usefixtures("sims")
async def test_providers_without_a_key_are_not_asked(monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> None:
    monkeypatch.setenv("GENLOCK_KIE_API_KEY", "key")
    for name in ("GENLOCK_FAL_KEY", "GENLOCK_REPLICATE_TOKEN"):
        monkeypatch.delenv(name)
    assert set(await lists(catalog)) == {"kie"}


async def test_what_was_read_survives_the_dashboard_s_store(sims: MoreProviders, catalog: Catalog) -> None:
    edits = {KLING_AT_FAL: {"gone": True}, ONLY_FAL_AT_FAL: {"unit_usd": 0.5, "add": ["more"], "deprecated": True}}
    await publish(sims.fal.url, schemas=edits)
    found = await lists(catalog)
    stored = StoredLists.load(StoredLists(lists=found, at=datetime.now(UTC), author="a").dump())
    assert sync.diff(catalog, stored.lists) == sync.diff(catalog, found)


async def test_the_command_prints_every_difference_names_what_is_down_and_then_writes_nothing(
    sims: MoreProviders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "overlay.toml"
    monkeypatch.setenv("GENLOCK_CATALOG_OVERLAY", str(path))
    await publish(sims.fal.url, schemas={KLING_AT_FAL: {"rename": {"cfg_scale": "cfg"}}})

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["models", "sync", *arguments])
        return result.exit_code, result.output

    status, output = await asyncio.to_thread(run)
    assert status == 0
    assert "fal: it no longer takes the input cfg_scale; it may be cfg now" in output
    status, output = await asyncio.to_thread(run, "--json")
    assert [offer["kind"] for offer in json.loads(output)["offers"]] == ["removed"]

    await sims.replicate.listener.close()
    status, output = await asyncio.to_thread(run, "--apply")
    assert status == 1
    assert "replicate was not compared: GET http" in output
    assert "fal: it no longer takes the input cfg_scale" in output
    assert "Nothing was written" in output
    assert not path.exists()
