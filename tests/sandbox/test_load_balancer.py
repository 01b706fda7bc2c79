"""The load balancer in front of the instances."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from genlock.sandbox.load_balancer import LoadBalancer
from tests.changes import PATIENCE_SECONDS


@dataclass
class Backend:
    """A server behind the load balancer that can be not ready or hang."""

    name: str
    port: int = 0
    ready: bool = True
    served: int = 0
    #: cleared, the server hangs as a paused process does
    running: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.running.set()

    async def answer(self, request: web.Request) -> web.Response:
        await self.running.wait()
        if request.path == "/ready":
            return web.Response(status=200 if self.ready else 503)
        self.served += 1
        return web.Response(text=self.name)


@asynccontextmanager
async def running_backend(name: str) -> AsyncIterator[Backend]:
    backend = Backend(name)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", backend.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    backend.port = runner.addresses[0][1]
    try:
        yield backend
    finally:
        await runner.cleanup()


async def ask(balancer: LoadBalancer) -> str:
    """Make one request over a new connection; return the answer or the error."""
    try:
        async with aiohttp.ClientSession() as session, session.post(f"{balancer.url}/") as response:
            return await response.text() if response.status == 200 else str(response.status)
    except aiohttp.ClientError as error:
        return type(error).__name__


async def wait_for_answers(balancer: LoadBalancer, *answers: str) -> None:
    """Wait until ten requests in a row get exactly these answers."""
    async with asyncio.timeout(30):
        while {await ask(balancer) for _ in range(10)} != set(answers):
            await balancer._probed.wait()


@pytest.fixture
async def backends() -> AsyncIterator[tuple[LoadBalancer, Backend, Backend]]:
    async with AsyncExitStack() as stack:
        balancer = await stack.enter_async_context(LoadBalancer.running())
        one, two = [await stack.enter_async_context(running_backend(name)) for name in ("one", "two")]
        yield balancer, one, two


async def test_connections_go_round_robin_to_ready_instances(backends: tuple[LoadBalancer, Backend, Backend]) -> None:
    balancer, one, two = backends
    assert await ask(balancer) == "503"
    for backend in (one, two):
        balancer.add(backend.port)
    await balancer.wait_until_ready()
    await wait_for_answers(balancer, "one", "two")
    served = (one.served, two.served)
    for _ in range(10):
        await ask(balancer)
    assert (one.served - served[0], two.served - served[1]) == (5, 5)


async def test_an_instance_that_is_not_ready_gets_no_connections(
    backends: tuple[LoadBalancer, Backend, Backend],
) -> None:
    balancer, one, two = backends
    for backend in (one, two):
        balancer.add(backend.port)
    one.ready = False
    await wait_for_answers(balancer, "two")
    one.ready = True
    await wait_for_answers(balancer, "one", "two")


async def test_connections_to_a_hanging_instance_are_aborted(
    backends: tuple[LoadBalancer, Backend, Backend],
) -> None:
    balancer, one, two = backends
    for backend in (one, two):
        balancer.add(backend.port)
    await wait_for_answers(balancer, "one", "two")
    one.running.clear()
    asked = [asyncio.create_task(ask(balancer)) for _ in range(2)]
    assert {await answer for answer in asked} == {"ServerDisconnectedError", "two"}
    await wait_for_answers(balancer, "two")
    one.running.set()
    await wait_for_answers(balancer, "one", "two")


async def test_the_only_instance_keeps_its_connections_while_it_is_slow(
    backends: tuple[LoadBalancer, Backend, Backend],
) -> None:
    balancer, one, _ = backends
    balancer.add(one.port)
    await wait_for_answers(balancer, "one")
    one.running.clear()
    asked = asyncio.create_task(ask(balancer))
    for _ in range(2):  # probes that got no answer in time
        await balancer._probed.wait()
    one.running.set()
    assert await asked == "one"


async def test_a_removed_instance_gets_no_connections(backends: tuple[LoadBalancer, Backend, Backend]) -> None:
    balancer, one, two = backends
    for backend in (one, two):
        balancer.add(backend.port)
    await wait_for_answers(balancer, "one", "two")
    balancer.remove(one.port)
    await wait_for_answers(balancer, "two")


async def test_a_connection_is_closed_although_its_task_is_cancelled_before_it_begins() -> None:
    balancer = LoadBalancer()

    def accept_and_stop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        balancer._accept(reader, writer)
        for task in balancer._tasks:
            task.cancel()

    async with await asyncio.start_server(accept_and_stop, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await reader.read() == b""
        writer.close()
