"""The plug-in of Kie.ai. The client is loaded only if the key is set."""

from pydantic import BaseModel, SecretStr

from genlock.ports.plugin import ProviderContext, ProviderPlugin
from genlock.ports.provider import ProviderBundle


class KieSettings(BaseModel):
    """As in `genlock.settings`, which describes and checks them."""

    api_key: SecretStr
    api_url: str
    upload_url: str
    webhook_key: SecretStr | None
    creates_per_10_seconds: int


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


plugin = ProviderPlugin(port=1, settings=KieSettings, make=make)
