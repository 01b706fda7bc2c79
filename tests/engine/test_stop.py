"""A clean stop finishes or releases whatever the instance holds."""

import asyncio
from collections.abc import Awaitable

import pytest

from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState
from genlock.engine.cancellation import uninterrupted
from genlock.engine.collect import store_callback
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.periodic import PeriodicTask
from tests.engine.fake_provider import URL, callback_body
from tests.engine.faults import FaultProxy, Gate
from tests.engine.slow_deliveries import deliver_slowly
from tests.engine.world import SILENT, World, idle, work


async def test_a_clean_stop_finishes_what_it_holds(world: World) -> None:
    engine = world.engine()
    await engine.start()
    job = await deliver_slowly(world, engine)
    stopping = asyncio.create_task(engine.stop())
    await asyncio.sleep(0)
    world.channel.gate.open()
    await stopping

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert world.channel.notices == [job.id]


async def test_a_clean_stop_releases_at_once_what_it_cannot_finish(world: World) -> None:
    engine, other = world.engine(EngineRules(stop_seconds=0.01)), world.engine()
    await engine.start()
    job = await deliver_slowly(world, engine)
    await engine.stop()

    world.channel.gate.open()
    assert [row.id for row in await work(other)] == [job.id]
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.channel.shown) == 1
    world.clock.advance(SILENT + 1)
    await other.worker.heartbeat()
    assert world.recorder.of(Event.INSTANCE_DEAD) == []


async def test_a_stopping_instance_claims_nothing_new_but_still_stores_callbacks(world: World) -> None:
    engine = world.engine()
    running = await world.running(engine)
    await engine.stop()

    order = await engine.order(world.order())
    await engine.callback("fake", world.provider.token(running), callback_body(task="task-1", urls=[URL]))

    assert engine.worker.busy == 0
    assert (order.state, order.lease_owner) == (State.QUEUED, None)
    assert len(await world.store.claim_callbacks(10, 1)) == 0
    world.clock.advance(4)
    assert len(await world.store.claim_callbacks(10, 1)) == 1


async def stop_during(world: World, engine: Engine, proxy: FaultProxy, operation: str, call: Awaitable[object]) -> None:
    """Stop an instance that has nothing else to do while a statement that leases a job to it is on its way."""
    gate = proxy.gate(operation)
    gate.shut()
    calling = asyncio.ensure_future(call)
    await gate.holds()
    stopping = asyncio.create_task(engine.stop())
    await proxy.until("heartbeat", 2)  # the second one is sent because it waits
    assert not stopping.done()
    gate.open()
    await asyncio.gather(calling, stopping)
    assert engine.worker.busy == 0
    assert [job.lease_owner for job in await world.store.jobs(account_id=world.account)] == [None]


async def test_a_stop_waits_for_an_order_that_is_being_accepted_and_submits_it(world: World) -> None:
    """It would be leased to a process that has ended, or its submit would be cut off and its outcome unknown."""
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(heartbeat_seconds=0.01), store=proxy)

    await stop_during(world, engine, proxy, "accept_job", engine.order(world.order(request_key="at-the-stop")))

    assert len(world.provider.created) == 1


async def test_a_stop_waits_for_a_callback_that_is_ending_its_job_and_delivers_it(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(heartbeat_seconds=0.01), store=proxy)
    job = await world.running(engine)

    body = callback_body(task="task-1", urls=[URL])
    await stop_during(world, engine, proxy, "end_job", engine.callback("fake", world.provider.token(job), body))

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert world.channel.notices == [job.id]


async def test_a_stop_waits_for_a_cancellation_and_tells_the_user(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(heartbeat_seconds=0.01), store=proxy)
    job = await world.running(engine)

    await stop_during(world, engine, proxy, "end_job", engine.cancel(job.id, "user"))

    assert world.channel.notices == [job.id]


async def test_a_stop_waits_for_orders_only_for_a_limited_time_and_starts_none_after_it(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(stop_seconds=0.01), store=proxy)
    proxy.gate("accept_job").shut()
    ordering = asyncio.create_task(engine.order(world.order()))
    await proxy.gate("accept_job").holds()

    await engine.stop()
    proxy.gate("accept_job").open()
    await ordering

    assert engine.worker.busy == 0
    assert world.provider.created == []


