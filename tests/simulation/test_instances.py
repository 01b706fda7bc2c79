"""A dead instance does nothing any more; a paused one continues later."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from genlock.domain.money import EntryKind
from genlock.ports import Store
from genlock.sandbox.simulation.databases import Sqlite
from genlock.sandbox.simulation.instances import InstanceFault, InstanceLifecycle, NoAnswer, StoreProxy
from genlock.sandbox.simulation.virtual_time import VirtualLoop
from genlock.sandbox.simulation.world import World


def play(scene: Callable[[World, Store], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        world = World(1)
        world.rates = dict.fromkeys(world.rates, 0.0)
        assert isinstance(world.loop, VirtualLoop)
        await scene(world, await Sqlite().open(world.loop))
        world.finished = True

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


def instance(
    world: World, store: Store, instance_faults: dict[str, InstanceFault] | None = None
) -> tuple[InstanceLifecycle, Any]:
    lifecycle = InstanceLifecycle(world, "i1", instance_faults or {})
    return lifecycle, StoreProxy(world, lifecycle, store, 5.0)


async def pay(store: Store, account: int) -> None:
    await store.transfer(account, EntryKind.GRANT, 100, "key")


@pytest.mark.parametrize(("point", "paid"), [("before store.transfer", 0), ("after store.transfer", 100)])
def test_a_call_takes_effect_only_if_the_instance_dies_after_it(point: str, paid: int) -> None:
    async def scene(world: World, store: Store) -> None:
        account = await store.ensure_account("chat", "bot", "ann")
        lifecycle, proxy = instance(world, store, {point: InstanceFault(kind="killed", passes_left=1)})

        with pytest.raises(NoAnswer):
            await lifecycle.serve(pay(proxy, account))

        assert lifecycle.dead
        assert (await store.wallet(account)).available == paid
        assert world.faults[f"killed {point}"] == 1

    play(scene)


def test_a_dead_instance_does_nothing_any_more() -> None:
    async def scene(world: World, store: Store) -> None:
        account = await store.ensure_account("chat", "bot", "ann")
        lifecycle, proxy = instance(world, store)
        lifecycle.kill("test")

        with pytest.raises(NoAnswer):
            await lifecycle.serve(pay(proxy, account))
        await asyncio.sleep(3600)

        assert (await store.wallet(account)).available == 0

    play(scene)


def test_an_instance_paused_before_a_call_makes_it_afterwards() -> None:
    async def scene(world: World, store: Store) -> None:
        account = await store.ensure_account("chat", "bot", "ann")
        nap = InstanceFault(kind="paused", passes_left=1, seconds=7.0)
        lifecycle, proxy = instance(world, store, {"before store.transfer": nap})

        await lifecycle.serve(pay(proxy, account))

        assert world.loop.time() == 7.0
        assert not lifecycle.asleep

    play(scene)


def test_a_paused_instance_serves_its_request_when_it_resumes() -> None:
    async def scene(world: World, store: Store) -> None:
        account = await store.ensure_account("chat", "bot", "ann")
        lifecycle, proxy = instance(world, store)
        lifecycle.pause(30.0)

        with pytest.raises(NoAnswer):
            await lifecycle.serve(pay(proxy, account), seconds=10.0)
        assert (await store.wallet(account)).available == 0
        await asyncio.sleep(21)

        assert (await store.wallet(account)).available == 100

    play(scene)


@pytest.mark.parametrize(
    ("kind", "paid", "uncertain_commits"),
    [("unavailable", 0, 0), ("answer lost", 100, 1), ("statement retried", 100, 1)],
)
def test_a_faulty_database_may_or_may_not_have_made_the_write(kind: str, paid: int, uncertain_commits: int) -> None:
    async def scene(world: World, store: Store) -> None:
        account = await store.ensure_account("chat", "bot", "ann")
        lifecycle, proxy = instance(world, store)
        world.rates[f"store: {kind}"] = 1.0

        outcome = await asyncio.gather(lifecycle.serve(pay(proxy, account)), return_exceptions=True)

        assert isinstance(outcome[0], Exception) == (kind != "statement retried")
        assert (await store.wallet(account)).available == paid
        assert proxy.uncertain_commits == uncertain_commits

    play(scene)
