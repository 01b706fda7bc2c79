"""The plug-in of Kie.ai. The client is loaded only if the key is set."""

from genlock.ports.plugin import ProviderContext, ProviderPlugin, PublicSource
from genlock.ports.provider import ProviderBundle, PublicLists
from genlock.providers.kie.settings import KiePublicSettings, KieSettings


def make(settings: KieSettings, context: ProviderContext) -> ProviderBundle:
    from genlock.providers.kie.bundle import make_bundle

    return make_bundle(
        key=settings.api_key.get_secret_value(),
        credit_usd=context.credit_usd,
        api_url=settings.api_url,
        upload_url=settings.upload_url,
        webhook_key=settings.webhook_key.get_secret_value() if settings.webhook_key else None,
        creates_per_10_seconds=settings.creates_per_10_seconds,
        now=context.now,
    )


async def fetch_public_lists(settings: KiePublicSettings) -> PublicLists:
    from genlock.providers.kie.public_lists import fetch

    return await fetch(settings.api_url)


plugin = ProviderPlugin(
    port=1,
    settings=KieSettings,
    make=make,
    title="Kie.ai",
    key_page="Kie.ai's API key page shows it",
    public_lists=PublicSource(fetch=fetch_public_lists, settings=KiePublicSettings),
)