async def test_a_stopping_instance_sends_heartbeats_while_it_finishes_long_work(world: World) -> None:
    """Else a peer would take over a send that is on the proxy, and could not know its outcome."""
    proxy = FaultProxy(world.store)
    engine, peer = world.engine(EngineRules(heartbeat_seconds=0.01), store=proxy), world.engine()
    await engine.start()
    job = await deliver_slowly(world, engine)
    await world.recorder.until(Event.LOCK_ACTIVE)  # else its stop has no role to give up
    stopping = asyncio.create_task(engine.stop())
    await world.recorder.until(Event.LOCK_PASSIVE)
    for _ in range(4):
        world.clock.advance(SILENT - 0.5)
        await proxy.until("heartbeat", 2)  # the first may have been on its way
        await peer.worker.heartbeat()
        assert await world.store.claim_jobs(1, peer.ctx.lease) == []
    world.channel.gate.open()
    await stopping

    assert world.recorder.of(Event.INSTANCE_DEAD) == []
    row = await world.see(job)
    assert (row.lease_token, row.delivery, row.hold_state) == (job.lease_token, Delivery.DELIVERED, HoldState.CAPTURED)
    assert [call.operation for call in world.channel.calls] == ["put", "notify"]


async def test_a_stop_that_waits_for_a_message_keeps_the_instance_alive_and_passes_on_the_role(world: World) -> None:
    """A message of a broadcast may wait for seconds: longer than an instance may be silent."""
    proxy, sent = FaultProxy(world.store), Gate()
    sent.shut()
    engine, peer = world.engine(EngineRules(heartbeat_seconds=0.01), store=proxy), world.engine()
    broadcast = PeriodicTask(name="broadcast", period_seconds=60, run=lambda: uninterrupted(sent.through()))
    await engine.leader.elect()
    await engine.start([broadcast])
    job = await deliver_slowly(world, engine)
    await sent.holds()
    stopping = asyncio.create_task(engine.stop())
    await world.recorder.until(Event.LOCK_PASSIVE)
    await peer.leader.elect()
    assert peer.active
    for _ in range(4):
        world.clock.advance(SILENT - 0.5)
        await proxy.until("heartbeat", 2)  # the first may have been on its way
        await peer.worker.heartbeat()
        assert await world.store.claim_jobs(1, peer.ctx.lease) == []
    assert sent.waiting == 1
    sent.open()
    world.channel.gate.open()
    await stopping

    assert world.recorder.of(Event.INSTANCE_DEAD) == []
    assert (await world.see(job)).lease_token == job.lease_token


async def test_a_stop_that_cannot_pass_on_the_role_releases_its_jobs_all_the_same(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine, peer = world.engine(EngineRules(stop_seconds=0.01), store=proxy), world.engine()
    await engine.leader.elect()
    job = await deliver_slowly(world, engine)
    proxy.faults.add("release_role", StoreUnavailable())
    with pytest.raises(StoreUnavailable):
        await engine.stop()

    world.channel.gate.open()
    assert [row.id for row in await work(peer)] == [job.id]


async def test_a_stopped_instance_leaves_no_task_behind(world: World) -> None:
    engine = world.engine(EngineRules(stop_seconds=0.01))
    before = asyncio.all_tasks()
    await engine.start()
    await deliver_slowly(world, engine)
    await engine.stop()
    assert asyncio.all_tasks() == before


async def test_a_stop_waits_for_callbacks_only_for_a_limited_time(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(stop_seconds=0.01), store=proxy)
    job = await world.running(engine)
    proxy.gate("end_job").shut()
    body = callback_body(task="task-1", urls=[URL])
    engine.worker.start_callback(await store_callback(engine.ctx, "fake", world.provider.token(job), body))
    await proxy.gate("end_job").holds()

    await engine.stop()

    assert engine.worker.busy == 0
    assert proxy.gate("end_job").waiting == 0
    world.clock.advance(4)
    other = world.engine()
    await other.sweeper.sweep()
    await idle(other)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_stopping_twice_or_without_a_start_is_harmless(world: World, engine: Engine) -> None:
    await engine.stop()
    await engine.stop()
    assert await world.store.heartbeat("other", 1000.0) == []
