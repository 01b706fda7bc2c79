"""The fourth promise: an instance may die at any line, and another one finishes its work.

The life of a job is run once to count the calls an instance makes to the outside. Then it is run again for each of
them, with an instance that dies just before or just after that call, and another one that goes on.
"""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest

from genlock.domain.delivery import Level
from genlock.domain.job import Job
from genlock.domain.money import EntryKind, HoldState
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.invariants import End, ends
from tests.engine.world import FUNDS, PRICE, URL, Mill, Wire, World, callback_body, die, idle, success, work

SECOND = f"{URL}?second"
NUMBERS = count(1)


class Fate:
    """Dies at the chosen moment, and stays dead."""

    def __init__(self, moment: int | None = None) -> None:
        self._moment = moment
        self.progress_points: list[str] = []
        self.dead = False

    def __call__(self, when: str, operation: str) -> None:
        if self._moment == len(self.progress_points):
            self.dead = True
        if self.dead:
            raise asyncio.CancelledError
        self.progress_points.append(f"{when} {operation}")


def mortal(world: World, fate: Fate) -> Engine:
    wires = [Wire(target) for target in (world.store, world.mill, world.chat)]
    for wire in wires:
        wire.tap = fate
    store, mill, chat = wires
    return world.engine(store=store, mill=mill, chat=chat)


Life = Callable[[World, Engine], Coroutine[Any, Any, None]]


async def by_callback(world: World, engine: Engine) -> None:
    """A result of two parts that are refused on the first level."""
    world.chat.refused = {Level.ADDRESS}
    await ordered(world, engine)
    await called_back(world, engine, urls=[URL, SECOND])


async def by_poll(world: World, engine: Engine) -> None:
    await ordered(world, engine, placeholder=None)
    world.clock.turn(10)
    await work(engine)


async def onto_a_deleted_message(world: World, engine: Engine) -> None:
    job = await ordered(world, engine)
    world.chat.delete(job.placeholder)
    await called_back(world, engine, urls=[URL])


async def into_failure(world: World, engine: Engine) -> None:
    await ordered(world, engine)
    await called_back(world, engine, state="failed", code="nsfw")


async def into_cancellation(world: World, engine: Engine) -> None:
    job = await ordered(world, engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)
    await called_back(world, engine, urls=[URL], cost=10)


async def ordered(world: World, engine: Engine, **changes: Any) -> Job:
    job = await engine.order(world.order(**changes))
    await idle(engine)
    return job


async def called_back(world: World, engine: Engine, **said: Any) -> None:
    [(job, _)] = world.mill.created
    await engine.callback("mill", world.mill.token(job), callback_body(task=f"{world.mill.tag}-1", **said))
    await idle(engine)


async def live(world: World, life: Life, fate: Fate) -> None:
    """An instance lives through the story, or as far as it gets."""
    engine = mortal(world, fate)
    world.mill.reports[f"{world.mill.tag}-1"] = success(f"{world.mill.tag}-1")
    await world.store.heartbeat(engine.ctx.instance, 1000)
    try:
        await asyncio.ensure_future(life(world, engine))
    except (asyncio.CancelledError, ValueError):
        assert fate.dead
    await die(engine)


async def go_on(world: World) -> None:
    """Another instance does what its loops would, until nothing is left to do."""
    engine = world.engine()
    world.clock.turn(EngineRules().silent_seconds + 1)
    for _ in range(10):
        await engine.worker.heartbeat()
        await engine.sweeper.sweep()
        await idle(engine)
        await work(engine)
        if await world.store.violations(settled=True) == []:
            return
        world.clock.turn(EngineRules().grace_seconds + 1)
    raise AssertionError(await world.store.violations(settled=True))


async def check(world: World) -> None:
    jobs = await world.store.jobs(account_id=world.person)
    assert len(world.mill.created) <= 1
    assert len(world.chat.notices) <= 1
    for job in jobs:
        [end] = ends(job)
        if end is End.DELIVERED:
            assert {len(world.chat.showing(part.value)) for part in job.parts} == {1}
        elif end is End.RETURNED:
            assert len(world.chat.showing(job.error_code)) == 1
    assert len(world.chat.showing(URL)) <= 1
    assert await world.spent() == PRICE * sum(job.hold_state is HoldState.CAPTURED for job in jobs)


async def new_world(world: World) -> World:
    """A new person in a new chat; only the store goes on."""
    person = await world.store.ensure_account("chat", "bot", f"after {next(NUMBERS)}")
    await world.store.transfer(person, EntryKind.TOPUP, FUNDS, f"funds of {person}")
    mill = Mill(f"task of {person}")
    return World(store=world.store, clock=world.clock, recorder=world.recorder, person=person, mill=mill)


@pytest.mark.parametrize("life", [by_callback, by_poll, onto_a_deleted_message, into_failure, into_cancellation])
async def test_an_instance_may_die_at_any_line(world: World, life: Life) -> None:
    whole = Fate()
    await live(world, life, whole)
    assert not whole.dead
    assert await world.store.violations(settled=True) == []
    assert len(whole.progress_points) >= 18

    for moment in range(len(whole.progress_points)):
        after = await new_world(world)
        fate = Fate(moment)
        await live(after, life, fate)
        assert fate.dead, whole.progress_points[moment]
        await go_on(after)
        await check(after)
