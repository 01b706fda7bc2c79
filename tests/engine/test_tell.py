"""Telling a user something outside any job, by the address of the account."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.queued_message import QUEUED
from genlock.engine.engine import Engine
from genlock.engine.periodic import PeriodicTask
from genlock.engine.tell import AFTER_SECONDS, WAITING_SECONDS_MAX, make_message, send_queued, send_waiting, tell
from tests.engine.faults import FaultProxy
from tests.engine.world import World

TEXT = "<b>Hello</b>"


async def test_a_user_with_an_address_is_told(world: World, engine: Engine) -> None:
    await world.store.set_account_address(world.account, "42")

    assert await tell(engine.ctx, world.account, TEXT)

    assert world.channel.told == [("42", TEXT)]


async def test_a_user_without_an_address_is_not_told(world: World, engine: Engine) -> None:
    assert not await tell(engine.ctx, world.account, TEXT)
    assert world.channel.told == []


async def test_an_unknown_account_is_not_told(engine: Engine) -> None:
    assert not await tell(engine.ctx, 10**9, TEXT)


async def test_an_account_of_a_channel_that_is_not_configured_is_not_told(world: World, engine: Engine) -> None:
    account = await world.store.ensure_account("pigeon post", "", "7")
    await world.store.set_account_address(account, "7")

    assert not await tell(engine.ctx, account, TEXT)


@pytest.mark.parametrize("error", [RecipientUnreachable("blocked"), ChannelOutcomeUnknown()])
async def test_a_message_that_may_not_have_arrived_is_reported_as_not_told(
    world: World, engine: Engine, error: Exception
) -> None:
    await world.store.set_account_address(world.account, "42")
    world.channel.faults.add("tell", error)

    assert not await tell(engine.ctx, world.account, TEXT)

    [seen] = world.recorder.of(Event.DELIVER_FAIL, step="tell")
    assert seen.facts["reason"] == type(error).__name__


async def test_a_message_that_the_channel_asks_to_wait_with_is_sent_later_once(world: World, engine: Engine) -> None:
    await world.store.set_account_address(world.account, "42")
    world.channel.faults.add("tell", ChannelBusy(30.0), ChannelBusy(10.0))

    assert await tell(engine.ctx, world.account, TEXT)
    for seconds in (0, 29, 1, 9):
        world.clock.advance(seconds)
        await send_waiting(engine.ctx)
        assert world.channel.told == []
    world.clock.advance(1)
    await asyncio.gather(*(send_waiting(engine.ctx) for _ in range(3)))

    assert world.channel.told == [("42", TEXT)]
    assert await world.store.kv_list(QUEUED) == []


async def test_a_stop_does_not_cut_off_a_waiting_message_that_is_being_sent(world: World, engine: Engine) -> None:
    """It is not stored any more, so that another instance would not send it."""
    await world.store.set_account_address(world.account, "42")
    world.channel.faults.add("tell", ChannelBusy(30.0))
    assert await tell(engine.ctx, world.account, TEXT)
    world.clock.advance(30)
    channel = FaultProxy(world.channel)
    gate = channel.gate("tell")
    gate.shut()
    stopping = world.engine(channel=channel)
    await stopping.start([PeriodicTask(name="send_waiting", period_seconds=1, run=partial(send_waiting, stopping.ctx))])
    await gate.holds()
    assert await world.store.kv_list(QUEUED) == []

    stop = asyncio.create_task(stopping.stop())
    asyncio.get_running_loop().call_soon(gate.open)
    await stop

    assert world.channel.told == [("42", TEXT)]


async def test_a_stop_does_not_cut_off_a_message_that_is_sent_by_the_instance_that_queued_it(
    world: World, engine: Engine
) -> None:
    await world.store.set_account_address(world.account, "42")
    message = make_message(world.account, TEXT)
    await world.store.kv_put(message.key, message.dump())
    channel = FaultProxy(world.channel)
    gate = channel.gate("tell")
    gate.shut()

    sending = asyncio.create_task(send_queued(world.engine(channel=channel).ctx, message))
    await gate.holds()
    sending.cancel()
    asyncio.get_running_loop().call_soon(gate.open)
    await asyncio.wait([sending])
    assert await send_queued(engine.ctx, message), "another instance has sent it"

    assert world.channel.told == [("42", TEXT)]


async def test_a_message_in_the_queue_is_left_to_the_instance_that_queued_it_for_a_while(
    world: World, engine: Engine
) -> None:
    """An operator's page says whether the user was reached."""
    await world.store.set_account_address(world.account, "42")
    message = make_message(world.account, TEXT)
    await world.store.kv_put(message.key, message.dump())

    world.clock.advance(AFTER_SECONDS - 1)
    await send_waiting(engine.ctx)
    assert world.channel.told == []
    world.clock.advance(1)
    await send_waiting(engine.ctx)

    assert world.channel.told == [("42", TEXT)]


