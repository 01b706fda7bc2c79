"""A 429 that Telegram answers delays the calls to its chat, on all instances, and no others."""

import asyncio

import pytest

from genlock.channels.telegram.caller import Caller, make_bot
from genlock.channels.telegram.rate_limiter import Priority, TelegramRateLimiter
from genlock.domain.errors import ChannelBusy
from genlock.sandbox.simulation.virtual_time import VirtualClock
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.databases import sqlite_in_memory
from tests.engine.recorder import Recorder


async def test_a_429_stops_the_calls_of_all_instances(telegram: TelegramSimulator) -> None:
    """The limited chat waits, the others do not."""
    recorder = Recorder()
    store = await sqlite_in_memory(VirtualClock(asyncio.get_running_loop()), recorder)
    callers = [
        Caller(make_bot(telegram.token, telegram.url), TelegramRateLimiter(store, "42"), recorder) for _ in range(2)
    ]
    ann, bob = telegram.add_user("Ann"), telegram.add_user("Bob")
    telegram.faults.once(Fault.TOO_MANY, chat=ann.id, seconds=1)
    loop = asyncio.get_running_loop()

    async def send(caller: Caller, chat: int) -> float:
        await caller.call(caller.bot.send_message, chat=chat, priority=Priority.RESULT, text="hello")
        return loop.time()

    before = loop.time()
    with pytest.raises(ChannelBusy) as busy:
        await send(callers[0], ann.id)
    waiting = asyncio.create_task(send(callers[1], ann.id))
    await send(callers[1], bob.id)
    assert not waiting.done()
    assert busy.value.after == 1.0
    assert await waiting - before >= 1.0
    assert [call.error is None for call in telegram.calls("sendMessage", chat=ann.id)] == [False, True]
    for caller in callers:
        await caller.close()
    await store.close()


async def test_a_webhook_registered_twice_within_a_second_holds_up_no_message(telegram: TelegramSimulator) -> None:
    """Telegram refuses the second registration with a 429 of its own, as when two instances start."""
    recorder = Recorder()
    store = await sqlite_in_memory(VirtualClock(asyncio.get_running_loop()), recorder)
    caller = Caller(make_bot(telegram.token, telegram.url), TelegramRateLimiter(store, "42"), recorder)
    ann = telegram.add_user("Ann")
    telegram.faults.once(Fault.TOO_MANY, method="setWebhook", seconds=3600)

    with pytest.raises(ChannelBusy):
        await caller.call(caller.bot.set_webhook, chat=None, priority=Priority.RESULT, url="https://example.com/hook")
    async with asyncio.timeout(60):
        await caller.call(caller.bot.send_message, chat=ann.id, priority=Priority.RESULT, text="hello")

    await caller.close()
    await store.close()
