"""Kie.ai's public lists of models and prices, as its web site reads them."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

import aiohttp

from genlock.domain.errors import ProviderError
from genlock.domain.money import read_decimal
from genlock.domain.tariff import normalise_label
from genlock.ports.provider import PublicLists
from genlock.providers.kie.families import Family

MODELS_PATH = "/api/v1/playground/model-paths"
PRICES_PATH = "/client/v1/model-pricing/page"
PAGE_SIZE = 100
PAGES_MAX = 50
SECONDS_MAX = 30
OK = 200
#: The lists belong to the provider's web site, which refuses clients that do not look like a browser.
HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; genlock)"}


async def fetch(base_url: str) -> PublicLists:
    """Read both lists. Raises ProviderError that names the list and the reason."""
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    async with aiohttp.ClientSession(timeout=timeout, headers=HEADERS) as session:
        ids = _read_ids(await _request(session, "GET", base_url.rstrip("/") + MODELS_PATH))
        prices: dict[str, Decimal] = {}
        pages = page = 1
        while page <= min(pages, PAGES_MAX):
            body = {"pageNum": page, "pageSize": PAGE_SIZE, "modelDescription": "", "interfaceType": ""}
            data = await _request(session, "POST", base_url.rstrip("/") + PRICES_PATH, body)
            if not isinstance(data, dict) or not isinstance(data.get("records"), list):
                raise ProviderError(f"{PRICES_PATH}: the provider's price list has no records")
            prices |= _read_prices(data["records"])
            pages = data["pages"] if isinstance(data.get("pages"), int) else 1
            page += 1
    return PublicLists(ids=ids, prices=prices, families=frozenset({Family.MARKET.value}))


async def _request(session: aiohttp.ClientSession, method: str, url: str, body: object = None) -> Any:
    try:
        async with session.request(method, url, json=body) as response:
            answer = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise ProviderError(f"{url}: the provider's list cannot be read: {why}") from error
    if response.status != OK or not isinstance(answer, dict) or answer.get("code") != OK:
        message = answer.get("msg") if isinstance(answer, dict) else None
        raise ProviderError(f"{url}: the provider refused its list: {response.status} {message or ''}".rstrip())
    return answer.get("data")


def _read_ids(data: object) -> frozenset[str]:
    ids = frozenset(item for item in data if isinstance(item, str)) if isinstance(data, list) else frozenset()
    if not ids:
        raise ProviderError(f"{MODELS_PATH}: the provider's list of models is empty")
    return ids


def _read_prices(records: Iterable[object]) -> dict[str, Decimal]:
    """Return the readable rows. The provider types labels and numbers by hand, so some are malformed."""
    prices = {}
    for record in records:
        if not isinstance(record, dict) or not isinstance(record.get("modelDescription"), str):
            continue
        try:
            text = str(record.get("creditPrice")).strip()
            credits_ = read_decimal(text) if "," in text else Decimal(text)
        except InvalidOperation:
            continue
        if credits_ is not None and credits_.is_finite() and credits_ >= 0:
            prices[normalise_label(record["modelDescription"])] = credits_
    return prices
