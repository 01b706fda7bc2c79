"""The plug-in of Replicate. The client is loaded only if the token is set."""

from pydantic import BaseModel, SecretStr

from genlock.ports.plugin import ProviderContext, ProviderPlugin
from genlock.ports.provider import ProviderBundle


class ReplicateSettings(BaseModel):
    """As in `genlock.settings`, which describes and checks them."""

    token: SecretStr
    api_url: str


def make(settings: ReplicateSettings, context: ProviderContext) -> ProviderBundle:
    from genlock.providers.replicate.bundle import make_bundle

    return make_bundle(token=settings.token.get_secret_value(), credit_usd=context.credit_usd, api_url=settings.api_url)


plugin = ProviderPlugin(port=1, settings=ReplicateSettings, make=make)
