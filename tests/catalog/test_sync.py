"""The comparison of the catalog with the providers' public lists, read over HTTP."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from genlock.catalog import load, overlay, sync
from genlock.domain.catalog import Catalog, Status
from genlock.domain.errors import ProviderError
from genlock.ports import PublicLists
from genlock.providers.kie import public_lists
from genlock.providers.kie.families import Family

MODEL = "kling-2.6/text-to-video"
LABEL = "kling 2.6, text-to-video, without audio-5.0s"


@dataclass
class Site:
    """A web site with lists that a test can change."""

    url: str = ""
    ids: Any = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    answer: Callable[[], web.Response] | None = None

    async def models(self, _: web.Request) -> web.Response:
        return self.answer() if self.answer else web.json_response({"code": 200, "msg": "success", "data": self.ids})

    async def prices(self, request: web.Request) -> web.Response:
        body = await request.json()
        size, page = body["pageSize"], body["pageNum"]
        records = self.rows[(page - 1) * size : page * size]
        data = {"records": records, "total": len(self.rows), "pages": -(-len(self.rows) // size)}
        return web.json_response({"code": 200, "msg": "success", "data": data})


@pytest.fixture
async def site(catalog: Catalog) -> AsyncIterator[Site]:
    """A site whose lists agree with the catalog at first."""
    site = Site(ids=[model.id for model in catalog.models.values() if model.family == Family.MARKET])
    for model in catalog.models.values():
        for row in (*model.prices, *model.extras):
            site.rows.append(
                {"modelDescription": row.label, "creditPrice": f" {row.credits} ", "creditUnit": "per video"}
            )
    site.rows += [{"modelDescription": None}, {"modelDescription": "odd", "creditPrice": "on request"}]
    app = web.Application()
    app.router.add_get(public_lists.MODELS_PATH, site.models)
    app.router.add_post(public_lists.PRICES_PATH, site.prices)
    async with TestServer(app) as server:
        site.url = str(server.make_url("/"))
        yield site


async def fetch(site: Site) -> dict[str, PublicLists]:
    return {"kie": await public_lists.fetch(site.url)}


def reprice(site: Site, label: str, credits_: str) -> None:
    for row in site.rows:
        if row["modelDescription"] == label:
            row["creditPrice"] = credits_


async def test_equal_lists_show_no_difference(site: Site, catalog: Catalog) -> None:
    assert not sync.diff(catalog, await fetch(site))


async def test_new_models_gone_models_and_changed_prices_are_reported(site: Site, catalog: Catalog) -> None:
    site.ids.remove("z-image")
    site.ids.append("maker/brand-new")
    reprice(site, LABEL, "60.5")
    found = sync.diff(catalog, await fetch(site))
    assert (found.new, found.gone) == (("maker/brand-new",), ("z-image",))
    assert found.changed == (sync.PriceChange(model=MODEL, label=LABEL, old=Decimal(55), new=Decimal("60.5")),)


async def test_labels_match_whatever_their_case_and_spacing(site: Site, catalog: Catalog) -> None:
    for row in site.rows:
        if row["modelDescription"]:
            row["modelDescription"] = (
                row["modelDescription"].upper().replace("(", "\N{FULLWIDTH LEFT PARENTHESIS}") + " "
            )
    assert not sync.diff(catalog, await fetch(site))


async def test_a_label_missing_from_the_price_list_is_reported(site: Site, catalog: Catalog) -> None:
    site.rows = [row for row in site.rows if row["modelDescription"] != LABEL]
    assert sync.diff(catalog, await fetch(site)).unlisted == ((MODEL, LABEL),)


async def test_a_price_that_is_a_thousand_or_one_is_not_compared(site: Site, catalog: Catalog) -> None:
    reprice(site, LABEL, "1,200")
    found = sync.diff(catalog, await fetch(site))
    assert (found.changed, found.unlisted) == ((), ((MODEL, LABEL),))


async def test_an_alias_counts_as_listed(site: Site, catalog: Catalog) -> None:
    site.ids.remove("kling/ai-avatar-pro")
    site.ids.append("kling/ai-avatar-v1-pro")
    assert not sync.diff(catalog, await fetch(site))


async def test_an_applied_sync_agrees_with_the_lists_and_can_be_undone(
    site: Site, catalog: Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "overlay.toml"
    site.ids.remove("z-image")
    reprice(site, LABEL, "60.5")
    lists = await fetch(site)
    overlay.write(path, overlay.written(path, sync.overlay(catalog, lists, "2026-11-15")))
    changed = load(path)
    assert changed.get("z-image").status is Status.PAUSED
    assert changed.get("z-image").reason == "gone from the provider's list on 2026-11-15"
    assert changed.get(MODEL).credits_from() == 60_500
    assert not sync.diff(changed, lists)

    site.ids.append("z-image")
    lists = await fetch(site)
    assert sync.diff(changed, lists).back == ("z-image",)
    overlay.write(path, overlay.written(path, sync.overlay(catalog, lists, "2026-11-16")))
    assert load(path).get("z-image").status is Status.OFFERED


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: web.json_response({"code": 4030, "msg": "Not here."}), "the provider refused its list: 200 Not here."),
        (lambda: web.Response(status=502, text="<html>"), "the provider's list cannot be read: "),
        (lambda: web.json_response([1]), "the provider refused its list: 200"),
        (lambda: web.json_response({"code": 200, "data": []}), "the provider's list of models is empty"),
        (lambda: web.json_response({"code": 200, "data": None}), "the provider's list of models is empty"),
    ],
    ids=["refused", "not JSON", "a list", "empty", "nothing"],
)
async def test_an_unreadable_list_is_named_in_the_error(
    site: Site, answer: Callable[[], web.Response], message: str
) -> None:
    site.answer = answer
    with pytest.raises(ProviderError) as caught:
        await fetch(site)
    assert message in str(caught.value)


async def test_a_refused_connection_is_named_in_the_error() -> None:
    with pytest.raises(ProviderError, match="the provider's list cannot be read: Cannot connect"):
        await public_lists.fetch("http://127.0.0.1:9")


# models of several providers


@pytest.fixture
def two_providers(catalog: Catalog) -> Catalog:
    """The catalog with one model moved to a provider that publishes no lists."""
    moved = replace(catalog.get("z-image"), provider="other")
    return replace(catalog, models={**catalog.models, "z-image": moved})


async def test_a_model_of_a_provider_without_lists_is_neither_gone_nor_repriced(
    site: Site, two_providers: Catalog
) -> None:
    site.ids.remove("z-image")
    for row in two_providers.get("z-image").prices:
        reprice(site, row.label or "", "99")
    assert not sync.diff(two_providers, await fetch(site))


async def test_an_applied_sync_pauses_no_model_of_another_provider(site: Site, two_providers: Catalog) -> None:
    site.ids = ["maker/something-else"]
    changes = sync.overlay(two_providers, await fetch(site), "2026-11-15")
    assert "z-image" not in changes
    assert changes["google/nano-banana"]["status"] == "paused"


async def test_each_model_is_compared_with_the_lists_of_its_own_provider(site: Site, two_providers: Catalog) -> None:
    lists = await fetch(site)
    lists["other"] = PublicLists(ids=frozenset({"other/one"}), prices={}, families=frozenset({""}))
    found = sync.diff(two_providers, lists)
    assert (found.new, found.gone) == (("other/one",), ("z-image",))
