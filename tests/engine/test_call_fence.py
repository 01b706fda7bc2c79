"""An instance that was silent calls no channel for what it had leased before: another may have taken it over."""

import asyncio

import pytest

from genlock.domain.events import Event
from genlock.domain.update import Update
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.liveness import Liveness
from genlock.ports.call_fence import CallFenced, calls_while, check_call
from genlock.stores.database import SqlDatabase
from tests.engine.recorder import Recorder
from tests.engine.update_instance import make_instance, message
from tests.engine.world import World, idle


class HandTime:
    """Seconds of a clock that moves only when a test moves it."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_watch_holds_while_the_heartbeat_has_no_gap() -> None:
    time = HandTime()
    liveness = Liveness(3.0, time)
    before_the_first = liveness.watch()
    liveness.note_heartbeat(time.now)
    is_held = liveness.watch()
    for _ in range(5):
        time.now += 2.9
        assert is_held()
        liveness.note_heartbeat(time.now)
    assert before_the_first()


def test_a_watch_does_not_hold_after_a_gap_though_the_heart_beats_again() -> None:
    time = HandTime()
    liveness = Liveness(3.0, time)
    liveness.note_heartbeat(time.now)
    is_held = liveness.watch()
    time.now += 3.0
    assert not is_held(), "the next heartbeat is not recorded yet"
    liveness.note_heartbeat(time.now)
    assert not is_held()
    assert liveness.watch()(), "what is leased after the gap is held"


def test_a_heartbeat_that_was_recorded_late_is_a_gap() -> None:
    time = HandTime()
    liveness = Liveness(3.0, time)
    liveness.note_heartbeat(time.now)
    is_held, asked = liveness.watch(), time.now + 1.0
    time.now += 3.5
    liveness.note_heartbeat(asked)
    assert not is_held()


def test_a_block_adds_its_own_limit_to_that_of_its_task() -> None:
    holds = {"task": True, "block": True}
    with calls_while(lambda: holds["task"]), calls_while(lambda: holds["block"]):
        check_call()
        for name in holds:
            holds[name] = False
            with pytest.raises(CallFenced):
                check_call()
            holds[name] = True
    check_call()


async def _no_peers(_: EngineContext) -> list[str]:
    return []


async def test_a_paused_delivery_calls_no_channel_and_is_tried_again(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = HandTime()
    monkeypatch.setitem(vars(engine.ctx), "liveness", Liveness(3.0, time))
    calls: list[bool] = []
    put = world.channel.put

    async def paused_put(*arguments: object) -> object:
        if not calls:  # the process is paused here, and its heartbeat comes back first
            time.now += 10.0
            engine.ctx.liveness.note_heartbeat(time.now)
        calls.append(True)
        check_call()
        return await put(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(world.channel, "put", paused_put)
    engine.ctx.liveness.note_heartbeat(time.now)
    job = await world.ended(engine)
    await world.claim_one(engine)
    await idle(engine)
    assert (len(calls), world.channel.shown) == (1, [])
    world.clock.advance(1)
    await world.claim_one(engine)
    await idle(engine)
    assert (len(calls), len(world.channel.shown)) == (2, 1)
    assert (await world.see(job)).attempts == 0, "a pause is no failed attempt"


async def test_a_paused_handler_calls_no_channel_and_its_update_is_handled_again(
    live_store: SqlDatabase, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, instance = HandTime(asyncio.get_running_loop().time()), make_instance(live_store, recorder)
    context = instance.engine.ctx
    monkeypatch.setattr(EngineContext, "heartbeat", _no_peers)  # the instance's own is by another clock
    monkeypatch.setitem(vars(context), "liveness", Liveness(3.0, time))
    context.liveness.note_heartbeat(time.now)
    sent: list[int] = []

    async def act(update: Update) -> None:
        if update.attempts == 1:
            time.now += 10.0
            context.liveness.note_heartbeat(time.now)
        await asyncio.create_task(_send(update))

    async def _send(update: Update) -> None:
        check_call()
        sent.append(update.attempts)

    instance.act = act
    await instance.engine.start()
    await instance.updates.receive(message(1, number=80))
    await instance.until(lambda: bool(instance.recorder.of(Event.UPDATE_DONE)))
    await instance.engine.stop()
    assert sent == [2]
