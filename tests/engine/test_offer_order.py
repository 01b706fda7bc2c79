"""Which offer an order uses first: the operator's order, the cheapest, the quickest, and what is not used at all."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from genlock.catalog import load
from genlock.domain.catalog import Catalog
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.job import NewJob, State
from genlock.domain.offer import Preference
from genlock.engine.offer_order import OfferOrder
from genlock.stores.database import SqlDatabase
from genlock.stores.hourly_figures import BLOCK_JOBS
from tests.engine.manual_clock import ManualClock
from tests.engine.two_providers import FIRST, SECOND, TwoProviders
from tests.engine.world import World
from tests.stores.builders import end, running

#: models of the package, each with a rule of its own; the other models keep the order of the catalog
OVERLAY = """
[models."kling/v2-1-pro"]
offers = ["fal", "kie"]
[models."kling/v2-1-standard"]
offers = "cheapest"
[models."kling-2.6/image-to-video"]
offers = "quickest"
[models."google/nano-banana"]
offers = ["replicate"]
"""
CHEAPEST, QUICKEST = "kling/v2-1-standard", "kling-2.6/image-to-video"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    path: Path = tmp_path_factory.mktemp("overlay") / "catalog.toml"
    path.write_text(OVERLAY)
    return load(path)


def order(model: str, **values: object) -> NewJob:
    return NewJob(
        account_id=1, request_key="k", provider="kie", channel="chat", address="1", model=model,
        input=json.dumps(values), price=1, deadline_seconds=60.0,
    )  # fmt: skip


def tried(catalog: Catalog, job: NewJob, medians: dict[tuple[str, str], float] | None = None) -> Sequence[str]:
    return [offer.provider for offer in OfferOrder(CurrentCatalog(catalog), medians or {})(job)]


def test_each_model_has_the_order_that_the_operator_s_overlay_gives_it(catalog: Catalog) -> None:
    assert tried(catalog, order("kling/v2-1-pro")) == ["fal", "kie"]
    assert tried(catalog, order("kling/v2-1-master-text-to-video")) == ["kie", "fal"], "no rule: as the catalog lists"
    assert tried(catalog, order("not in the catalog")) == ["kie"], "the order's own provider"


def test_an_offer_that_is_not_verified_is_used_only_if_the_operator_lists_it(catalog: Catalog) -> None:
    unverified = [
        (model.id, offer.provider)
        for model in catalog.offered()
        for offer in model.offers
        if not offer.verified and (isinstance(model.preference, Preference) or not model.preference)
    ]
    assert len(unverified) > 5
    wrong = [(model, provider) for model, provider in unverified if provider in tried(catalog, order(model))]
    assert wrong == []
    assert tried(catalog, order("google/nano-banana")) == ["replicate"]


def test_the_cheapest_is_chosen_by_the_cost_of_these_values_and_an_unknown_cost_comes_last(catalog: Catalog) -> None:
    model = catalog.get(CHEAPEST)
    [fal] = model.more_offers
    rows = fal.prices
    for credits_, first in (("0.0001", "fal"), ("999", "kie")):
        priced = tuple(replace(row, credits=Decimal(credits_)) if "10" in row.when["duration"] else row for row in rows)
        models = {CHEAPEST: replace(model, more_offers=(replace(fal, prices=priced),))}
        changed = replace(catalog, models=models)
        assert tried(changed, order(CHEAPEST, duration="10"))[0] == first
    unknown = replace(catalog, models={CHEAPEST: replace(model, more_offers=(replace(fal, prices=()),))})
    assert tried(unknown, order(CHEAPEST, duration="10")) == ["kie", "fal"]
    assert tried(catalog, order(CHEAPEST, duration="7"))  # no row has this value: the order stays defined


def test_the_quickest_is_chosen_by_our_own_median_and_an_unmeasured_one_comes_last(catalog: Catalog) -> None:
    medians = {("kie", QUICKEST): 90.0, ("fal", QUICKEST): 30.0, ("kie", CHEAPEST): 1.0}
    assert tried(catalog, order(QUICKEST), medians) == ["fal", "kie"]
    assert tried(catalog, order(QUICKEST), {**medians, ("fal", QUICKEST): 120.0}) == ["kie", "fal"]
    assert tried(catalog, order(QUICKEST), {("fal", QUICKEST): 500.0}) == ["fal", "kie"]
    assert tried(catalog, order(QUICKEST)) == ["kie", "fal"], "nothing is measured: as the catalog lists"


async def test_the_medians_are_those_of_the_orders_that_succeeded_here(
    store: SqlDatabase, clock: ManualClock, catalog: Catalog
) -> None:
    job = None
    for provider, seconds in (("kie", 100.0), ("kie", 110.0), ("kie", 1.0), ("fal", 20.0)):
        job = await running(store, provider=provider, model=QUICKEST)
        clock.advance(seconds)
        assert (await end(store, job, State.SUCCEEDED)).job
    failed = await running(store, provider="fal", model=QUICKEST)
    assert (await end(store, failed, State.FAILED)).job
    role = await store.take_role("active", "me", 60.0)
    assert await store.fold_jobs((failed.id - 1) // BLOCK_JOBS, role)

    offers = OfferOrder(CurrentCatalog(catalog))
    await offers.read_medians(store)

    assert set(offers.medians) == {("kie", QUICKEST), ("fal", QUICKEST)}
    assert offers.medians["fal", QUICKEST] < 30.0
    assert offers.medians["kie", QUICKEST] > 80.0
    assert [offer.provider for offer in offers(order(QUICKEST))] == ["fal", "kie"]
    clock.advance(8 * 86400.0)
    await offers.read_medians(store)
    assert offers.medians == {}, "only the last days count"


async def test_a_provider_that_is_left_alone_is_passed_over_for_the_next_in_order(world: World) -> None:
    two = TwoProviders(world)
    two.offers = [SECOND, FIRST]
    assert (await two.order()).provider == "other"
    await two.engine.ctx.breakers.failed("other", "", "no_provider_credits")
    assert (await two.order()).provider == "fake"
    await world.store.reset_breakers("other")
    await two.engine.ctx.breakers.read()
    assert (await two.order()).provider == "other"