async def test_a_message_that_could_not_be_sent_for_a_day_is_given_up(world: World, engine: Engine) -> None:
    await world.store.set_account_address(world.account, "42")
    world.channel.faults.add("tell", *(ChannelBusy(80_000.0) for _ in range(9)))
    assert await tell(engine.ctx, world.account, TEXT)
    for _ in range(3):
        world.clock.advance(80_000)
        await send_waiting(engine.ctx)

    assert await world.store.kv_list(QUEUED) == []
    assert world.channel.told == []


async def test_a_leader_without_the_users_bot_leaves_a_waiting_message_to_others(world: World, engine: Engine) -> None:
    """As during a deploy that adds a bot: the leader may still be an instance that does not have it."""
    account = await world.store.ensure_account("chat", "new", "7")
    await world.store.set_account_address(account, "7")
    world.channel.faults.add("tell", ChannelBusy(30.0))
    assert await tell(engine.ctx, account, TEXT)

    world.clock.advance(30)
    await send_waiting(replace(world.engine().ctx, bots=frozenset({"old"})))
    assert world.channel.told == []
    await send_waiting(engine.ctx)

    assert world.channel.told == [("7", TEXT)]


async def test_a_message_of_an_instance_without_the_users_bot_is_left_to_others(world: World, engine: Engine) -> None:
    """Such as one about a webhook endpoint: every instance serves those of all bots."""
    account = await world.store.ensure_account("chat", "new", "7")
    await world.store.set_account_address(account, "7")
    message = make_message(account, TEXT)
    await world.store.kv_put(message.key, message.dump())

    assert not await send_queued(replace(world.engine().ctx, bots=frozenset({"old"})), message)
    world.clock.advance(AFTER_SECONDS)
    await send_waiting(engine.ctx)

    assert world.channel.told == [("7", TEXT)]


async def test_a_waiting_message_is_not_lost_although_the_database_does_not_answer(
    world: World, engine: Engine
) -> None:
    await world.store.set_account_address(world.account, "42")
    world.channel.faults.add("tell", ChannelBusy(30.0))
    assert await tell(engine.ctx, world.account, TEXT)
    store = FaultProxy(world.store)
    store.faults.add("account", StoreUnavailable())

    world.clock.advance(30)
    with pytest.raises(StoreUnavailable):
        await send_waiting(world.engine(store=store).ctx)
    await send_waiting(engine.ctx)

    assert world.channel.told == [("42", TEXT)]


async def test_a_message_to_a_bot_that_was_removed_is_given_up_after_a_day(world: World, engine: Engine) -> None:
    account = await world.store.ensure_account("chat", "removed", "7")
    await world.store.set_account_address(account, "7")
    world.channel.faults.add("tell", ChannelBusy(30.0))
    assert await tell(engine.ctx, account, TEXT)

    world.clock.advance(WAITING_SECONDS_MAX + 1)
    await send_waiting(replace(engine.ctx, bots=frozenset({"other"})))

    assert await world.store.kv_list(QUEUED) == []
    assert world.channel.told == []
