"""The fal bundle: client, limits, callback check and uploads, made from the settings."""

from decimal import Decimal

from genlock.ports.provider import ProviderBundle, RateLimit
from genlock.providers.fal.client import API_URL, REST_URL, Fal


def make_bundle(*, key: str, credit_usd: Decimal, api_url: str = API_URL, rest_url: str = "") -> ProviderBundle:
    """Make the bundle. Another API address than fal's own also stands in for its REST host, unless that is named."""
    own_rest_url = REST_URL if api_url == API_URL else api_url
    fal = Fal(key=key, api_url=api_url, rest_url=rest_url or own_rest_url)
    return ProviderBundle(
        provider=fal,
        title="fal",
        # fal limits how many requests run at once and queues the others, so the rates only keep us from flooding it
        rate_limits={"create": RateLimit(interval=0.05), "status": RateLimit(interval=0.02)},
        credit_usd=credit_usd,
        close=fal.close,
        verify_callback=fal.verify_callback,
        upload=fal.upload,
        health=fal.health,
        create_request=fal.create_request,
    )
