"""Telegram's limits hold for all instances together, most of the allowed rate is used, and a 429 is obeyed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from genlock.app.engine import make_engine
from genlock.channels.telegram.caller import Caller, make_bot
from genlock.channels.telegram.channel import TelegramChannel
from genlock.channels.telegram.rate_limiter import BOT, CHAT, GROUP, SCREENS, Priority, TelegramRateLimiter
from genlock.domain.delivery import plan
from genlock.domain.errors import ChannelBusy, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, NewJob, State, Verdict
from genlock.domain.result import PartKind, Piece
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.media.download import Downloads
from genlock.ports import EndJob, Store
from genlock.sandbox.simulation.virtual_time import VirtualClock
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.channels.telegram.plain_texts import PlainTexts
from tests.databases import sqlite_in_memory
from tests.engine.fake_provider import FakeProvider
from tests.engine.recorder import Recorder
from tests.media.thread_reader import ThreadReader
from tests.providers.accelerated_time import on_accelerated_time, open_on_accelerated_time, run_accelerated

RESULTS, CHATS, INSTANCES = 500, 300, 3
#: leases long enough that a slow database does not expire them in accelerated time
RULES = EngineRules(silent_seconds=600.0, lease_seconds=600.0, capacity=RESULTS // INSTANCES + 20)
SPEED = 100.0


# many results at once


@asynccontextmanager
async def instances(url: str, telegram: TelegramSimulator) -> AsyncIterator[list[Engine]]:
    async with AsyncExitStack() as stack:
        engines = []
        for _ in range(INSTANCES):
            recorder = Recorder()
            clock = VirtualClock(asyncio.get_running_loop())
            store = await open_on_accelerated_time(url, recorder, clock)
            stack.push_async_callback(store.close)
            limiter = TelegramRateLimiter(store, "42")
            caller = Caller(make_bot(telegram.token, telegram.url), limiter, recorder)
            stack.push_async_callback(caller.close)
            channel = TelegramChannel(caller, PlainTexts(), Downloads(), ThreadReader())
            channels = {"telegram": channel}
            engines.append(
                make_engine(store, recorder, providers={"mill": FakeProvider()}, channels=channels, rules=RULES)
            )
        yield engines


async def ended_jobs(store: Store, telegram: TelegramSimulator) -> None:
    """Create jobs that have all just ended, each with its placeholder in one of the chats."""
    account_id = await store.ensure_account("telegram", "42", "1")
    world = telegram.state
    users = [telegram.add_user(f"P{number}") for number in range(CHATS)]

    async def one(number: int) -> None:
        chat = users[number % CHATS].id
        message = world.post(world.chats[chat], world.bot_id, {"text": "accepted"}, silent=True)
        order = NewJob(
            account_id=account_id,
            request_key=str(number),
            provider="mill",
            channel="telegram",
            address=f"{chat}/en",
            model="m",
            input="{}",
            price=0,
            deadline_seconds=3600,
            placeholder=str(message.id),
        )
        job = (await store.accept_job(order, None)).job
        parts = plan([Piece(kind=PartKind.TEXT, value=f"the text of {number}")])
        ended = await store.end_job(EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts), None)
        assert ended.verdict is Verdict.WON

    await asyncio.gather(*(one(number) for number in range(RESULTS)))


@pytest.mark.timeout(400)
def test_five_hundred_results_to_three_hundred_chats_on_three_instances(
    migrated_postgres_url: str, record_property: Any
) -> None:
    """There is no 429, and at least 90 % of the allowed 30 calls a second are used for half a minute."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with (
            running_telegram(limiter=True, clock=loop.time) as telegram,
            instances(migrated_postgres_url, telegram) as engines,
        ):
            store = engines[0].ctx.store
            await ended_jobs(store, telegram)
            started = loop.time()
            for engine in engines:
                await engine.start()
            await telegram.until(lambda: len(telegram.journal) >= 2 * RESULTS, seconds=600)  # a result and its notice
            calls = len(telegram.journal)
            seconds = loop.time() - started
            for engine in engines:
                await engine.stop()
            burst = telegram.limiter.limits.bot_per_second
            used = (calls - burst) / (telegram.limiter.limits.bot_per_second * seconds)
            record_property("calls", calls)
            record_property("seconds", round(seconds, 1))
            record_property("share of the allowed rate", round(used, 3))
            assert telegram.limiter.refused == 0
            assert calls == 2 * RESULTS
            jobs = await store.jobs(limit=RESULTS)
            assert {job.delivery for job in jobs} == {Delivery.DELIVERED}
            assert used >= 0.9

    run_accelerated(scenario(), SPEED)


# one or two instances


