"""A dead instance does nothing any more; a sleeping one does it later."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from genlock.domain.money import EntryKind
from genlock.ports import Store
from genlock.sandbox.simulation.crashes import CutOff, Fate, Life, StoreProxy
from genlock.sandbox.simulation.databases import Sqlite
from genlock.sandbox.simulation.virtual_time import VirtualLoop
from genlock.sandbox.simulation.world import World


def play(scene: Callable[[World, Store], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        world = World(1)
        world.rates = dict.fromkeys(world.rates, 0.0)
        assert isinstance(world.loop, VirtualLoop)
        await scene(world, await Sqlite().open(world.loop))
        world.over = True

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


def instance(world: World, store: Store, fates: dict[str, Fate] | None = None) -> tuple[Life, Any]:
    life = Life(world, "i1", fates or {})
    return life, StoreProxy(world, life, store, 5.0)


async def pay(store: Store, person: int) -> None:
    await store.transfer(person, EntryKind.GRANT, 100, "key")


@pytest.mark.parametrize(("point", "paid"), [("before store.transfer", 0), ("after store.transfer", 100)])
def test_a_call_takes_effect_only_if_the_instance_dies_behind_it(point: str, paid: int) -> None:
    async def scene(world: World, store: Store) -> None:
        person = await store.ensure_account("chat", "bot", "ann")
        life, proxy = instance(world, store, {point: Fate(kind="killed", passings=1)})

        with pytest.raises(CutOff):
            await life.serve(pay(proxy, person))

        assert life.dead
        assert (await store.wallet(person)).available == paid
        assert world.faults[f"killed {point}"] == 1

    play(scene)


def test_a_dead_instance_does_nothing_any_more() -> None:
    async def scene(world: World, store: Store) -> None:
        person = await store.ensure_account("chat", "bot", "ann")
        life, proxy = instance(world, store)
        life.kill("test")

        with pytest.raises(CutOff):
            await life.serve(pay(proxy, person))
        await asyncio.sleep(3600)

        assert (await store.wallet(person)).available == 0

    play(scene)


def test_who_falls_asleep_before_a_call_makes_it_afterwards() -> None:
    async def scene(world: World, store: Store) -> None:
        person = await store.ensure_account("chat", "bot", "ann")
        nap = Fate(kind="slept", passings=1, seconds=7.0)
        life, proxy = instance(world, store, {"before store.transfer": nap})

        await life.serve(pay(proxy, person))

        assert world.loop.time() == 7.0
        assert not life.asleep

    play(scene)


def test_a_sleeper_does_it_when_it_wakes() -> None:
    async def scene(world: World, store: Store) -> None:
        person = await store.ensure_account("chat", "bot", "ann")
        life, proxy = instance(world, store)
        life.pause(30.0)

        with pytest.raises(CutOff):
            await life.serve(pay(proxy, person), seconds=10.0)
        assert (await store.wallet(person)).available == 0
        await asyncio.sleep(21)

        assert (await store.wallet(person)).available == 100

    play(scene)


@pytest.mark.parametrize(
    ("kind", "paid", "uncertain_commits"), [("unavailable", 0, 0), ("answer lost", 100, 1), ("made twice", 100, 1)]
)
def test_a_bad_database_may_or_may_not_have_done_it(kind: str, paid: int, uncertain_commits: int) -> None:
    async def scene(world: World, store: Store) -> None:
        person = await store.ensure_account("chat", "bot", "ann")
        life, proxy = instance(world, store)
        world.rates[f"store: {kind}"] = 1.0

        outcome = await asyncio.gather(life.serve(pay(proxy, person)), return_exceptions=True)

        assert isinstance(outcome[0], Exception) == (kind != "made twice")
        assert (await store.wallet(person)).available == paid
        assert proxy.uncertain_commits == uncertain_commits

    play(scene)
