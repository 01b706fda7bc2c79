"""The lanes: who handles which update when, and what becomes of those that nobody can handle."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from genlock.channels.telegram.updates import read_update
from genlock.domain.errors import ChannelBusy, RecipientUnreachable, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate, Received, Update, UpdateState
from genlock.engine import updates as module
from genlock.engine.context import EngineContext, EngineRules, handled
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.updates import TRIES, Updates
from genlock.stores.database import SqlDatabase
from tests.engine.world import Recorder

numbers = count(1)


def message(person: int, text: str = "", number: int | None = None) -> NewUpdate:
    said = {"update_id": number or next(numbers), "message": {"from": {"id": person}, "text": text}}
    return read_update("bot", said, json.dumps(said))


def press(person: int, data: str, number: int | None = None) -> NewUpdate:
    shown = {"message_id": 7, "chat": {"id": person}}
    said = {
        "update_id": number or next(numbers),
        "callback_query": {"from": {"id": person}, "message": shown, "data": data},
    }
    return read_update("bot", said, json.dumps(said))


def payment(person: int) -> NewUpdate:
    said = {"update_id": next(numbers), "pre_checkout_query": {"from": {"id": person}}}
    return read_update("bot", said, json.dumps(said))


@dataclass
class House:
    """An instance whose handler is the test's."""

    store: SqlDatabase
    recorder: Recorder
    engine: Engine
    updates: Updates
    seen: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)
    act: Callable[[Update], Awaitable[None]] | None = None

    async def handle(self, update: Update) -> None:
        person = f"{json.loads(update.body)[update.kind]['from']} {update.kind == 'pre_checkout_query'}"
        assert person not in self.inside, "two at a time"
        self.inside[person] = update.update_id
        self.attempts.append(update.attempts)
        try:
            await asyncio.sleep(0)
            if self.act:
                await self.act(update)
            self.seen.append(update.update_id)
        finally:
            del self.inside[person]

    async def answer(self, update: NewUpdate) -> None:
        self.repeated.append(update.update_id)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - handlers set no event of ours
                await asyncio.sleep(0.005)


def make_house(store: SqlDatabase, recorder: Recorder, name: str = "me", **rules: Any) -> House:
    ctx = EngineContext(
        store=store,
        providers={},
        channels={},
        observer=recorder,
        instance=name,
        limits=RateLimiter(store, {}),
        rules=EngineRules(claim_seconds=0.02, heartbeat_seconds=0.05, silent_seconds=0.3, **rules),
    )
    engine = Engine(ctx)
    house: House

    async def handle(update: Update) -> None:
        await house.handle(update)

    async def answer(update: NewUpdate) -> None:
        await house.answer(update)

    engine.updates = Updates(ctx, store, handle, answer, bots=("bot",))
    house = House(store=store, recorder=recorder, engine=engine, updates=engine.updates)
    return house


@pytest.fixture
async def house(live_store: SqlDatabase, recorder: Recorder) -> AsyncIterator[House]:
    house = make_house(live_store, recorder)
    await house.engine.start()
    yield house
    await house.engine.stop()


async def test_an_update_is_handled_at_once(house: House) -> None:
    assert await house.updates.take_in(message(1, number=70)) is Received.FRESH
    assert await house.updates.take_in(message(1, number=70)) is Received.KNOWN
    await house.until(lambda: bool(house.recorder.of(Event.UPDATE_DONE)))
    assert house.seen == [70]
    assert await house.store.violations(settled=True) == []
    [done] = house.recorder.of(Event.UPDATE_DONE)
    assert done.correlation_id == "u70"


async def test_each_persons_updates_are_handled_in_order_and_persons_beside_each_other(house: House) -> None:
    gate = asyncio.Event()

    async def wait_for_the_first(update: Update) -> None:
        if update.update_id == 1000:
            await gate.wait()

    house.act = wait_for_the_first
    for number in range(1000, 1020):
        await house.updates.take_in(message(number % 2, number=number))
    await house.until(lambda: len(house.seen) == 10)
    assert house.seen == list(range(1001, 1020, 2)), "the other one does not wait"
    gate.set()
    await house.until(lambda: len(house.seen) == 20)
    assert house.seen[10:] == list(range(1000, 1020, 2))


