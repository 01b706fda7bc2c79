"""The plug-in of fal. The client is loaded only if the key is set."""

from genlock.ports.plugin import ProviderContext, ProviderPlugin
from genlock.ports.provider import ProviderBundle
from genlock.providers.fal.settings import FalSettings


def make(settings: FalSettings, context: ProviderContext) -> ProviderBundle:
    from genlock.providers.fal.bundle import make_bundle

    return make_bundle(
        key=settings.key.get_secret_value(),
        admin_key=settings.admin_key.get_secret_value() if settings.admin_key else None,
        concurrency=settings.concurrency,
        credit_usd=context.credit_usd,
        api_url=settings.api_url,
        rest_url=settings.rest_url,
    )


plugin = ProviderPlugin(port=1, settings=FalSettings, make=make, title="fal", key_page="fal.ai/dashboard/keys")
