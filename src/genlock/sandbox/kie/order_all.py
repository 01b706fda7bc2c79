"""Order every offered model from the Kie.ai simulator over HTTP, with the fewest and with the most fields."""

from collections.abc import Mapping

import aiohttp

from genlock.catalog.check import Failure, check
from genlock.domain.catalog import Catalog, Model
from genlock.domain.errors import SubmitRefused
from genlock.providers.kie.client import Kie
from genlock.providers.kie.families import ROUTES
from genlock.sandbox.kie.simulator import running_kie

UNLIMITED = (1_000_000, 1.0)
CREDITS = 1e9
SECONDS_MAX = 30
OK = 200
#: the providers that `order_all` has a simulator of
PROVIDERS = frozenset({Kie.name})


async def order_all(catalog: Catalog) -> list[Failure]:
    """Order everything from a fresh simulator; return what failed."""
    async with running_kie(catalog=catalog, create_limit=UNLIMITED, credits_=CREDITS) as kie:
        return await check_at(kie.url, kie.key, catalog)


async def check_at(url: str, key: str, catalog: Catalog) -> list[Failure]:
    """Order everything at a URL with Kie.ai's API. Every order there is real."""
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:

        async def send(model: Model, values: Mapping[str, object]) -> None:
            route = ROUTES.get((model.family, model.operation))
            if route is None:
                place = f"family {model.family!r}, operation {model.operation!r}"
                raise SubmitRefused("model_unavailable", f"Kie.ai has no endpoint for {place}")
            async with session.post(url + route.create, json=route.body(model.id, values, None)) as response:
                body = await response.json()
            if body.get("code") != OK:
                raise SubmitRefused(str(body.get("code")), str(body.get("msg")))

        return await check(catalog, {Kie.name: send})
