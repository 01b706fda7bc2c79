"""Makes the channels of installed plug-ins, and how their users order."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from time import time
from typing import Any

from starlette.routing import Mount

from genlock.app.plugin_checks import check_channel, close_plugin
from genlock.app.plugins import Plugins
from genlock.domain.errors import Refusal
from genlock.domain.job import Job
from genlock.domain.money import write_amount
from genlock.engine.periodic import PeriodicTask
from genlock.engine.sell import NotSold, NotSoldReason, Order, SaleRules, Seller
from genlock.entry_points import PluginKind
from genlock.ports import (
    AccountStore,
    ChannelBundle,
    ChannelContext,
    ChannelPlugin,
    MessageTexts,
    Observer,
    OrderRefused,
    Orders,
)
from genlock.settings import Settings

#: between the end of a channel's `receive` and its next start
RECEIVE_SECONDS = 5.0
_USER_LENGTH_MAX, _KEY_LENGTH_MAX, _ADDRESS_LENGTH_MAX = 200, 200, 4000
_REFUSALS = {
    NotSoldReason.UNKNOWN_MODEL: "this model is not on sale",
    NotSoldReason.PROVIDER_NOT_CONFIGURED: "this model is not on sale",
    NotSoldReason.TOO_MANY_RUNNING: "too many orders of this account are running",
    NotSoldReason.TOO_MANY_PER_MINUTE: "this account orders too often",
    NotSoldReason.TOO_MANY_PER_HOUR: "this account orders too often",
}


def make_channels(plugins: Plugins, context: ChannelContext) -> dict[str, ChannelBundle]:
    """Return the bundles of the channels that can be used, by name. A plug-in that cannot make its own is left out."""
    bundles = {}
    for plugin in plugins.usable(PluginKind.CHANNEL):
        assert isinstance(plugin.declared, ChannelPlugin)
        try:
            bundle = plugin.declared.make(plugin.settings, context)
            check_channel(bundle, plugin.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the package does
            plugin.fail("it cannot be made", error)
        else:
            bundles[plugin.name] = bundle
    return bundles


def open_channels(
    settings: Settings, plugins: Plugins, texts: MessageTexts, observer: Observer, closing: AsyncExitStack
) -> dict[str, ChannelBundle]:
    bundles = make_channels(plugins, ChannelContext(texts=texts, now=time, public_url=settings.public_url))
    for name, bundle in bundles.items():
        closing.push_async_callback(close_plugin, name, bundle.close, observer)
    return bundles


class ChannelOrders:
    """The orders of one channel's users, at the same prices and limits as in a chat with the bot."""

    def __init__(self, channel: str, seller: Seller, store: AccountStore) -> None:
        self._channel = channel
        self._seller = seller
        self._store = store

    async def account(self, external_id: str) -> int:
        _check_text("external_id", external_id, _USER_LENGTH_MAX)
        return await self._store.ensure_account(self._channel, "", external_id)

    async def order(
        self,
        account_id: int,
        *,
        key: str,
        address: str,
        model: str,
        values: Mapping[str, Any],
        placeholder: str | None = None,
    ) -> Job:
        _check_text("key", key, _KEY_LENGTH_MAX)
        _check_text("address", address, _ADDRESS_LENGTH_MAX)
        sold = await self._seller.sell(
            Order(
                account_id=account_id,
                model=model,
                values=values,
                key=f"{self._channel}:{key}",
                channel=self._channel,
                address=address,
                placeholder=placeholder,
            )
        )
        if isinstance(sold, NotSold):
            raise OrderRefused(sold.reason.value, _refusal_text(sold))
        return sold


def _refusal_text(refused: NotSold) -> str:
    if refused.error is not None:
        return str(refused.error)
    if refused.reason is NotSoldReason.INSUFFICIENT_BALANCE:
        return f"the order costs {write_amount(refused.price)} credits, {write_amount(refused.available)} are available"
    return _REFUSALS.get(refused.reason, refused.reason.value)


def _check_text(what: str, text: object, length_max: int) -> None:
    if not isinstance(text, str) or not text or len(text) > length_max or "\0" in text:
        raise Refusal(f"{what} must be 1 to {length_max} characters without a zero character")


def make_orders(
    settings: Settings,
    bundles: Mapping[str, ChannelBundle],
    make_seller: Callable[[SaleRules], Seller],
    store: AccountStore,
) -> dict[str, Orders]:
    rules = SaleRules(
        markup=settings.markup,
        credit_usd=settings.credit_usd,
        free_per_day=settings.free_per_day,
        running_max=settings.running_max,
        per_minute=settings.per_minute,
        per_hour=settings.per_hour,
    )
    return {name: ChannelOrders(name, make_seller(rules), store) for name in bundles}


def channel_routes(plugins: Plugins, bundles: Mapping[str, ChannelBundle], orders: Mapping[str, Orders]) -> list[Mount]:
    """Return the web applications of the channels. Without its own, a channel still shows results."""
    routes = []
    for plugin in plugins.usable(PluginKind.CHANNEL):
        make = bundles[plugin.name].web
        try:
            if make is not None:
                routes.append(Mount(f"/channels/{plugin.name}", app=make(orders[plugin.name])))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the package does
            plugin.fail("its web application cannot be made", error)
    return routes


def receive_tasks(bundles: Mapping[str, ChannelBundle], orders: Mapping[str, Orders]) -> list[PeriodicTask]:
    return [
        PeriodicTask(name=f"receive_{name}", period_seconds=RECEIVE_SECONDS, run=partial(bundle.receive, orders[name]))
        for name, bundle in bundles.items()
        if bundle.receive
    ]
