"""Orders the least and the most of every offered model from the simulated Kie.ai, over HTTP."""

from collections.abc import Mapping

import aiohttp

from genlock.catalog.check import Failure, check
from genlock.domain.catalog import Catalog, Model
from genlock.domain.errors import SubmitRefused
from genlock.providers.kie.client import Kie
from genlock.providers.kie.families import ROUTES
from genlock.sandbox.kie.simulator import running_kie

UNLIMITED = (1_000_000, 1.0)
RICH = 1e9
SECONDS_MAX = 30
OK = 200
#: the providers that `order_all` has a simulator of
PROVIDERS = frozenset({Kie.name})


async def order_all(catalog: Catalog) -> list[Failure]:
    """What stands in the way of ordering what is offered."""
    async with running_kie(catalog=catalog, create_limit=UNLIMITED, credits_=RICH) as kie:
        return await check_at(kie.url, kie.key, catalog)


async def check_at(url: str, key: str, catalog: Catalog) -> list[Failure]:
    """The same at any address that speaks as Kie.ai does. Every order there is a real one."""
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:

        async def send(model: Model, values: Mapping[str, object]) -> None:
            route = ROUTES.get((model.family, model.operation))
            if route is None:
                place = f"family {model.family!r}, operation {model.operation!r}"
                raise SubmitRefused("model_unavailable", f"Kie.ai has no endpoint for {place}")
            async with session.post(url + route.create, json=route.body(model.id, values, None)) as response:
                said = await response.json()
            if said.get("code") != OK:
                raise SubmitRefused(str(said.get("code")), str(said.get("msg")))

        return await check(catalog, {Kie.name: send})
