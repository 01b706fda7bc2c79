"""The update worker: updates in order, at once, repeated, failing and slow."""

import asyncio
from typing import Any

import pytest

from genlock.domain.errors import ChannelBusy, RecipientUnreachable, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import Received, Update, UpdateQueue, UpdateState
from genlock.engine import updates as module
from genlock.engine.updates import TRIES
from genlock.stores.database import SqlDatabase
from tests.changes import PATIENCE_SECONDS
from tests.engine.recorder import Recorder
from tests.engine.update_instance import Instance, button, make_instance, message, payment


async def test_a_received_update_needs_no_claim(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    async def claim_nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    monkeypatch.setattr(instance.store, "claim_update_queues", claim_nothing)
    await instance.updates.receive(message(1, number=71))
    await instance.until(lambda: bool(instance.seen))
    assert instance.seen == [71]


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


async def test_an_update_is_reported_as_done_although_the_next_one_begins_before_its_end_is_known(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, committed, begun = instance.store.settle_update, asyncio.Event(), asyncio.Event()

    async def settle_first_slowly(queue: UpdateQueue, *more: Any) -> Any:
        settled = await settle(queue, *more)
        if queue.update is not None and queue.update.update_id == 5:
            committed.set()
            await begun.wait()
        return settled

    monkeypatch.setattr(instance.store, "settle_update", settle_first_slowly)
    await instance.updates.receive(message(1, number=5))
    await asyncio.wait_for(committed.wait(), PATIENCE_SECONDS)
    await instance.updates.receive(message(1, number=6))
    await instance.until(lambda: instance.seen == [5, 6])
    begun.set()
    await instance.recorder.until(Event.UPDATE_DONE, 2)
    assert {seen.facts["update"] for seen in instance.recorder.of(Event.UPDATE_DONE)} == {5, 6}
    assert instance.recorder.of(Event.LEASE_LOST) == []


async def test_a_task_that_only_stores_the_end_of_an_update_takes_no_further_one_beside_its_successor(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease ended while the end was being stored, and this instance leased the queue again for the next update."""
    settle, committed, leased, over = instance.store.settle_update, asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def settle_first_slowly(queue: UpdateQueue, *more: Any) -> Any:
        settled = await settle(queue, *more)
        if queue.update is not None and queue.update.update_id == 5:
            committed.set()
            await leased.wait()
        return settled

    async def act(update: Update) -> None:
        if update.update_id == 5:
            await instance.updates.receive(message(1, number=6))
        else:
            await over.wait()

    monkeypatch.setattr(instance.store, "settle_update", settle_first_slowly)
    instance.act = act
    await instance.updates.receive(message(1, number=5))
    await asyncio.wait_for(committed.wait(), PATIENCE_SECONDS)
    await instance.store.release_update_queues("me", [0])
    await instance.updates.claim()
    [settling] = instance.updates._settling
    leased.set()
    await asyncio.wait([settling], timeout=PATIENCE_SECONDS)
    over.set()
    await instance.idle()

    assert settling.done()
    assert instance.seen == [5, 6]
    assert instance.recorder.of(Event.UPDATE_FAIL) == []


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
    assert instance.attempts == list(range(1, TRIES + 4))


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
    for sender in (1, 2, 3):
        await instance.updates.receive(message(sender))
    await instance.until(lambda: len(instance.inside) == 2)
    asked = payment(1)
    await instance.updates.receive(asked)
    await instance.until(lambda: bool(instance.seen))
    assert instance.seen == [asked.update_id]
    gate.set()
    await instance.until(lambda: len(instance.seen) == 4)
    await instance.engine.stop()
