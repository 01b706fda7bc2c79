"""The Replicate bundle: client, limits, callback check and uploads, made from the settings."""

from decimal import Decimal

from genlock.ports.provider import ProviderBundle, RateLimit
from genlock.providers.replicate.client import Replicate
from genlock.providers.replicate.settings import API_URL

#: Replicate deletes files of this age
UPLOAD_SECONDS = 24 * 3600.0
CREDIT_NOTE = "Replicate tells neither the credit left nor what an order cost: see replicate.com/account/billing"


def make_bundle(*, token: str, credit_usd: Decimal, api_url: str = API_URL) -> ProviderBundle:
    replicate = Replicate(token=token, api_url=api_url)
    return ProviderBundle(
        provider=replicate,
        # 600 creates and 3,000 other calls a minute, with a little to spare
        rate_limits={"create": RateLimit(interval=0.105, burst=5), "status": RateLimit(interval=0.021, burst=5)},
        credit_usd=credit_usd,
        close=replicate.close,
        verify_callback=replicate.verify_callback,
        upload=replicate.upload,
        upload_seconds=UPLOAD_SECONDS,
        upload_is_public=False,  # reading a file takes the account's token
        health=replicate.health,
        create_request=replicate.create_request,
        fetch_schemas=replicate.fetch_schemas,
        credit_note=CREDIT_NOTE,
    )
