"""Orders the least and the most of every offered model from the simulated Kie.ai, over HTTP."""

from collections.abc import Mapping

import aiohttp

from genlock.catalog.check import Failure, check
from genlock.domain.catalog import Catalog, Model
from genlock.domain.errors import SubmitRefused
from genlock.providers.kie.families import ROUTES
from genlock.sandbox.kie.simulator import running_kie

UNLIMITED = (1_000_000, 1.0)
CREDITS = 1e9
SECONDS_MAX = 30
OK = 200


async def order_all(catalog: Catalog) -> list[Failure]:
    """What stands in the way of ordering what is offered."""
    async with running_kie(catalog=catalog, create_limit=UNLIMITED, credits_=CREDITS) as kie:
        return await check_at(kie.url, kie.key, catalog)


async def check_at(url: str, key: str, catalog: Catalog) -> list[Failure]:
    """The same at any address that speaks as Kie.ai does. Every order there is a real one."""
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:

        async def send(model: Model, values: Mapping[str, object]) -> None:
            route = ROUTES[model.family, model.operation]
            async with session.post(url + route.create, json=route.body(model.id, values, None)) as response:
                body = await response.json()
            if body.get("code") != OK:
                raise SubmitRefused(str(body.get("code")), str(body.get("msg")))

        return await check(catalog, send)
