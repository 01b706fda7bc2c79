"""Replicate's published schemas: each version of a model has an OpenAPI document. Prices are not in the API."""

import re
from collections.abc import Collection

from genlock.domain.errors import ProviderError
from genlock.domain.model_schema import ModelSchema
from genlock.providers.http import HttpClient
from genlock.providers.openapi import read_schema
from genlock.providers.public_schemas import fetch_each, published

_MODEL = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)(?::([0-9a-f]{64}))?")


async def fetch_schemas(http: HttpClient, api_url: str, ids: Collection[str]) -> dict[str, ModelSchema | None]:
    """Return the schema of every model: of the version that its id names, or of the newest. Raises ProviderError."""

    async def fetch(model: str) -> ModelSchema | None:
        found = _MODEL.fullmatch(model)
        if found is None:
            raise ProviderError(f"{model!r} is not a model of Replicate")
        url = f"{api_url}/v1/models/{found[1]}"
        what = f"Replicate's schema of {model}"
        if found[2]:
            version = published(await http.request("GET", f"{url}/versions/{found[2]}"), what)
        else:
            document = published(await http.request("GET", url), what)
            version = document and (document.get("latest_version") or {})
        return None if version is None else read_schema(version.get("openapi_schema"))

    return await fetch_each(ids, fetch)
