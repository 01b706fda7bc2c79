"""The update worker: which instance handles which update when, and what happens to updates that cannot be handled."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from genlock.domain.errors import ChannelBusy, RecipientUnreachable, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate, Received, Update, UpdateState
from genlock.engine import updates as module
from genlock.engine.context import EngineContext, EngineRules, current_correlation_id
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimiter
from genlock.engine.updates import TRIES, UpdateWorker
from genlock.stores.database import SqlDatabase
from tests.engine.world import Recorder

numbers = count(1)


def message(user: int, text: str = "", number: int | None = None) -> NewUpdate:
    content = {"from": {"id": user}, "text": text}
    return new_update(user, "message", content, number)


def button(user: int, data: str, number: int | None = None) -> NewUpdate:
    content = {"from": {"id": user}, "data": data}
    return new_update(user, "callback_query", content, number, dedup_key=f"{user}/7/{data}")


def payment(user: int) -> NewUpdate:
    return new_update(user, "pre_checkout_query", {"from": {"id": user}}, urgent=True)


def new_update(
    user: int,
    kind: str,
    content: dict[str, Any],
    number: int | None = None,
    *,
    urgent: bool = False,
    dedup_key: str | None = None,
    bot: str = "bot",
) -> NewUpdate:
    number = number or next(numbers)
    return NewUpdate(
        bot=bot,
        update_id=number,
        ordering_key=f"{user}/{kind}" if urgent else str(user),
        kind=kind,
        urgent=urgent,
        dedup_key=dedup_key,
        body=json.dumps({"update_id": number, kind: content}),
    )


@dataclass
class Instance:
    """An instance whose handler is the test's."""

    store: SqlDatabase
    recorder: Recorder
    engine: Engine
    updates: UpdateWorker
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
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - handlers set no event of ours
                await asyncio.sleep(0.005)


def make_instance(store: SqlDatabase, recorder: Recorder, name: str = "me", **rules: Any) -> Instance:
    ctx = EngineContext(
        store=store,
        providers={},
        channels={},
        observer=recorder,
        instance=name,
        limits=RateLimiter(store, {}),
        rules=EngineRules(**{"claim_seconds": 0.02, "heartbeat_seconds": 0.05, "silent_seconds": 0.3, **rules}),
    )
    instance: Instance

    async def handle(update: Update) -> None:
        await instance.handle(update)

    async def answer(update: NewUpdate) -> None:
        await instance.answer(update)

    updates = UpdateWorker(ctx, store, {"bot": handle}, answer)
    instance = Instance(store=store, recorder=recorder, engine=Engine(ctx, updates), updates=updates)
    return instance


@pytest.fixture
async def instance(live_store: SqlDatabase, recorder: Recorder) -> AsyncIterator[Instance]:
    instance = make_instance(live_store, recorder)
    await instance.engine.start()
    yield instance
    await instance.engine.stop()