@asynccontextmanager
async def some_limiters(count: int = 1) -> AsyncIterator[list[TelegramRateLimiter]]:
    clock = VirtualClock(asyncio.get_running_loop())
    store = on_accelerated_time(await sqlite_in_memory(clock, Recorder()))
    yield [TelegramRateLimiter(store, "42") for _ in range(count)]
    await store.close()


async def times(
    limiters: list[TelegramRateLimiter], calls: list[tuple[int, Priority]]
) -> list[tuple[float, int, Priority]]:
    """Return when each call got its permit, in order."""
    loop = asyncio.get_running_loop()
    start, found = loop.time(), []

    async def one(number: int, chat: int, priority: Priority) -> None:
        await limiters[number % len(limiters)].acquire(chat, priority)
        found.append((loop.time() - start, chat, priority))

    await asyncio.gather(*(one(number, chat, priority) for number, (chat, priority) in enumerate(calls)))
    return found


def quickly(scenario: Any) -> None:
    run_accelerated(scenario, 1000.0)


@pytest.mark.parametrize(("chat", "rate", "allowed"), [(5, CHAT, (3, 1.0)), (-5, GROUP, (20, 60.0))])
@pytest.mark.parametrize("instances", [1, 3])
def test_calls_to_one_chat_stay_within_its_limit(chat: int, rate: Any, allowed: Any, instances: int) -> None:
    async def scenario() -> None:
        async with some_limiters(instances) as limiters:
            found = sorted(time for time, _, _ in await times(limiters, [(chat, Priority.RESULT)] * 5))
            for earlier, later in zip(found, found[rate.burst :], strict=False):
                assert later - earlier >= rate.interval * 0.9
            count, seconds = allowed
            assert all(later - earlier >= seconds * 0.9 for earlier, later in zip(found, found[count:], strict=False))

    quickly(scenario())


@pytest.mark.parametrize("instances", [1, 3])
def test_a_burst_of_screens_does_not_wait_and_leaves_the_permits_of_results(instances: int) -> None:
    async def scenario() -> None:
        async with some_limiters(instances) as limiters:
            found = sorted(time for time, _, _ in await times(limiters, [(5, Priority.SCREEN)] * (SCREENS.burst + 3)))
            assert found[SCREENS.burst - 1] < 0.9
            assert found[-1] >= 3 * SCREENS.interval * 0.9
            [result] = await times(limiters, [(5, Priority.RESULT)])
            assert result[0] < 0.2

    quickly(scenario())


def test_a_429_stops_screens_and_results_of_a_chat() -> None:
    async def scenario() -> None:
        async with some_limiters(2) as [one, other]:
            await one.stop(5, 12.0)
            found = await times([other], [(5, Priority.SCREEN), (5, Priority.RESULT)])
            assert all(time == pytest.approx(12.0, abs=0.4) for time, _, _ in found)

    quickly(scenario())


def test_calls_to_all_chats_together_stay_within_the_limit_of_the_bot() -> None:
    async def scenario() -> None:
        async with some_limiters(3) as limiters:
            found = [time for time, _, _ in await times(limiters, [(chat, Priority.RESULT) for chat in range(1, 301)])]
            assert all(later - earlier >= BOT.interval * 0.99 for earlier, later in pairwise(sorted(found)))
            assert max(found) <= 300 * BOT.interval * 1.05

    quickly(scenario())


def test_results_go_before_screens() -> None:
    async def scenario() -> None:
        async with some_limiters() as limiters:
            screens = [(chat, Priority.SCREEN) for chat in range(1, 101)]
            results = [(chat, Priority.RESULT) for chat in range(101, 151)]
            found = await times(limiters, [*screens, *results])
            order = [priority for _, _, priority in found]
            assert order.index(Priority.RESULT) < 20
            assert set(order[-80:]) == {Priority.SCREEN}

    quickly(scenario())


def test_progress_gets_a_permit_only_if_no_other_call_wants_it() -> None:
    async def scenario() -> None:
        async with some_limiters() as [limiter]:
            await limiter.acquire(5, Priority.PROGRESS)
            with pytest.raises(ChannelBusy):  # the last permit is kept for a result
                await limiter.acquire(5, Priority.PROGRESS)
            loop = asyncio.get_running_loop()
            before = loop.time()
            await limiter.acquire(5, Priority.RESULT)
            assert loop.time() - before < 0.1
            waiting = [asyncio.ensure_future(limiter.acquire(6, Priority.RESULT)) for _ in range(5)]
            await asyncio.sleep(0.2)  # on the accelerated clock
            with pytest.raises(ChannelBusy):  # other calls wait
                await limiter.acquire(7, Priority.PROGRESS)
            await asyncio.gather(*waiting)
            await asyncio.sleep(10.0)  # on the accelerated clock
            await limiter.acquire(5, Priority.PROGRESS)

    quickly(scenario())


