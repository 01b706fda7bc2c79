"""The plug-in of Replicate. The client is loaded only if the token is set."""

from genlock.ports.plugin import ProviderContext, ProviderPlugin
from genlock.ports.provider import ProviderBundle
from genlock.providers.replicate.settings import ReplicateSettings


def make(settings: ReplicateSettings, context: ProviderContext) -> ProviderBundle:
    from genlock.providers.replicate.bundle import make_bundle

    return make_bundle(token=settings.token.get_secret_value(), credit_usd=context.credit_usd, api_url=settings.api_url)


plugin = ProviderPlugin(
    port=1, settings=ReplicateSettings, make=make, title="Replicate", key_page="replicate.com/account/api-tokens"
)
