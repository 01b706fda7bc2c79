"""Makes the configured providers, and the catalog of the models that they run."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from time import time

from genlock.app.plugin_checks import check_provider, close_plugin
from genlock.app.plugins import Plugins, PluginState, find_plugins
from genlock.catalog import load
from genlock.catalog.editor import CatalogEditor
from genlock.catalog.extensions import CatalogExtension
from genlock.domain.catalog import Catalog
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ProviderError, Refusal
from genlock.engine.file_storage import FileStorage, ProviderStorage
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
from genlock.ports.plugin import PublicSource
from genlock.ports.provider import FetchSchemas, ListsIncomplete
from genlock.providers import built_in_plugins
from genlock.settings import Settings
from genlock.settings.declared import read_declared


async def make_catalog(
    settings: Settings, plugins: Plugins, store: CatalogChangeStore, observer: Observer, closing: AsyncExitStack
) -> tuple[CatalogEditor, dict[str, ProviderBundle]]:
    """Return the catalog with the operators' edits, and the providers that run its models."""
    base = load_catalog(settings, plugins)
    bundles = make_bundles(plugins, base)
    if not bundles:
        raise Refusal(f"No provider is configured, so nothing could be made: set {plugins.key_settings()}")
    for bundle in bundles.values():
        closing.push_async_callback(close_plugin, bundle.name, bundle.close, observer)
    unread = without_files(bundles)
    current = CurrentCatalog(base.sold_through(bundles, unread))
    editor = CatalogEditor(
        base=base, current=current, providers=bundles, store=store, observer=observer, without_files=unread
    )
    await editor.refresh()
    return editor, bundles


def load_catalog(settings: Settings, plugins: Plugins) -> Catalog:
    """Load the models of this package and of the plug-ins. A plug-in whose files are wrong is left out."""

    def leave_out(name: str, error: Exception) -> None:
        for plugin in plugins.installed:
            if plugin.name == name and plugin.kind is PluginKind.PROVIDER and plugin.state is not PluginState.LEFT_OUT:
                plugin.fail("its catalog is wrong", error)

    catalog = load(
        settings.catalog_overlay,
        extensions=[
            CatalogExtension(
                provider=plugin.name, credit_usd=plugin.declared.credit_usd, folder=plugin.declared.catalog
            )
            for plugin in plugins.installed
            if isinstance(plugin.declared, ProviderPlugin)
        ],
        leave_out=leave_out,
        absent={plugin.name for plugin in plugins.left_out},
    )
    return replace(catalog, provider_titles=plugins.titles())


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


def configured_providers() -> set[str]:
    """Return the names of the providers that have a key; only their models are on sale."""
    return {plugin.name for plugin in find_plugins().usable(PluginKind.PROVIDER)}


async def fetch_public_lists(catalog: Catalog | None = None) -> dict[str, PublicLists]:
    """Fetch what the providers publish about their models. Raises ListsIncomplete if one of them does not answer.

    Public lists are read in any case. Schemas of models are asked of providers that have a key: without one
    their offers are not used.
    """
    catalog, plugins = catalog or load(), find_plugins()
    bundles = make_bundles(plugins, catalog)
    try:
        fetches = dict(_public_fetches(plugins))
        for name, bundle in bundles.items():
            if name not in fetches and bundle.fetch_schemas is not None and (ids := catalog.ids_at(name)):
                fetches[name] = _read_lists(name, partial(_fetch_schemas, bundle.fetch_schemas, ids))
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


def _public_fetches(plugins: Plugins) -> Iterator[tuple[str, Awaitable[PublicLists | None]]]:
    """Yield for each provider that publishes lists how they are fetched."""
    for plugin in plugins.all:
        source = plugin.declared.public_lists if isinstance(plugin.declared, ProviderPlugin) else None
        if source is not None and plugin.state is not PluginState.LEFT_OUT:
            yield plugin.name, _read_lists(plugin.name, partial(_fetch_public, plugin.name, source))


async def _read_lists(name: str, fetch: Callable[[], Awaitable[PublicLists | None]]) -> PublicLists | None:
    """Fetch the lists of one provider. Whatever the code of another package raises becomes a ProviderError."""
    try:
        return await fetch()
    except ProviderError:
        raise
    except Exception as error:
        if name in built_in_plugins():
            raise
        raise ProviderError(f"{type(error).__name__}: {error}") from error


async def _fetch_public(name: str, source: PublicSource) -> PublicLists | None:
    """Return the public lists; None if a setting that they need is missing. Raises ProviderError."""
    read = read_declared(name, source.settings)
    if read.wrong:
        raise ProviderError("; ".join(read.wrong))
    if read.values is None:
        return None
    lists: object = await source.fetch(read.values)
    if not isinstance(lists, PublicLists):
        raise TypeError(f"public_lists.fetch returned {type(lists).__name__} instead of PublicLists")
    return lists


async def _fetch_schemas(fetch: FetchSchemas, ids: Collection[str]) -> PublicLists:
    return PublicLists(schemas=await fetch(ids))


def file_storage(bundles: Mapping[str, ProviderBundle], plugins: Plugins) -> FileStorage:
    """Return where users' files are stored. Raises Refusal if no provider stores any."""
    storages = [
        ProviderStorage(
            provider=name,
            upload=bundle.upload,
            keep_seconds=bundle.upload_seconds,
            is_public=bundle.upload_is_public,
        )
        for name, bundle in bundles.items()
        if bundle.upload is not None
    ]
    if not storages:
        keys = plugins.key_settings(configured=bundles)
        raise Refusal(f"No configured provider stores files, so users could not send any: also set {keys}")
    return FileStorage(storages)


def without_files(bundles: Mapping[str, ProviderBundle]) -> list[str]:
    """Return the providers whose models can read no file of a user, because only private storages are configured."""
    if any(bundle.upload is not None and bundle.upload_is_public for bundle in bundles.values()):
        return []
    return [name for name, bundle in bundles.items() if bundle.upload is None]


def rate_limits(bundles: Mapping[str, ProviderBundle]) -> dict[str, RateLimit]:
    """Return the limits of all providers under the keys that the engine uses: `create:NAME` and `status:NAME`."""
    return {f"{call}:{name}": limit for name, bundle in bundles.items() for call, limit in bundle.rate_limits.items()}