async def test_a_repeated_press_is_answered_and_not_handled(house: House) -> None:
    await house.updates.take_in(press(1, "menu", number=5))
    assert await house.updates.take_in(press(1, "menu", number=6)) is Received.REPEATED
    await house.until(lambda: house.repeated == [6] and house.seen == [5])


async def test_what_fails_is_tried_again_and_then_handled(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)

    async def fail_twice(update: Update) -> None:
        if update.attempts < 3:
            raise RuntimeError("not yet")

    house.act = fail_twice
    await house.updates.take_in(message(1, number=8))
    await house.until(lambda: house.seen == [8])
    assert house.attempts == [1, 2, 3]
    assert len(house.recorder.of(Event.UPDATE_FAIL)) == 2


async def test_what_fails_every_time_is_set_aside_and_the_next_is_handled(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)

    async def poison(update: Update) -> None:
        if update.update_id == 8:
            raise RuntimeError("poison")

    house.act = poison
    for number in (8, 9):
        await house.updates.take_in(message(1, number=number))
    await house.until(lambda: house.seen == [9])
    assert house.attempts == [*range(1, TRIES + 1), 1]
    [aside] = await house.store.updates(UpdateState.DEAD, 10)
    assert (aside.update_id, "poison" in aside.note) == (8, True)
    assert len(house.recorder.of(Event.UPDATE_DEAD)) == 1


@pytest.mark.parametrize("error", [ChannelBusy(0.01), StoreUnavailable(), TimeoutError()])
async def test_what_only_needs_time_is_given_time(
    house: House, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)

    async def busy(update: Update) -> None:
        if update.attempts <= TRIES + 2:
            raise error

    house.act = busy
    await house.updates.take_in(message(1, number=8))
    await house.until(lambda: house.seen == [8])


async def test_somebody_who_is_gone_needs_no_answer(house: House) -> None:
    async def closed(_: Update) -> None:
        raise RecipientUnreachable("blocked")

    house.act = closed
    await house.updates.take_in(message(1))
    await house.until(lambda: bool(house.recorder.of(Event.UPDATE_DONE)))
    assert [update.note for update in await house.store.updates(UpdateState.DONE, 10)] == ["blocked"]


