"""The doctor's checks of providers and of the callbacks that they sign: every fault is named with its remedy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from genlock.app.plugins import find_plugins
from genlock.app.providers import make_bundles
from genlock.catalog import load
from genlock.doctor.check_failed import CheckFailed
from genlock.doctor.network_checks import NetworkChecks
from genlock.doctor.provider_checks import ProviderChecks
from genlock.domain.catalog import Catalog
from genlock.log import Silent
from genlock.ports import ProviderBundle
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.providers import MoreProviders, running_more_providers
from genlock.settings import Settings, read_settings

ALL = load()
RECRAFT = "fal-ai/recraft/v4.1/text-to-image"
#: a few models, so that each check is quick
CATALOG = replace(ALL, models={name: ALL.get(name) for name in ("recraft/v4.1-text-to-image", "kling/v2-1-pro")})


@pytest.fixture
async def sims(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MoreProviders]:
    async with running_more_providers(CATALOG) as sims:
        for name, value in sims.settings().items():
            monkeypatch.setenv(name, value)
        yield sims


@asynccontextmanager
async def bundles() -> AsyncIterator[dict[str, ProviderBundle]]:
    made = make_bundles(find_plugins(), CATALOG)
    try:
        yield made
    finally:
        for bundle in made.values():
            await bundle.close()


async def check(catalog: Catalog = CATALOG) -> str:
    async with bundles() as made:
        return await ProviderChecks(made, catalog, find_plugins()).check()


async def fault() -> str:
    with pytest.raises(CheckFailed) as failed:
        await check()
    return str(failed.value)


async def test_a_sound_installation_is_told_what_is_fine_and_what_the_providers_do_not_tell(
    sims: MoreProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await check()
    assert "fal: fal accepts the key" in found
    assert "set GENLOCK_FAL_ADMIN_KEY to see it here" in found
    assert "fal does not tell what an order cost" in found
    assert "all 2 models that it makes are there" in found
    assert "Replicate: Replicate accepts the token" in found
    assert "Replicate tells neither the credit left nor what an order cost" in found
    monkeypatch.setenv("GENLOCK_FAL_ADMIN_KEY", sims.fal.admin_key)
    sims.fal.service.credit_usd = 12.5
    assert "12.5 credits are left at fal" in await check()


@pytest.mark.usefixtures("sims")
async def test_a_provider_that_can_read_no_file_of_a_user_is_named() -> None:
    async with bundles() as made:
        checks = {
            "private storages only": {"fal": replace(made["fal"], upload=None), "replicate": made["replicate"]},
            "a public storage": {"fal": made["fal"], "replicate": replace(made["replicate"], upload=None)},
        }
        texts = {name: await ProviderChecks(those, CATALOG, find_plugins()).check() for name, those in checks.items()}
    named = texts["private storages only"]
    assert "fal: no storage for users' files, and those of the other providers are not public" in named
    assert "whose stored files are public: GENLOCK_KIE_API_KEY" in named
    assert "GENLOCK_REPLICATE" not in named, "it is configured, and does not help"
    assert "no storage for users' files" not in texts["a public storage"]


async def test_wrong_keys_of_both_providers_are_named_together(
    sims: MoreProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENLOCK_FAL_KEY", "wrong")
    monkeypatch.setenv("GENLOCK_REPLICATE_TOKEN", "wrong")
    found = await fault()
    assert "Set GENLOCK_FAL_KEY to a key of fal.ai/dashboard/keys" in found
    assert "Set GENLOCK_REPLICATE_TOKEN to one of replicate.com/account" in found
    assert "wrong" not in found
    assert sims.fal.url.partition("//")[2] not in found


async def test_a_key_that_may_not_see_the_credit_is_named(sims: MoreProviders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENLOCK_FAL_ADMIN_KEY", sims.fal.key)
    assert "Set GENLOCK_FAL_ADMIN_KEY to a key with the scope ADMIN" in await fault()
    monkeypatch.setenv("GENLOCK_FAL_ADMIN_KEY", sims.fal.admin_key)
    sims.fal.service.credit_usd = 0
    assert "fal accepts the key, but no credit is left there: top up the account" in await fault()


async def test_a_model_that_the_provider_does_not_have_is_named(sims: MoreProviders) -> None:
    sims.fal.service.schemas.edit({RECRAFT: {"gone": True}})
    found = await fault()
    assert f"fal does not have models that are on sale: {RECRAFT}." in found
    assert "`genlock models sync --apply` pauses them" in found


async def test_keys_of_callbacks_that_cannot_be_read_are_named(sims: MoreProviders) -> None:
    for simulator in (sims.fal, sims.replicate):
        simulator.faults.switch(Fault.KEYS_500)
    found = await fault()
    assert "fal's keys cannot be read (status 500), so callbacks cannot be verified" in found
    assert "Replicate's webhook secret cannot be read (status 500), so callbacks cannot be verified" in found


async def test_a_provider_that_does_not_answer_is_named_with_its_own_settings(sims: MoreProviders) -> None:
    for simulator in (sims.fal, sims.replicate):
        await simulator.listener.close()
    found = await fault()
    assert "fal does not answer" in found
    assert "check GENLOCK_FAL_KEY, GENLOCK_FAL_ADMIN_KEY" in found
    assert "check GENLOCK_REPLICATE_TOKEN, GENLOCK_REPLICATE_API_URL" in found


@pytest.mark.usefixtures("sims")
async def test_a_service_that_takes_unsigned_callbacks_or_does_not_know_the_provider_is_named() -> None:
    statuses = [401, 401, 200, 200, 404, 404]

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=statuses.pop(0))

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"queue_depth": 0})

    app = web.Application()
    app.router.add_get("/health", health)
    app.router.add_post("/callbacks/{tail:.*}", answer)
    said: list[str] = []
    async with TestServer(app) as server, bundles() as made:
        checks = NetworkChecks(read_settings(Settings), find_plugins(), Silent(), time)
        for _ in range(3):
            for bundle in made.values():
                try:
                    said.append(await checks.check_unsigned_callback(str(server.make_url("")).rstrip("/"), bundle))
                except CheckFailed as failed:
                    said.append(str(failed))
    assert said[:2] == ["fal: an unsigned callback was refused", "Replicate: an unsigned callback was refused"]
    assert "a callback of fal without a signature was answered 200 instead of 401" in said[2]
    assert "a callback of Replicate without a signature was answered 200" in said[3]
    assert "does not know fal, so its callbacks are lost" in said[4]
    assert "set GENLOCK_REPLICATE_TOKEN there, too, and restart it" in said[5]
