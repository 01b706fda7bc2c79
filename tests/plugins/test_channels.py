"""Channels of plug-ins: how their users order, what is served for them, and what becomes of broken ones."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from time import time

import pytest

from genlock.app.channels import channel_routes, make_channels, make_orders
from genlock.app.databases import open_store
from genlock.app.engine import make_engine
from genlock.app.plugins import PluginState, find_plugins
from genlock.bot.order.job_texts import JobTexts
from genlock.doctor.network_checks import NetworkChecks
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import Refusal
from genlock.domain.money import EntryKind
from genlock.engine.sell import Seller
from genlock.log import Silent
from genlock.ports import ChannelContext, OrderRefused, Orders
from genlock.settings import Settings
from tests.databases import new_sqlite
from tests.engine.fake_provider import FakeProvider
from tests.packaged import CATALOG
from tests.plugins.packages import Packages

SOURCE = """
import genlock.plugin as genlock

class Adapter(genlock.Channel):
    name = "pigeon"
    async def create_placeholder(self, job, index):
        return "1"
    async def put(self, job, index, part):
        return genlock.Placed(message="1")
    async def send(self, job, index, part):
        return genlock.Placed(message="1")
    async def notify(self, job):
        pass
    async def progress(self, job, fraction, until):
        pass
    async def close(self):
        pass

async def health():
    return genlock.ProviderHealth(ok=False, text="the pigeon is ill: feed it")

def web(orders):
    async def app(scope, receive, send):
        pass
    return app

def make(settings, context):
    adapter = Adapter()
    return genlock.ChannelBundle(channel=adapter, close=adapter.close, web=web, health=health)

plugin = genlock.ChannelPlugin(port=1, make=make)
"""
CONTEXT = ChannelContext(texts=JobTexts(CurrentCatalog(CATALOG)), now=time)
VALUES = {"prompt": "a fox", "aspect_ratio": "1:1"}


@pytest.fixture
async def orders(packages: Packages, tmp_path: Path) -> AsyncIterator[tuple[Orders, object]]:
    packages.add("pigeon-post", SOURCE, channels={"pigeon": "pigeon_post:plugin"})
    bundles = make_channels(find_plugins(), CONTEXT)
    store = await open_store(f"sqlite:///{new_sqlite(tmp_path)}", observer=Silent())
    provider = FakeProvider()
    provider.name = "kie"
    channels = {"pigeon": bundles["pigeon"].channel}
    engine = make_engine(store, Silent(), providers={"kie": provider}, channels=channels)
    seller = partial(Seller, engine=engine, store=store, catalog=CurrentCatalog(CATALOG))
    made = make_orders(Settings(running_max=2), bundles, lambda rules: seller(rules=rules), store)
    yield made["pigeon"], store
    await engine.stop()
    await store.close()


async def test_the_same_key_of_an_account_is_the_same_order(orders: tuple[Orders, object]) -> None:
    pigeon, store = orders
    account = await pigeon.account("ann")
    assert await pigeon.account("ann") == account != await pigeon.account("bob")
    await store.transfer(account, EntryKind.GRANT, 100_000, "grant")  # type: ignore[attr-defined]

    order = partial(pigeon.order, account, address="ann", model="z-image", values=VALUES)
    first = await order(key="1")

    assert (first.channel, first.address, first.provider) == ("pigeon", "ann", "kie")
    assert first.correlation_id
    assert (await order(key="1")).id == first.id != (await order(key="2")).id
    with pytest.raises(OrderRefused) as refused:
        await order(key="3")
    assert refused.value.reason == "too_many_running"


async def test_a_refused_order_says_why(orders: tuple[Orders, object]) -> None:
    pigeon, _ = orders
    account = await pigeon.account("ann")
    found = {}
    for model, values in (("z-image", VALUES), ("no/model", {}), ("z-image", {"aspect_ratio": "1:1"})):
        with pytest.raises(OrderRefused) as refused:
            await pigeon.order(account, key="1", address="ann", model=model, values=values)
        found[refused.value.reason] = str(refused.value)
    assert found.keys() == {"insufficient_balance", "unknown_model", "invalid_input"}
    assert "0 are available" in found["insufficient_balance"]
    for wrong in ("", "x" * 201, "a\0b"):
        with pytest.raises(Refusal):
            await pigeon.account(wrong)
        with pytest.raises(Refusal):
            await pigeon.order(account, key=wrong, address="ann", model="z-image", values=VALUES)


async def test_the_web_application_of_a_channel_is_served_and_the_doctor_asks_for_its_health(
    packages: Packages,
) -> None:
    packages.add("pigeon-post", SOURCE, channels={"pigeon": "pigeon_post:plugin"})
    plugins = find_plugins()
    bundles = make_channels(plugins, CONTEXT)

    [mount] = channel_routes(plugins, bundles, dict.fromkeys(bundles))  # type: ignore[arg-type]

    assert mount.path == "/channels/pigeon"
    checks = NetworkChecks(Settings(), plugins, Silent(), time)
    problem = await checks.channel_problem("pigeon", bundles["pigeon"])
    assert problem == "the channel pigeon: the pigeon is ill: feed it"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("async def put(", "async def puts(", "must define put"),
        ("return genlock.ChannelBundle(", "return dict(", "returned a dict"),
        ("    async def app(", "    raise OSError('no port')\n    async def app(", "web application cannot be made"),
        ("genlock.ChannelPlugin", "genlock.ProviderPlugin", "of the type ProviderPlugin, not ChannelPlugin"),
    ],
)
def test_a_broken_channel_is_left_out(packages: Packages, old: str, new: str, reason: str) -> None:
    assert old in SOURCE
    packages.add("pigeon-post", SOURCE.replace(old, new, 1), channels={"pigeon": "pigeon_post:plugin"})
    plugins = find_plugins()
    bundles = make_channels(plugins, CONTEXT)
    assert channel_routes(plugins, bundles, dict.fromkeys(bundles)) == []  # type: ignore[arg-type]
    [plugin] = plugins.installed
    assert plugin.state is PluginState.LEFT_OUT
    assert reason in plugin.reason
