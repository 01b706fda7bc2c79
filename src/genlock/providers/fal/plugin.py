"""The plug-in of fal. The client is loaded only if the key is set."""

from pydantic import BaseModel, SecretStr

from genlock.ports.plugin import ProviderContext, ProviderPlugin
from genlock.ports.provider import ProviderBundle


class FalSettings(BaseModel):
    """As in `genlock.settings`, which describes and checks them."""

    key: SecretStr
    admin_key: SecretStr | None = None
    concurrency: int | None = None
    api_url: str
    rest_url: str


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


plugin = ProviderPlugin(port=1, settings=FalSettings, make=make)
