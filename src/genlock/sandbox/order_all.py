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
from genlock.sandbox.fal.simulator import running_fal
from genlock.sandbox.generations.from_catalog import simulated_models
from genlock.sandbox.generations.service import GenerationService
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.replicate.simulator import running_replicate

UNLIMITED = (1_000_000, 1.0)
CREDITS = 1e9
#: nothing waits: what is checked is whether an order is taken and has a result
SPEED = 1e9
SECONDS_MAX = 30
OK = 200
SUCCESSES = range(200, 300)

#: starts the simulator of a provider, and gives a function that orders from it
Simulator = Callable[[Catalog], AbstractAsyncContextManager[Send]]


async def order_all(catalog: Catalog) -> list[Failure]:
    """Order everything from fresh simulators; return what failed."""
    async with AsyncExitStack() as running:
        sends = {name: await running.enter_async_context(start(catalog)) for name, start in SIMULATORS.items()}
        return await check(catalog, sends)


def _session(authorization: str) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    return aiohttp.ClientSession(timeout=timeout, headers={"Authorization": authorization})


@asynccontextmanager
async def _kie(catalog: Catalog) -> AsyncIterator[Send]:
    async with (
        running_kie(catalog=catalog, create_limit=UNLIMITED, credits_=CREDITS) as kie,
        _session(f"Bearer {kie.key}") as session,
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


@asynccontextmanager
async def _fal(catalog: Catalog) -> AsyncIterator[Send]:
    models = simulated_models(catalog, "fal")
    async with (
        running_fal(models, speed=SPEED, credit_usd=CREDITS) as fal,
        _session(f"Key {fal.key}") as session,
    ):

        async def send(offer: Offer, values: Mapping[str, object]) -> None:
            body = await _post(session, f"{fal.url}/{offer.model}", values)
            await _ended(fal.service, str(body["request_id"]))  # fal checks the input when the generation begins

        yield send


@asynccontextmanager
async def _replicate(catalog: Catalog) -> AsyncIterator[Send]:
    models = simulated_models(catalog, "replicate")
    async with (
        running_replicate(models, speed=SPEED, credit_usd=CREDITS, creates_per_minute=UNLIMITED[0]) as replicate,
        _session(f"Bearer {replicate.token}") as session,
    ):

        async def send(offer: Offer, values: Mapping[str, object]) -> None:
            path = "predictions" if ":" in offer.model else f"models/{offer.model}/predictions"
            order = {"input": dict(values)} | ({"version": offer.model} if ":" in offer.model else {})
            body = await _post(session, f"{replicate.url}/v1/{path}", order)
            await _ended(replicate.service, str(body["id"]))

        yield send


async def _post(session: aiohttp.ClientSession, url: str, body: Mapping[str, object]) -> dict[str, object]:
    """Return the answer to an order. Raises SubmitRefused."""
    async with session.post(url, json=dict(body)) as response:
        answer = await response.json(content_type=None)
    if response.status not in SUCCESSES:
        raise SubmitRefused(str(response.status), str(answer.get("detail")))
    return dict(answer)


async def _ended(service: GenerationService, generation_id: str) -> None:
    """Wait for the end of a generation. Raises SubmitRefused if the model did not take its input."""
    generation = service.generations[generation_id]
    await generation.has_ended.wait()
    if generation.problems:
        raise SubmitRefused("bad_input", "; ".join(f"{name}: {what}" for name, what in generation.problems))


#: by the name of the provider
SIMULATORS: Mapping[str, Simulator] = {Kie.name: _kie, "fal": _fal, "replicate": _replicate}
