"""The fal bundle: client, limits, callback check and uploads, made from the settings."""

from decimal import Decimal

from genlock.ports.provider import ProviderBundle, RateLimit
from genlock.providers.fal.client import Fal
from genlock.providers.fal.settings import API_URL, REST_URL

ADMIN_KEY_NOTE = "fal shows the credit left to an admin key only: set GENLOCK_FAL_ADMIN_KEY to see it here"
CREDIT_NOTE = "fal does not tell what an order cost: see fal.ai/dashboard/billing"


def make_bundle(
    *,
    key: str,
    credit_usd: Decimal,
    admin_key: str | None = None,
    concurrency: int | None = None,
    api_url: str = API_URL,
    rest_url: str = REST_URL,
) -> ProviderBundle:
    """Make the bundle. Another queue than fal's own also serves fal's storage and keys, unless those are elsewhere."""
    elsewhere = api_url != API_URL and rest_url == REST_URL
    fal = Fal(key=key, admin_key=admin_key, api_url=api_url, rest_url=api_url if elsewhere else rest_url)
    return ProviderBundle(
        provider=fal,
        # fal limits how many requests run at once and queues the others, so the rates only keep us from flooding it
        rate_limits={"create": RateLimit(interval=0.05), "status": RateLimit(interval=0.02)},
        concurrency=concurrency,
        credit_usd=credit_usd,
        close=fal.close,
        verify_callback=fal.verify_callback,
        shared_signature=True,
        upload=fal.upload,
        health=fal.health,
        create_request=fal.create_request,
        credit=fal.credit if admin_key else None,
        credit_note=CREDIT_NOTE if admin_key else f"{ADMIN_KEY_NOTE}; {CREDIT_NOTE}",
        fetch_schemas=fal.fetch_schemas,
    )
