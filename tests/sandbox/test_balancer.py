"""The balancer that stands in front of the instances."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web

from genlock.sandbox.load_balancer import LoadBalancer


@dataclass
class Shop:
    """A server behind the balancer, which may close its door or fall asleep."""

    name: str
    port: int = 0
    ready: bool = True
    asleep: bool = False
    served: int = 0

    async def answer(self, request: web.Request) -> web.Response:
        while self.asleep:  # noqa: ASYNC110 - as a stopped process does
            await asyncio.sleep(0.01)
        if request.path == "/ready":
            return web.Response(status=200 if self.ready else 503)
        self.served += 1
        return web.Response(text=self.name)


@asynccontextmanager
async def running_shop(name: str) -> AsyncIterator[Shop]:
    shop = Shop(name)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", shop.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    shop.port = runner.addresses[0][1]
    try:
        yield shop
    finally:
        await runner.cleanup()


async def ask(balancer: LoadBalancer) -> str:
    """Over a connection of its own, and once: how it was answered."""
    try:
        async with aiohttp.ClientSession() as session, session.post(f"{balancer.url}/") as response:
            return await response.text() if response.status == 200 else str(response.status)
    except aiohttp.ClientError as error:
        return type(error).__name__


async def until(balancer: LoadBalancer, *answers: str) -> None:
    """Wait until the next ten answers are these and no others."""
    async with asyncio.timeout(10):
        while {await ask(balancer) for _ in range(10)} != set(answers):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


@pytest.fixture
async def shops() -> AsyncIterator[tuple[LoadBalancer, Shop, Shop]]:
    async with AsyncExitStack() as stack:
        balancer = await stack.enter_async_context(LoadBalancer.running())
        one, two = [await stack.enter_async_context(running_shop(name)) for name in ("one", "two")]
        yield balancer, one, two


async def test_connections_go_round_those_who_are_ready(shops: tuple[LoadBalancer, Shop, Shop]) -> None:
    balancer, one, two = shops
    assert await ask(balancer) == "503"
    for shop in (one, two):
        balancer.add(shop.port)
    await balancer.wait_until_ready()
    await until(balancer, "one", "two")
    served = (one.served, two.served)
    for _ in range(10):
        await ask(balancer)
    assert (one.served - served[0], two.served - served[1]) == (5, 5)


async def test_who_is_not_ready_gets_nothing_new(shops: tuple[LoadBalancer, Shop, Shop]) -> None:
    balancer, one, two = shops
    for shop in (one, two):
        balancer.add(shop.port)
    one.ready = False
    await until(balancer, "two")
    one.ready = True
    await until(balancer, "one", "two")


async def test_who_falls_asleep_is_cut_off_and_those_who_wait_learn_of_it(
    shops: tuple[LoadBalancer, Shop, Shop],
) -> None:
    balancer, one, _ = shops
    balancer.add(one.port)
    await until(balancer, "one")
    one.asleep = True
    assert await asyncio.wait_for(ask(balancer), 5) == "ServerDisconnectedError"
    await until(balancer, "503")
    one.asleep = False
    await until(balancer, "one")


async def test_who_is_removed_gets_nothing(shops: tuple[LoadBalancer, Shop, Shop]) -> None:
    balancer, one, two = shops
    for shop in (one, two):
        balancer.add(shop.port)
    await until(balancer, "one", "two")
    balancer.remove(one.port)
    await until(balancer, "two")