async def test_a_payment_does_not_wait_behind_anything(
    live_store: SqlDatabase, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM", 2)
    house, gate = make_house(live_store, recorder), asyncio.Event()

    async def hang(update: Update) -> None:
        if update.kind == "message":
            await gate.wait()

    house.act = hang
    await house.engine.start()
    for person in (1, 2, 3):
        await house.updates.take_in(message(person))
    await house.until(lambda: len(house.inside) == 2)
    asked = payment(1)
    await house.updates.take_in(asked)
    await house.until(lambda: house.seen == [asked.update_id])
    gate.set()
    await house.until(lambda: len(house.seen) == 4)
    await house.engine.stop()


async def test_a_handler_knows_the_correlation_of_its_update(house: House) -> None:
    told: list[str] = []

    async def tell(_: Update) -> None:
        told.append(handled.get())

    house.act = tell
    for number in (16, 17):
        await house.updates.take_in(message(1, number=number))
    await house.until(lambda: len(told) == 2)
    assert told == ["u16", "u17"]


async def test_the_updates_of_a_dead_instance_are_taken_over(live_store: SqlDatabase, recorder: Recorder) -> None:
    dead, heir = make_house(live_store, recorder, "dead"), make_house(live_store, recorder, "heir")
    never = asyncio.Event()

    async def hang(_: Update) -> None:
        await never.wait()

    dead.act = hang
    await dead.engine.start()
    await dead.updates.take_in(message(1, number=1))
    await dead.updates.take_in(message(1, number=2))
    await dead.until(lambda: bool(dead.inside))
    for loop in dead.engine._loops:  # it falls silent with the update in its hands
        loop.cancel()
    await heir.engine.start()
    await heir.until(lambda: heir.seen == [1, 2])
    assert heir.attempts[0] == 2
    never.set()
    await dead.until(lambda: not dead.updates._queues)
    assert dead.seen == [1], "it ends what it began, and takes nothing more"
    assert recorder.of(Event.LEASE_LOST)
    await heir.engine.stop()
    await dead.engine.stop()
    assert await live_store.violations(settled=True) == []


async def test_an_update_that_every_process_dies_of_is_set_aside_while_others_are_handled(
    live_store: SqlDatabase, recorder: Recorder
) -> None:
    crashes_max, never, begun = 3, asyncio.Event(), 0

    async def die_of_it(update: Update) -> None:
        nonlocal begun
        if update.update_id == 1:
            begun += 1
            await never.wait()

    house = make_house(live_store, recorder, "life-0", crashes_max=crashes_max)
    await house.updates.take_in(message(1, number=1))
    await house.updates.take_in(message(1, number=2))
    for life in range(crashes_max):
        house.act = die_of_it
        await house.engine.start()
        await house.until(lambda life=life: begun > life)  # type: ignore[misc]
        tasks = [*house.engine._loops, *(task for _, _, task in house.updates._queues.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        house = make_house(live_store, recorder, f"life-{life + 1}", crashes_max=crashes_max)
        await house.updates.take_in(message(2, number=10 + life))

    house.act = die_of_it
    await house.engine.start()
    await house.until(lambda: 2 in house.seen)

    assert begun == crashes_max
    [aside] = await live_store.updates(UpdateState.DEAD, 10)
    assert (aside.update_id, aside.note) == (1, "RuntimeError('it was begun too often and never ended')")
    assert {update.update_id for update in await live_store.updates(UpdateState.DONE, 10)} == {2, 10, 11, 12}
    assert recorder.of(Event.POISON_SUSPECTED)
    await house.engine.stop()
    assert await live_store.violations(settled=True) == []


async def test_an_update_whose_end_cannot_be_written_is_told_and_handled_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, broken = house.store.settle_update, [RuntimeError("bug")]

    async def fail_once(*args: Any) -> Any:
        if broken:
            raise broken.pop()
        return await settle(*args)

    monkeypatch.setattr(house.store, "settle_update", fail_once)
    await house.updates.take_in(message(1, number=1))
    await house.until(lambda: bool(house.recorder.of(Event.STAGE_ERROR, step="updates")))
    await house.until(lambda: not house.updates._queues)
    assert house.recorder.of(Event.STAGE_ERROR, step="updates")[0].facts["error"] == "RuntimeError('bug')"
    await house.store.release_update_queues("me")
    await house.until(lambda: house.seen == [1, 1])


async def test_a_clean_stop_finishes_and_hands_over(live_store: SqlDatabase, recorder: Recorder) -> None:
    first, second = make_house(live_store, recorder, "first"), make_house(live_store, recorder, "second")
    gate = asyncio.Event()

    async def wait(_: Update) -> None:
        await gate.wait()

    first.act = wait
    await first.engine.start()
    for number in (1, 2):
        await first.updates.take_in(message(1, number=number))
    await first.until(lambda: bool(first.inside))
    stopping = asyncio.create_task(first.engine.stop())
    await first.until(lambda: first.updates._stopping)
    gate.set()
    await stopping
    assert first.seen == [1]
    await second.engine.start()
    await second.until(lambda: second.seen == [2])
    assert second.attempts == [2], "the lane was kept for it, though it was not begun"
    await second.engine.stop()


async def test_a_handler_that_takes_long_keeps_its_lane(live_store: SqlDatabase, recorder: Recorder) -> None:
    slow = make_house(live_store, recorder, "slow", lease_seconds=0.3)
    other = make_house(live_store, recorder, "other")
    gate = asyncio.Event()

    async def wait(_: Update) -> None:
        await gate.wait()

    slow.act = wait
    await slow.engine.start()
    await slow.updates.take_in(message(1, number=1))
    await slow.until(lambda: bool(slow.inside))
    await other.engine.start()
    await asyncio.sleep(0.9)  # three leases
    assert (other.seen, slow.seen) == ([], [])
    gate.set()
    await slow.until(lambda: slow.seen == [1])
    await slow.engine.stop()
    await other.engine.stop()
    assert other.seen == []
