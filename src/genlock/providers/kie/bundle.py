"""The Kie.ai bundle: client, rate limits, callback check, uploads and credit, made from the settings."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from time import time

from genlock.ports.provider import ProviderBundle, RateLimit, SampleCallback, VerifyCallback
from genlock.providers.kie.client import Kie
from genlock.providers.kie.settings import API_URL, CREATES_PER_10_SECONDS, UPLOAD_URL
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, is_signed, sign

#: Kie.ai deletes files of this age
UPLOAD_SECONDS = 3 * 86_400.0


def make_bundle(
    *,
    key: str,
    credit_usd: Decimal,
    api_url: str = API_URL,
    upload_url: str = UPLOAD_URL,
    webhook_key: str | None = None,
    creates_per_10_seconds: int = CREATES_PER_10_SECONDS,
    now: Callable[[], float] = time,
) -> ProviderBundle:
    kie = Kie(key=key, api_url=api_url, upload_url=upload_url)
    return ProviderBundle(
        provider=kie,
        rate_limits=rate_limits(creates_per_10_seconds),
        credit_usd=credit_usd,
        close=kie.close,
        verify_callback=verify_callback(webhook_key),
        sample_callback=sample_callback(webhook_key, now),
        upload=kie.upload,
        upload_seconds=UPLOAD_SECONDS,
        credit=kie.credits,
        create_request=kie.create_request,
    )


def rate_limits(creates_per_10_seconds: int = CREATES_PER_10_SECONDS) -> Mapping[str, RateLimit]:
    """Return the limits of an account: create calls in 10 s, and 10 status queries in 1 s.

    Permits 0.54 s apart are at most 19 in 10 s, and 20 even if the first is used late; a permit that would be used
    later than that is given up. A status query above the limit is refused and does no harm.
    """
    return {
        "create": RateLimit(interval=10.8 / creates_per_10_seconds, late=0.4),
        "status": RateLimit(interval=0.108),
    }


def verify_callback(webhook_key: str | None) -> VerifyCallback | None:
    """Return the check of a callback's signature; None without a key, because nothing can be checked then."""
    if webhook_key is None:
        return None
    key = webhook_key

    async def verify(headers: Mapping[str, str], body: bytes, now: float) -> bool:
        return is_signed(headers, body, key, now)

    return verify


def sample_callback(webhook_key: str | None, now: Callable[[], float] = time) -> SampleCallback:
    """Return a maker of callbacks, signed if there is a key."""

    def make(task_id: str, forged: bool) -> tuple[bytes, Mapping[str, str]]:  # noqa: FBT001 - the port's signature
        body = f'{{"code":200,"data":{{"taskId":"{task_id}","state":"success","resultJson":"{{}}"}}}}'.encode()
        if webhook_key is None:
            return body, {}
        timestamp = int(now())
        key = f"not {webhook_key}" if forged else webhook_key
        return body, {TIMESTAMP: str(timestamp), SIGNATURE: sign(task_id, timestamp, key)}

    return make