async def test_a_received_update_needs_no_claim(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    async def claim_nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(instance.store, "claim_update_queues", claim_nothing)
    await instance.updates.receive(message(1, number=71))
    await instance.until(lambda: instance.seen == [71])


async def test_an_instance_without_a_heartbeat_leaves_updates_to_the_others(
    instance: Instance, live_store: SqlDatabase, recorder: Recorder
) -> None:
    starting = make_instance(live_store, recorder, "starting")
    await starting.updates.receive(message(1, number=72))
    await instance.until(lambda: instance.seen == [72])
    assert starting.seen == []


async def test_an_update_is_handled_at_once(instance: Instance) -> None:
    assert await instance.updates.receive(message(1, number=70)) is Received.FRESH
    assert await instance.updates.receive(message(1, number=70)) is Received.KNOWN
    await instance.until(lambda: bool(instance.recorder.of(Event.UPDATE_DONE)))
    assert instance.seen == [70]
    assert await instance.store.violations(settled=True) == []
    [done] = instance.recorder.of(Event.UPDATE_DONE)
    assert done.correlation_id == "u70"


async def test_each_users_updates_are_handled_in_order_and_users_in_parallel(instance: Instance) -> None:
    gate = asyncio.Event()

    async def wait_for_the_first(update: Update) -> None:
        if update.update_id == 1000:
            await gate.wait()

    instance.act = wait_for_the_first
    for number in range(1000, 1020):
        await instance.updates.receive(message(number % 2, number=number))
    await instance.until(lambda: len(instance.seen) == 10)
    assert instance.seen == list(range(1001, 1020, 2)), "the other one does not wait"
    gate.set()
    await instance.until(lambda: len(instance.seen) == 20)
    assert instance.seen[10:] == list(range(1000, 1020, 2))


async def test_a_repeated_button_is_answered_and_not_handled(instance: Instance) -> None:
    await instance.updates.receive(button(1, "menu", number=5))
    assert await instance.updates.receive(button(1, "menu", number=6)) is Received.REPEATED
    await instance.until(lambda: instance.repeated == [6] and instance.seen == [5])


async def test_a_failed_update_is_retried(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)

    async def fail_twice(update: Update) -> None:
        if update.attempts < 3:
            raise RuntimeError("not yet")

    instance.act = fail_twice
    await instance.updates.receive(message(1, number=8))
    await instance.until(lambda: instance.seen == [8])
    assert instance.attempts == [1, 2, 3]
    assert len(instance.recorder.of(Event.UPDATE_FAIL)) == 2


async def test_an_update_that_always_fails_is_dead_lettered_and_the_next_is_handled(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)

    async def poison(update: Update) -> None:
        if update.update_id == 8:
            raise RuntimeError("poison")

    instance.act = poison
    for number in (8, 9):
        await instance.updates.receive(message(1, number=number))
    await instance.until(lambda: instance.seen == [9])
    assert instance.attempts == [*range(1, TRIES + 1), 1]
    [dead_update] = await instance.store.updates(UpdateState.DEAD, 10)
    assert (dead_update.update_id, "poison" in dead_update.note) == (8, True)
    assert len(instance.recorder.of(Event.UPDATE_DEAD)) == 1


@pytest.mark.parametrize("error", [ChannelBusy(0.01), StoreUnavailable(), TimeoutError()])
async def test_an_update_that_fails_for_a_transient_reason_is_retried_more_often(
    instance: Instance, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)

    async def busy(update: Update) -> None:
        if update.attempts <= TRIES + 2:
            raise error

    instance.act = busy
    await instance.updates.receive(message(1, number=8))
    await instance.until(lambda: instance.seen == [8])


async def test_an_update_whose_handler_never_finishes_is_tried_twice(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.01)
    monkeypatch.setattr(module, "HANDLER_SECONDS_MAX", 0.01)

    async def hang(_: Update) -> None:
        await asyncio.Event().wait()

    instance.act = hang
    await instance.updates.receive(message(1, number=8))
    await instance.until(lambda: bool(instance.recorder.of(Event.UPDATE_DEAD)))
    assert instance.attempts == [1, 2]


async def test_an_update_of_an_unreachable_user_is_done(instance: Instance) -> None:
    async def closed(_: Update) -> None:
        raise RecipientUnreachable("blocked")

    instance.act = closed
    await instance.updates.receive(message(1))
    await instance.until(lambda: bool(instance.recorder.of(Event.UPDATE_DONE)))
    assert [update.note for update in await instance.store.updates(UpdateState.DONE, 10)] == ["blocked"]


async def test_a_payment_is_handled_while_all_other_capacity_is_taken(
    live_store: SqlDatabase, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CAPACITY", 2)
    instance, gate = make_instance(live_store, recorder), asyncio.Event()

    async def hang(update: Update) -> None:
        if update.kind == "message":
            await gate.wait()

    instance.act = hang
    await instance.engine.start()
    for person in (1, 2, 3):
        await instance.updates.receive(message(person))
    await instance.until(lambda: len(instance.inside) == 2)
    asked = payment(1)
    await instance.updates.receive(asked)
    await instance.until(lambda: instance.seen == [asked.update_id])
    gate.set()
    await instance.until(lambda: len(instance.seen) == 4)
    await instance.engine.stop()


async def test_a_handler_sees_the_correlation_id_of_its_update(instance: Instance) -> None:
    told: list[str] = []

    async def tell(_: Update) -> None:
        told.append(current_correlation_id.get())

    instance.act = tell
    for number in (16, 17):
        await instance.updates.receive(message(1, number=number))
    await instance.until(lambda: len(told) == 2)
    assert told == ["u16", "u17"]


async def test_the_updates_of_a_crashed_instance_are_taken_over(live_store: SqlDatabase, recorder: Recorder) -> None:
    dead, successor = make_instance(live_store, recorder, "dead"), make_instance(live_store, recorder, "successor")
    never = asyncio.Event()

    async def hang(_: Update) -> None:
        await never.wait()

    dead.act = hang
    await dead.engine.start()
    await dead.updates.receive(message(1, number=1))
    await dead.updates.receive(message(1, number=2))
    await dead.until(lambda: bool(dead.inside))
    await dead.engine._runner.stop()  # no more heartbeats while its handler runs
    await successor.engine.start()
    await successor.until(lambda: successor.seen == [1, 2])
    assert successor.attempts[0] == 2
    never.set()
    await dead.until(lambda: not dead.updates._queues)
    assert dead.seen == [1], "it ends what it began, and takes nothing more"
    assert recorder.of(Event.LEASE_LOST)
    await successor.engine.stop()
    await dead.engine.stop()
    assert await live_store.violations(settled=True) == []


@pytest.mark.slow
async def test_an_update_that_crashes_every_process_is_dead_lettered_while_others_are_handled(
    live_store: SqlDatabase, recorder: Recorder
) -> None:
    crashes_max, never, begun = 3, asyncio.Event(), 0

    async def die_of_it(update: Update) -> None:
        nonlocal begun
        if update.update_id == 1:
            begun += 1
            await never.wait()

    instance = make_instance(live_store, recorder, "life-0", crashes_max=crashes_max)
    await instance.updates.receive(message(1, number=1))
    await instance.updates.receive(message(1, number=2))
    for life in range(crashes_max):
        instance.act = die_of_it
        await instance.engine.start()
        await instance.until(lambda life=life: begun > life)  # type: ignore[misc]
        tasks = [*instance.engine._runner._running, *instance.updates._tasks()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        instance = make_instance(live_store, recorder, f"life-{life + 1}", crashes_max=crashes_max)
        await instance.updates.receive(message(2, number=10 + life))

    instance.act = die_of_it
    await instance.engine.start()
    await recorder.until(Event.UPDATE_DONE, update=2)

    assert begun == crashes_max
    [dead_update] = await live_store.updates(UpdateState.DEAD, 10)
    assert (dead_update.update_id, dead_update.note) == (
        1,
        "RuntimeError('too many attempts or crashes, and the handler never finished')",
    )
    assert {update.update_id for update in await live_store.updates(UpdateState.DONE, 10)} == {2, 10, 11, 12}
    assert recorder.of(Event.POISON_SUSPECTED)
    await instance.engine.stop()
    assert await live_store.violations(settled=True) == []


async def test_an_update_whose_end_cannot_be_written_is_reported_and_handled_again(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, broken = instance.store.settle_update, [RuntimeError("bug")]

    async def fail_once(*args: Any) -> Any:
        if broken:
            raise broken.pop()
        return await settle(*args)

    monkeypatch.setattr(instance.store, "settle_update", fail_once)
    await instance.updates.receive(message(1, number=1))
    await instance.until(lambda: bool(instance.recorder.of(Event.STAGE_ERROR, step="updates")))
    await instance.until(lambda: not instance.updates._queues)
    assert instance.recorder.of(Event.STAGE_ERROR, step="updates")[0].facts["error"] == "RuntimeError('bug')"
    await instance.store.release_update_queues("me")
    await instance.until(lambda: instance.seen == [1, 1])


async def test_a_clean_stop_finishes_handlers_and_releases_the_queues(
    live_store: SqlDatabase, recorder: Recorder
) -> None:
    first, second = make_instance(live_store, recorder, "first"), make_instance(live_store, recorder, "second")
    gate = asyncio.Event()

    async def wait(_: Update) -> None:
        await gate.wait()

    first.act = wait
    await first.engine.start()
    for number in (1, 2):
        await first.updates.receive(message(1, number=number))
    await first.until(lambda: bool(first.inside))
    stopping = asyncio.create_task(first.engine.stop())
    await first.until(lambda: first.updates._stopping)
    gate.set()
    await stopping
    assert first.seen == [1]
    await second.engine.start()
    await second.until(lambda: second.seen == [2])
    assert second.attempts == [2], "its queue stayed leased, though its handler had not begun"
    await second.engine.stop()


@pytest.mark.slow
async def test_the_lease_of_a_slow_handlers_queue_is_renewed(live_store: SqlDatabase, recorder: Recorder) -> None:
    slow = make_instance(live_store, recorder, "slow", lease_seconds=0.8)
    # Only an expired lease may pass the queue on, not a heartbeat that a busy machine delays.
    other = make_instance(live_store, recorder, "other", silent_seconds=60.0)
    gate = asyncio.Event()

    async def wait(_: Update) -> None:
        await gate.wait()

    slow.act = wait
    await slow.engine.start()
    await slow.updates.receive(message(1, number=1))
    await slow.until(lambda: bool(slow.inside))
    await other.engine.start()
    await asyncio.sleep(2.0)  # more than two leases
    assert (other.seen, slow.seen) == ([], [])
    gate.set()
    await slow.until(lambda: slow.seen == [1])
    await slow.engine.stop()
    await other.engine.stop()
    assert other.seen == []
