"""Telling a user something outside any job, by the address of the account."""

import pytest

from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable
from genlock.domain.events import Event
from genlock.engine.engine import Engine
from genlock.engine.tell import tell
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


@pytest.mark.parametrize("error", [RecipientUnreachable("blocked"), ChannelBusy(3.0), ChannelOutcomeUnknown()])
async def test_a_message_that_may_not_have_arrived_is_reported_as_not_told(
    world: World, engine: Engine, error: Exception
) -> None:
    await world.store.set_account_address(world.account, "42")
    world.channel.faults.add("tell", error)

    assert not await tell(engine.ctx, world.account, TEXT)

    [seen] = world.recorder.of(Event.DELIVER_FAIL, step="tell")
    assert seen.facts["reason"] == type(error).__name__