def test_a_refused_progress_call_learns_how_long_the_chat_or_the_bot_is_stopped() -> None:
    async def scenario() -> None:
        async with some_limiters() as [limiter]:
            await limiter.stop(5, 30.0)
            with pytest.raises(ChannelBusy) as busy:
                await limiter.acquire(5, Priority.PROGRESS)
            assert busy.value.after == pytest.approx(30.0, abs=1.0)
            await limiter.stop(None, 60.0)
            with pytest.raises(ChannelBusy) as busy:
                await limiter.acquire(6, Priority.PROGRESS)
            assert busy.value.after == pytest.approx(60.0, abs=1.0)

    quickly(scenario())


def test_a_429_stops_one_chat_for_all_instances_and_no_other_chat() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with some_limiters(2) as [one, other]:
            await one.stop(5, 12.0)
            start = loop.time()
            await other.acquire(6, Priority.RESULT)
            assert loop.time() - start < 0.5
            await other.acquire(5, Priority.RESULT)
            assert loop.time() - start == pytest.approx(12.0, abs=0.3)

    quickly(scenario())


def test_a_long_stop_raises_busy_with_the_time_to_retry() -> None:
    async def scenario() -> None:
        async with some_limiters(2) as limiters:
            await limiters[0].stop(5, 500.0)
            for limiter in limiters:
                with pytest.raises(ChannelBusy) as busy:
                    await limiter.acquire(5, Priority.RESULT)
                assert busy.value.after == pytest.approx(500.0, abs=1.0)

    quickly(scenario())


def test_429_answers_from_several_chats_stop_the_bot() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with some_limiters(2) as [one, other]:
            for chat in (5, 6, 7):
                await one.stop(chat, 10.0)
            start = loop.time()
            await other.acquire(8, Priority.RESULT)
            assert loop.time() - start == pytest.approx(10.0, abs=1.2)

    quickly(scenario())


def test_429_answers_from_several_groups_stop_no_other_chat() -> None:
    """A group has a low limit of its own, so a bot in some busy groups would stop for all its users."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with some_limiters(2) as [one, other]:
            for chat in (-5, -6, -7, -8):
                await one.stop(chat, 40.0)
            start = loop.time()
            for limiter in (one, other):
                await limiter.acquire(8, Priority.RESULT)
            assert loop.time() - start < 0.5

    quickly(scenario())


def test_a_chat_that_must_wait_for_longer_than_the_others_does_not_stop_the_bot_for_that_long() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with some_limiters(2) as [one, other]:
            for chat, seconds in ((5, 4.0), (6, 4.0), (7, 137.0)):
                await one.stop(chat, seconds)
            start = loop.time()
            await other.acquire(8, Priority.RESULT)
            assert loop.time() - start == pytest.approx(4.0, abs=1.2)

    quickly(scenario())


def test_a_cancelled_call_uses_no_permit() -> None:
    async def scenario() -> None:
        async with some_limiters() as [limiter]:
            waiting = [asyncio.ensure_future(limiter.acquire(5, Priority.RESULT)) for _ in range(6)]
            await asyncio.sleep(0.1)  # on the accelerated clock
            for task in waiting[2:5]:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert [task.cancelled() for task in waiting] == [False, False, True, True, True, False]

    quickly(scenario())


def test_a_store_failure_raises_busy() -> None:
    async def scenario() -> None:
        limiter = TelegramRateLimiter(Broken(), "42")  # type: ignore[arg-type]
        for priority in (Priority.RESULT, Priority.RESULT, Priority.PROGRESS):
            with pytest.raises(ChannelBusy):
                await limiter.acquire(5, priority)

    quickly(scenario())


class Broken:
    async def take_permits(self, *_: Any) -> list[float]:
        raise StoreUnavailable

    async def take_call_permits(self, *_: Any, **__: Any) -> tuple[list[float | None], list[float]]:
        raise StoreUnavailable

    async def block_limit(self, *_: Any) -> None:
        raise StoreUnavailable


async def test_a_429_raises_busy_even_if_the_store_fails(telegram: TelegramSimulator) -> None:
    class Free(TelegramRateLimiter):
        async def acquire(self, chat: int, priority: Priority) -> None:
            """Grant the permit at once."""

    recorder = Recorder()
    caller = Caller(make_bot(telegram.token, telegram.url), Free(Broken(), "42"), recorder)  # type: ignore[arg-type]
    ann = telegram.add_user("Ann")
    telegram.faults.once(Fault.TOO_MANY, chat=ann.id, seconds=9)
    with pytest.raises(ChannelBusy) as busy:
        await caller.call(caller.bot.send_message, chat=ann.id, priority=Priority.RESULT, text="hello")
    assert busy.value.after == 9
    assert recorder.of(Event.STAGE_ERROR, step="stop")
    await caller.close()
