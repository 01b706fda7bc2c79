"""fal's published schemas and prices. The schemas are public; the prices are shown to every key."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from genlock.domain.model_schema import ModelSchema
from genlock.providers.http import HttpClient
from genlock.providers.json_values import clean
from genlock.providers.openapi import read_schema
from genlock.providers.public_schemas import fetch_each, published

SCHEMA_PATH = "/api/openapi/queue/openapi.json"
PRICES_PATH = "/v1/models/pricing"
PRICES_AT_ONCE = 50

Prices = Mapping[str, tuple[Decimal, str]]
"""US dollars and unit by model."""


async def fetch_schemas(
    *, site: HttpClient, site_url: str, platform: HttpClient, platform_url: str, ids: Collection[str]
) -> dict[str, ModelSchema | None]:
    """Return the schema, with its price where there is one, of every model. Raises ProviderError."""

    async def fetch(model: str) -> ModelSchema | None:
        answer = await site.request("GET", f"{site_url}{SCHEMA_PATH}", params={"endpoint_id": model})
        document = published(answer, f"fal's schema of {model}")
        return None if document is None else read_schema(document)

    found = await fetch_each(ids, fetch)
    prices = await _fetch_prices(platform, platform_url, [model for model, schema in found.items() if schema])
    return {model: _priced(schema, prices.get(model)) for model, schema in found.items()}


def _priced(schema: ModelSchema | None, price: tuple[Decimal, str] | None) -> ModelSchema | None:
    return schema if schema is None or price is None else replace(schema, unit_price=price[0], unit=price[1])


async def _fetch_prices(http: HttpClient, url: str, models: list[str]) -> dict[str, tuple[Decimal, str]]:
    found: dict[str, tuple[Decimal, str]] = {}
    for start in range(0, len(models), PRICES_AT_ONCE):
        some = models[start : start + PRICES_AT_ONCE]
        prices = await _ask_prices(http, url, some)
        if prices is None:  # one of them has no price, and fal does not say which
            for model in some:
                found |= await _ask_prices(http, url, [model]) or {}
        else:
            found |= prices
    return found


async def _ask_prices(http: HttpClient, url: str, models: list[str]) -> Prices | None:
    params = [("endpoint_id", model) for model in models]
    answer = await http.request("GET", f"{url}{PRICES_PATH}", params=params)
    document = published(answer, "fal's list of prices")
    rows = None if document is None else document.get("prices")
    if document is None:
        return None
    return dict(_read_prices(row) for row in rows if _is_price(row)) if isinstance(rows, list) else {}


def _is_price(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("endpoint_id"), str) or row.get("currency") != "USD":
        return False
    try:
        return Decimal(str(row.get("unit_price"))) >= 0
    except InvalidOperation:
        return False


def _read_prices(row: dict[str, Any]) -> tuple[str, tuple[Decimal, str]]:
    return row["endpoint_id"], (Decimal(str(row["unit_price"])), clean(str(row.get("unit") or ""))[:40])
