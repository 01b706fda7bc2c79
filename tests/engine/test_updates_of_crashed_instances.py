"""Updates outlive the instance that handles them: crashes, stops, lost leases."""

import asyncio
import math
from typing import Any

import pytest

from genlock.domain.events import Event
from genlock.domain.update import Update, UpdateState
from genlock.stores.database import SqlDatabase
from tests.changes import poll_until
from tests.engine.faults import FaultProxy
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder
from tests.engine.update_instance import Instance, make_instance, message
from tests.loop_clock import LoopClock


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
    await dead.idle()
    assert dead.seen == [1], "it ends what it began, and takes nothing more"
    assert recorder.of(Event.LEASE_LOST)
    await successor.engine.stop()
    await dead.engine.stop()
    assert await live_store.violations(settled=True) == []


async def test_the_heartbeat_that_finds_a_dead_instance_starts_a_claim_of_updates(
    store: SqlDatabase, recorder: Recorder, clock: ManualClock
) -> None:
    dead, alive = make_instance(store, recorder, "dead"), make_instance(store, recorder, "alive")
    [heartbeat] = [task for task in alive.engine.periodic_tasks() if task.name == "heartbeat"]
    await dead.engine.worker.heartbeat()
    await heartbeat.run()
    assert not alive.updates.wake.is_set()
    clock.advance(alive.engine.ctx.rules.silent_seconds + 1)
    await heartbeat.run()
    assert alive.updates.wake.is_set()


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
    await instance.idle()
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
    await poll_until(lambda: first.updates._stopping)
    gate.set()
    await stopping
    assert first.seen == [1]
    await second.engine.start()
    await second.until(lambda: second.seen == [2])
    assert second.attempts == [2], "its queue stayed leased, though its handler had not begun"
    await second.engine.stop()


async def test_the_lease_of_a_slow_handlers_queue_is_renewed(
    live_store: SqlDatabase, recorder: Recorder, clock: ManualClock, loop_clock: LoopClock
) -> None:
    slow_store, other_store = FaultProxy(live_store), FaultProxy(live_store)
    # Only an expired lease may pass the queue on, not a heartbeat that a busy machine delays.
    rules: dict[str, Any] = {"lease_seconds": 18.0, "silent_seconds": 3600.0}
    slow = make_instance(slow_store, recorder, "slow", **rules)
    other = make_instance(other_store, recorder, "other", **rules)
    gate = asyncio.Event()

    async def wait(_: Update) -> None:
        await gate.wait()

    slow.act = wait
    await slow.engine.start()
    await slow.updates.receive(message(1, number=1))
    await slow.until(lambda: bool(slow.inside))
    await other.engine.start()
    for running in slow.updates._queues.values():
        running.since = -math.inf
    for _ in range(4):  # more than two leases
        loop_clock.advance(3.0)  # the period of the renewals: a sixth of a lease
        await slow_store.until("renew_update_queues")
        clock.advance(15)
        await other_store.until("claim_update_queues")
    assert (other.seen, slow.seen) == ([], [])
    gate.set()
    await slow.until(lambda: slow.seen == [1])
    await slow.engine.stop()
    await other.engine.stop()
    assert other.seen == []
