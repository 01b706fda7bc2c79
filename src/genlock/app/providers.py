"""Makes the configured providers, and the catalog of the models that they run."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from decimal import Decimal
from time import time

from genlock.catalog import load
from genlock.catalog.editor import CatalogEditor
from genlock.domain.catalog import Catalog
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import ProviderError
from genlock.ports import CatalogChangeStore, Observer, ProviderBundle, PublicLists, RateLimit
from genlock.ports.provider import FetchSchemas, ListsIncomplete
from genlock.settings import Settings

#: for messages: which settings configure a provider
KEY_SETTINGS = (
    "GENLOCK_KIE_API_KEY (Kie.ai's API key page shows it), GENLOCK_FAL_KEY (fal.ai/dashboard/keys) or "
    "GENLOCK_REPLICATE_TOKEN (replicate.com/account/api-tokens)"
)


async def make_catalog(
    settings: Settings, store: CatalogChangeStore, observer: Observer, closing: AsyncExitStack
) -> tuple[CatalogEditor, dict[str, ProviderBundle]]:
    """Return the catalog with the operators' edits, and the providers that run its models."""
    base = load(settings.catalog_overlay)
    bundles = make_providers(settings, base)
    for bundle in bundles.values():
        closing.push_async_callback(bundle.close)
    current = CurrentCatalog(base.sold_through(bundles))
    editor = CatalogEditor(base=base, current=current, providers=bundles, store=store, observer=observer)
    await editor.refresh()
    return editor, bundles


def make_providers(
    settings: Settings, catalog: Catalog, *, now: Callable[[], float] = time
) -> dict[str, ProviderBundle]:
    """Return the bundles of the configured providers by name. A provider without a key is not configured."""
    bundles = []
    if settings.kie_api_key is not None:
        from genlock.providers.kie import bundle as kie

        bundles.append(
            kie.make_bundle(
                catalog,
                key=settings.kie_api_key.get_secret_value(),
                api_url=settings.kie_api_url,
                upload_url=settings.kie_upload_url,
                webhook_key=settings.kie_webhook_key.get_secret_value() if settings.kie_webhook_key else None,
                creates_per_10_seconds=settings.kie_creates_per_10_seconds,
                now=now,
            )
        )
    if settings.fal_key is not None:
        from genlock.providers.fal import bundle as fal

        bundles.append(
            fal.make_bundle(
                key=settings.fal_key.get_secret_value(),
                admin_key=settings.fal_admin_key.get_secret_value() if settings.fal_admin_key else None,
                concurrency=settings.fal_concurrency,
                credit_usd=catalog.provider_credit_usd.get("fal", Decimal(1)),
                api_url=settings.fal_api_url,
                rest_url=settings.fal_rest_url,
            )
        )
    if settings.replicate_token is not None:
        from genlock.providers.replicate import bundle as replicate

        bundles.append(
            replicate.make_bundle(
                token=settings.replicate_token.get_secret_value(),
                credit_usd=catalog.provider_credit_usd.get("replicate", Decimal(1)),
                api_url=settings.replicate_api_url,
            )
        )
    return {bundle.name: bundle for bundle in bundles}


def configured_providers(settings: Settings) -> set[str]:
    """Return the names of the providers that have a key; only their models are on sale."""
    keys = {"kie": settings.kie_api_key, "fal": settings.fal_key, "replicate": settings.replicate_token}
    return {name for name, key in keys.items() if key is not None}


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
