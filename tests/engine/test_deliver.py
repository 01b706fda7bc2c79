"""Delivering: a result is put on its messages, in order, once."""

import pytest

from genlock.domain.delivery import Level, Step
from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    LevelRefused,
)
from genlock.domain.job import Delivery
from genlock.domain.money import HoldState
from genlock.engine.engine import Engine
from tests.engine.fake_channel import Call
from tests.engine.fake_provider import URL
from tests.engine.faults import FaultProxy
from tests.engine.steps import URLS, die_at
from tests.engine.world import LEASE, PRICE, World, idle, work

# the way of a delivery


async def test_a_result_replaces_the_message_with_the_button(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    await work(engine)

    done = await world.see(job)
    assert world.channel.messages == {job.placeholder: f"address {URL}"}
    [part] = done.parts
    assert (part.step, part.message, part.file) == (Step.DONE, job.placeholder, f"file-of-{job.placeholder}")
    assert (done.delivery, done.hold_state, done.due_at, done.lease_owner) == (
        *(Delivery.DELIVERED, HoldState.CAPTURED),
        *(None, None),
    )


async def test_delivered_at_is_set_after_the_channel_confirmed_and_never_before(world: World, engine: Engine) -> None:
    world.channel.gate.shut()
    job = await world.ended(engine)
    await world.claim_one(engine)
    await world.channel.gate.holds()
    during = await world.see(job)

    world.clock.advance(5)
    world.channel.gate.open()
    await idle(engine)

    assert (during.delivery, during.delivered_at, during.hold_state) == (Delivery.SENDING, None, HoldState.HELD)
    done = await world.see(job)
    assert (done.delivered_at, done.hold_state) == (world.clock.now(), HoldState.CAPTURED)


async def test_several_parts_are_shown_in_order_each_on_its_own_message(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    await work(engine)

    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]
    messages = [message for message, _ in world.channel.shown]
    assert messages[0] == job.placeholder
    assert len(set(messages)) == len(URLS)
    assert [part.message for part in (await world.see(job)).parts] == messages
    assert world.channel.notices == [job.id]


async def test_a_delivery_that_failed_continues_where_it_stopped(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    proxy = FaultProxy(world.channel)
    proxy.faults.add("create_placeholder", ChannelBusy(1))
    await work(world.engine(channel=proxy))
    assert [part.step for part in (await world.see(job)).parts] == [Step.DONE, Step.PUT, Step.PUT, Step.PUT]
    world.channel.calls.clear()

    world.clock.advance(1)
    await work(engine)

    assert [(call.operation, call.index) for call in world.channel.calls] == [
        *(
            ("create_placeholder", 1),
            ("put", 1),
            ("create_placeholder", 2),
            ("put", 2),
            ("create_placeholder", 3),
            ("put", 3),
        ),
        ("notify", 0),
    ]
    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]


async def test_parts_shown_by_a_crashed_instance_are_not_shown_again(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    proxy = FaultProxy(world.store)
    dying = world.engine(store=proxy)
    gate = proxy.gate("finish_delivery")
    await die_at(gate, world, dying)
    world.channel.calls.clear()

    world.clock.advance(LEASE + 1)
    await work(engine)

    # Whether the last one was confirmed died with the instance, so it is put again: the same words on the same message.
    assert [call for call in world.channel.calls if call.operation != "notify"] == [
        Call("put", job.id, 3, Level.ADDRESS, (await world.see(job)).parts[3].message)
    ]
    assert len(world.channel.shown) == len(URLS)
    assert (await world.see(job)).hold_state is HoldState.CAPTURED


async def test_a_confirmed_part_is_saved_before_the_next_is_begun(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    proxy = FaultProxy(world.channel)
    dying = world.engine(channel=proxy)
    gate = proxy.gate("create_placeholder")
    await die_at(gate, world, dying)
    world.channel.calls.clear()

    world.clock.advance(LEASE + 1)
    await work(engine)

    assert world.channel.calls[0] == Call("create_placeholder", job.id, 1)
    assert len(world.channel.shown) == len(URLS)


# levels


async def test_a_refused_level_leads_to_the_next_on_the_same_message(world: World, engine: Engine) -> None:
    world.channel.refused = {Level.ADDRESS, Level.BYTES, Level.DOCUMENT}
    job = await world.ended(engine)
    await work(engine)

    assert world.channel.levels() == [Level.ADDRESS, Level.BYTES, Level.DOCUMENT, Level.TEXT]
    assert {call.message for call in world.channel.calls if call.operation == "put"} == {job.placeholder}
    assert world.channel.messages == {job.placeholder: f"text {URL}"}
    assert await world.spent() == PRICE


@pytest.mark.parametrize("reached", [Level.BYTES, Level.DOCUMENT, Level.TEXT])
async def test_the_level_reached_is_kept_over_a_retry(world: World, engine: Engine, reached: Level) -> None:
    ladder = list(Level)
    world.channel.refused = set(ladder[: ladder.index(reached)])
    job = await world.ended(engine)
    world.channel.faults.add("put", *(LevelRefused() for _ in world.channel.refused), ChannelOutcomeUnknown())
    await work(engine)
    assert (await world.see(job)).parts[0].level is reached

    world.channel.calls.clear()
    world.clock.advance(10)
    await work(world.engine())

    assert world.channel.levels() == [reached]
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_the_level_reached_is_kept_by_the_instance_that_takes_over(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    proxy = FaultProxy(world.store)
    dying = world.engine(store=proxy)
    world.channel.refused = {Level.ADDRESS}
    gate = proxy.gate("finish_delivery")
    await die_at(gate, world, dying)
    world.channel.calls.clear()

    world.clock.advance(LEASE + 1)
    await work(engine)

    assert world.channel.levels() == [Level.BYTES]
    assert len(world.channel.shown) == 1
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_part_refused_at_every_level_is_undeliverable_and_the_hold_released(
    world: World, engine: Engine
) -> None:
    world.channel.refused = set(Level)
    job = await world.ended(engine)
    await work(engine)

    job = await world.see(job)
    assert (job.delivery, job.hold_state, job.due_at) == (Delivery.UNDELIVERABLE, HoldState.RELEASED, None)
    assert [row.id for row in await world.store.jobs_needing_attention(10)] == [job.id]
    assert world.channel.notices == []
    assert await world.spent() == 0
