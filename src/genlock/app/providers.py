"""Makes the configured providers, and the catalog of the models that they run."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from time import time

from genlock.app.plugin_checks import check_provider, close_plugin
from genlock.app.plugins import Plugins, PluginState, find_plugins
from genlock.catalog import load
from genlock.catalog.editor import CatalogEditor
from genlock.catalog.extensions import CatalogExtension
from genlock.domain.catalog import Catalog
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ProviderError, Refusal
from genlock.entry_points import PluginKind
from genlock.ports import (
    CatalogChangeStore,
    Observer,
    ProviderBundle,
    ProviderContext,
    ProviderPlugin,
    PublicLists,
    RateLimit,
)
from genlock.ports.provider import FetchSchemas, ListsIncomplete
from genlock.settings import Settings

#: for messages: which settings configure a provider
KEY_SETTINGS = (
    "GENLOCK_KIE_API_KEY (Kie.ai's API key page shows it), GENLOCK_FAL_KEY (fal.ai/dashboard/keys) or "
    "GENLOCK_REPLICATE_TOKEN (replicate.com/account/api-tokens)"
)


async def make_catalog(
    settings: Settings, plugins: Plugins, store: CatalogChangeStore, observer: Observer, closing: AsyncExitStack
) -> tuple[CatalogEditor, dict[str, ProviderBundle]]:
    """Return the catalog with the operators' edits, and the providers that run its models."""
    base = load_catalog(settings, plugins)
    bundles = make_bundles(plugins, base)
    if not bundles:
        raise Refusal(f"No provider is configured, so nothing could be made: set {KEY_SETTINGS}")
    for bundle in bundles.values():
        closing.push_async_callback(close_plugin, bundle.name, bundle.close, observer)
    current = CurrentCatalog(base.sold_through(bundles))
    editor = CatalogEditor(base=base, current=current, providers=bundles, store=store, observer=observer)
    await editor.refresh()
    return editor, bundles


def load_catalog(settings: Settings, plugins: Plugins) -> Catalog:
    """Load the models of this package and of the plug-ins. A plug-in whose files are wrong is left out."""

    def leave_out(name: str, error: Exception) -> None:
        for one in plugins.installed:
            if one.name == name and one.kind is PluginKind.PROVIDER and one.state is not PluginState.LEFT_OUT:
                one.fail("its catalog is wrong", error)

    return load(
        settings.catalog_overlay,
        extensions=[
            CatalogExtension(provider=one.name, credit_usd=one.declared.credit_usd, folder=one.declared.catalog)
            for one in plugins.installed
            if isinstance(one.declared, ProviderPlugin)
        ],
        leave_out=leave_out,
        absent={one.name for one in plugins.left_out},
    )


def make_providers(
    settings: Settings, catalog: Catalog, *, now: Callable[[], float] = time
) -> dict[str, ProviderBundle]:
    """Return the bundles of the configured providers by name. A provider without a key is not configured."""
    return make_bundles(find_plugins(settings), catalog, now=now)


def make_bundles(plugins: Plugins, catalog: Catalog, *, now: Callable[[], float] = time) -> dict[str, ProviderBundle]:
    """Return the bundle of every plug-in that can be used. One that cannot make its bundle is left out."""
    bundles = {}
    for plugin in plugins.usable(PluginKind.PROVIDER):
        assert isinstance(plugin.declared, ProviderPlugin)
        credit_usd = catalog.provider_credit_usd.get(plugin.name, plugin.declared.credit_usd)
        try:
            bundle = plugin.declared.make(plugin.settings, ProviderContext(credit_usd=credit_usd, now=now))
            check_provider(bundle, plugin.name)
        except (Exception, SystemExit) as error:
            if plugin.is_built_in:
                raise
            plugin.fail("it cannot be made", error)
        else:
            bundles[plugin.name] = bundle
    return bundles


def configured_providers(settings: Settings) -> set[str]:
    """Return the names of the providers that have a key; only their models are on sale."""
    return {one.name for one in find_plugins(settings).usable(PluginKind.PROVIDER)}


async def fetch_public_lists(settings: Settings, catalog: Catalog | None = None) -> dict[str, PublicLists]:
    """Fetch what the providers publish about their models. Raises ListsIncomplete if one of them does not answer.

    The list of the default provider needs no account. The others are asked if they have a key: without one their
    offers are not used.
    """
    from genlock.providers.kie import public_lists as kie
    from genlock.providers.kie.client import Kie

    catalog = catalog or load()
    bundles = make_providers(settings, catalog)
    try:
        fetches: dict[str, Awaitable[PublicLists]] = {Kie.name: kie.fetch(settings.kie_api_url)}
        for name, bundle in bundles.items():
            if bundle.fetch_schemas is not None and (ids := catalog.ids_at(name)):
                fetches[name] = _fetch_schemas(bundle.fetch_schemas, ids)
        answers = dict(zip(fetches, await asyncio.gather(*fetches.values(), return_exceptions=True), strict=True))
    finally:
        for bundle in bundles.values():
            await bundle.close()
    lists = {name: answer for name, answer in answers.items() if isinstance(answer, PublicLists)}
    errors = {name: answer for name, answer in answers.items() if isinstance(answer, BaseException)}
    for error in errors.values():
        if not isinstance(error, ProviderError):
            raise error
    if errors:
        raise ListsIncomplete(lists, {name: str(error) for name, error in errors.items()})
    return lists


async def _fetch_schemas(fetch: FetchSchemas, ids: Collection[str]) -> PublicLists:
    return PublicLists(schemas=await fetch(ids))


def rate_limits(bundles: Mapping[str, ProviderBundle]) -> dict[str, RateLimit]:
    """Return the limits of all providers under the keys that the engine uses: `create:NAME` and `status:NAME`."""
    return {f"{call}:{name}": limit for name, bundle in bundles.items() for call, limit in bundle.rate_limits.items()}
