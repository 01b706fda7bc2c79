"""The leader: its role is a lease with an epoch, and only work that one instance is enough for depends on it."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.fake_provider import URL, callback_body
from tests.engine.faults import FaultProxy
from tests.engine.world import RULES, World, die, idle, work
from tests.loop_clock import LoopClock

ROLE = RULES.role_seconds


async def test_one_of_many_instances_becomes_the_leader_and_stays_it(world: World) -> None:
    engines = [world.engine() for _ in range(4)]
    for _ in range(5):
        await asyncio.gather(*(engine.leader.elect() for engine in engines))
        assert [engine.active for engine in engines].count(True) == 1
        world.clock.advance(ROLE - 0.5)
    assert len(world.recorder.of(Event.LOCK_ACTIVE)) == 1
    assert world.recorder.of(Event.LOCK_PASSIVE) == []


async def test_a_clean_stop_frees_the_leader_role_at_once(world: World) -> None:
    first, second = world.engine(), world.engine()
    for engine in (first, second):
        await engine.leader.elect()
    assert (first.active, second.active) == (True, False)

    await first.stop()
    await second.leader.elect()

    assert (first.active, second.active) == (False, True)
    assert [seen.facts["epoch"] for seen in world.recorder.of(Event.LOCK_ACTIVE)] == [1, 2]
    assert [seen.facts["epoch"] for seen in world.recorder.of(Event.LOCK_PASSIVE)] == [1]


async def test_a_clean_stop_frees_the_leader_role_before_it_waits_for_slow_work(world: World) -> None:
    first, second = world.engine(), world.engine()
    await first.leader.elect()
    job = await world.running(first)
    world.channel.gate.shut()
    await first.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await world.channel.gate.holds()

    stopping = asyncio.create_task(first.stop())
    await world.recorder.until(Event.LOCK_PASSIVE)
    await second.leader.elect()

    assert second.active
    assert not stopping.done()
    world.channel.gate.open()
    await stopping


async def test_a_stop_during_an_election_frees_the_role_that_was_won(world: World) -> None:
    """The answer would have come after the stop, and the others would have waited for the end of the lease."""
    proxy = FaultProxy(world.store)
    first, second = world.engine(store=proxy), world.engine()
    proxy.faults.add("take_role", asyncio.CancelledError(), done=True)
    with pytest.raises(asyncio.CancelledError):
        await first.leader.elect()

    await first.stop()
    await second.leader.elect()

    assert second.active


async def test_an_instance_that_is_not_the_leader_keeps_the_role_untouched_when_it_stops(world: World) -> None:
    first, second, third = (world.engine() for _ in range(3))
    for engine in (first, second, third):
        await engine.leader.elect()
    await second.stop()
    await third.leader.elect()
    assert (first.active, third.active) == (True, False)


async def test_a_crashed_leader_is_replaced_within_seconds(world: World) -> None:
    first, second = world.engine(), world.engine()
    await first.leader.elect()
    await die(first)
    world.clock.advance(ROLE)
    await second.leader.elect()
    assert world.recorder.of(Event.LOCK_ACTIVE, instance=second.ctx.instance) == [], "the first may still be alive"

    world.clock.advance(0.1)
    await second.leader.elect()

    assert second.active
    assert EngineRules().role_seconds + EngineRules().heartbeat_seconds <= 5


async def test_a_leader_that_cannot_renew_stops_acting_as_leader(world: World, loop_clock: LoopClock) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(role_seconds=60.0), store=proxy)
    await engine.leader.elect()
    assert engine.active
    proxy.faults.add("take_role", StoreUnavailable())
    with pytest.raises(StoreUnavailable):
        await engine.leader.elect()
    loop_clock.advance(60.0)
    assert not engine.active


async def test_the_leader_renews_its_role_once_per_heartbeat_and_the_others_ask_twice(
    world: World, loop_clock: LoopClock
) -> None:
    leader_store, other_store = FaultProxy(world.store), FaultProxy(world.store)
    rules = replace(RULES, heartbeat_seconds=60.0)  # much longer than a slow machine takes to ask
    leader, other = world.engine(rules, store=leader_store), world.engine(rules, store=other_store)
    for _ in range(6):
        await leader.leader.elect_when_due()
        await other.leader.elect_when_due()
        loop_clock.advance(rules.heartbeat_seconds / 2)

    assert leader_store.answered["take_role"] == 3
    assert other_store.answered["take_role"] == 6
    assert (leader.active, other.active) == (True, False)


async def test_a_leader_notices_that_it_was_replaced(world: World) -> None:
    """It was paused so long that another took over."""
    first, second = world.engine(), world.engine()
    await first.leader.elect()
    world.clock.advance(ROLE + 1)
    await second.leader.elect()
    assert first.active
    assert second.active

    await first.leader.elect()

    assert (first.active, second.active) == (False, True)
    assert len(world.recorder.of(Event.LOCK_PASSIVE, instance=first.ctx.instance, epoch=1)) == 1


async def test_two_instances_that_believe_to_be_the_leader_do_no_harm(world: World) -> None:
    """The old one's writes name its epoch, which is over."""
    old, new = world.engine(), world.engine()
    await old.leader.elect()
    await old.callback("fake", None, callback_body(task="task-77"))
    await idle(old)
    world.clock.advance(EngineRules().orphan_expire_seconds + 1)
    await new.leader.elect()
    assert old.active
    assert new.active

    await old.sweeper.expire_orphans()
    assert len(await world.store.callbacks(InboxState.ORPHAN, 10)) == 1
    await new.sweeper.expire_orphans()
    assert len(await world.store.callbacks(InboxState.EXPIRED, 10)) == 1
    assert len(world.recorder.of(Event.ORPHAN_EXPIRED)) == 1


async def test_an_instance_that_is_not_the_leader_takes_orders_callbacks_and_deliveries(
    world: World, engine: Engine
) -> None:
    passive = world.engine()
    for instance in (engine, passive):
        await instance.leader.elect()
    assert not passive.active

    job = await world.running(passive)
    await world.call_back(passive, job)
    claimed = await world.ended(engine)
    await work(passive)

    for row in (job, claimed):
        assert (await world.see(row)).delivery is Delivery.DELIVERED
