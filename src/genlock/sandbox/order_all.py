"""Order every offer of every model on sale from the simulated providers, with the fewest and with the most fields."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import aiohttp

from genlock.catalog.check import Failure, Send, check
from genlock.domain.catalog import Catalog
from genlock.domain.errors import SubmitRefused
from genlock.domain.offer import Offer
from genlock.providers.kie.client import Kie
from genlock.providers.kie.families import ROUTES
from genlock.sandbox.kie.simulator import running_kie

UNLIMITED = (1_000_000, 1.0)
CREDITS = 1e9
SECONDS_MAX = 30
OK = 200

#: starts the simulator of a provider, and gives a function that orders from it
Simulator = Callable[[Catalog], AbstractAsyncContextManager[Send]]


async def order_all(catalog: Catalog) -> list[Failure]:
    """Order everything from fresh simulators; return what failed."""
    async with AsyncExitStack() as running:
        sends = {name: await running.enter_async_context(start(catalog)) for name, start in SIMULATORS.items()}
        return await check(catalog, sends)


@asynccontextmanager
async def _kie(catalog: Catalog) -> AsyncIterator[Send]:
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    async with (
        running_kie(catalog=catalog, create_limit=UNLIMITED, credits_=CREDITS) as kie,
        aiohttp.ClientSession(timeout=timeout, headers={"Authorization": f"Bearer {kie.key}"}) as session,
    ):

        async def send(offer: Offer, values: Mapping[str, object]) -> None:
            route = ROUTES.get((offer.family, offer.operation))
            if route is None:
                place = f"family {offer.family!r}, operation {offer.operation!r}"
                raise SubmitRefused("model_unavailable", f"Kie.ai has no endpoint for {place}")
            async with session.post(kie.url + route.create, json=route.body(offer.model, values, None)) as response:
                body = await response.json()
            if body.get("code") != OK:
                raise SubmitRefused(str(body.get("code")), str(body.get("msg")))

        yield send


#: by the name of the provider
SIMULATORS: Mapping[str, Simulator] = {Kie.name: _kie}
