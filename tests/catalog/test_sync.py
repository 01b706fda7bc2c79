"""The catalog is compared with the provider's public lists, over HTTP."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from genlock.catalog import load, overlay, sync
from genlock.domain.catalog import Catalog, Family, Status
from genlock.domain.errors import ProviderError

MODEL = "kling-2.6/text-to-video"
LABEL = "kling 2.6, text-to-video, without audio-5.0s"


@dataclass
class Site:
    """The provider's web site, saying what a test wants."""

    url: str = ""
    ids: Any = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    answer: Callable[[], web.Response] | None = None

    async def models(self, _: web.Request) -> web.Response:
        return self.answer() if self.answer else web.json_response({"code": 200, "msg": "success", "data": self.ids})

    async def prices(self, request: web.Request) -> web.Response:
        asked = await request.json()
        size, page = asked["pageSize"], asked["pageNum"]
        records = self.rows[(page - 1) * size : page * size]
        data = {"records": records, "total": len(self.rows), "pages": -(-len(self.rows) // size)}
        return web.json_response({"code": 200, "msg": "success", "data": data})


@pytest.fixture
async def site(catalog: Catalog) -> AsyncIterator[Site]:
    """It agrees with the catalog to begin with."""
    site = Site(ids=[model.id for model in catalog.models.values() if model.family is Family.MARKET])
    for model in catalog.models.values():
        for row in (*model.prices, *model.extras):
            site.rows.append(
                {"modelDescription": row.label, "creditPrice": f" {row.credits} ", "creditUnit": "per video"}
            )
    site.rows += [{"modelDescription": None}, {"modelDescription": "odd", "creditPrice": "on request"}]
    app = web.Application()
    app.router.add_get(sync.MODELS_PATH, site.models)
    app.router.add_post(sync.PRICES_PATH, site.prices)
    async with TestServer(app) as server:
        site.url = str(server.make_url("/"))
        yield site


def reprice(site: Site, label: str, credits_: str) -> None:
    for row in site.rows:
        if row["modelDescription"] == label:
            row["creditPrice"] = credits_


async def test_nothing_differs_at_first(site: Site, catalog: Catalog) -> None:
    assert not sync.diff(catalog, await sync.fetch(site.url))


async def test_new_gone_and_changed_are_told(site: Site, catalog: Catalog) -> None:
    site.ids.remove("z-image")
    site.ids.append("maker/brand-new")
    reprice(site, LABEL, "60.5")
    found = sync.diff(catalog, await sync.fetch(site.url))
    assert (found.new, found.gone) == (("maker/brand-new",), ("z-image",))
    assert found.changed == (sync.PriceChange(model=MODEL, label=LABEL, old=Decimal(55), new=Decimal("60.5")),)


async def test_labels_are_known_however_they_are_spaced(site: Site, catalog: Catalog) -> None:
    for row in site.rows:
        if row["modelDescription"]:
            row["modelDescription"] = (
                row["modelDescription"].upper().replace("(", "\N{FULLWIDTH LEFT PARENTHESIS}") + " "
            )
    assert not sync.diff(catalog, await sync.fetch(site.url))


async def test_a_price_that_left_the_list_is_told(site: Site, catalog: Catalog) -> None:
    site.rows = [row for row in site.rows if row["modelDescription"] != LABEL]
    assert sync.diff(catalog, await sync.fetch(site.url)).unlisted == ((MODEL, LABEL),)


async def test_an_alias_counts_as_listed(site: Site, catalog: Catalog) -> None:
    site.ids.remove("kling/ai-avatar-pro")
    site.ids.append("kling/ai-avatar-v1-pro")
    assert not sync.diff(catalog, await sync.fetch(site.url))


async def test_what_is_applied_makes_both_agree_and_can_be_undone(site: Site, catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"
    site.ids.remove("z-image")
    reprice(site, LABEL, "60.5")
    lists = await sync.fetch(site.url)
    overlay.write(path, overlay.written(path, sync.overlay(catalog, lists, "2026-11-15")))
    changed = load(path)
    assert changed.get("z-image").status is Status.PAUSED
    assert changed.get("z-image").reason == "gone from the provider's list on 2026-11-15"
    assert changed.get(MODEL).credits_from() == 60_500
    assert not sync.diff(changed, lists)

    site.ids.append("z-image")
    lists = await sync.fetch(site.url)
    assert sync.diff(changed, lists).back == ("z-image",)
    overlay.write(path, overlay.written(path, sync.overlay(catalog, lists, "2026-11-16")))
    assert load(path).get("z-image").status is Status.OFFERED


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda: web.json_response({"code": 4030, "msg": "Not here."}), "the provider refused its list: 200 Not here."),
        (lambda: web.Response(status=502, text="<html>"), "the provider's list cannot be read: "),
        (lambda: web.json_response([1]), "the provider refused its list: 200"),
        (lambda: web.json_response({"code": 200, "data": []}), "the provider's list of models is empty"),
        (lambda: web.json_response({"code": 200, "data": None}), "the provider's list of models is empty"),
    ],
    ids=["refused", "not JSON", "a list", "empty", "nothing"],
)
async def test_a_list_that_cannot_be_read_is_told_in_a_sentence(
    site: Site, answer: Callable[[], web.Response], said: str
) -> None:
    site.answer = answer
    with pytest.raises(ProviderError) as caught:
        await sync.fetch(site.url)
    assert said in str(caught.value)


async def test_nobody_there_is_told_in_a_sentence() -> None:
    with pytest.raises(ProviderError, match="the provider's list cannot be read: Cannot connect"):
        await sync.fetch("http://127.0.0.1:9")
