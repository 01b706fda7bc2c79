"""Accepting: an order and its hold are one commit under one idempotency key; a refused order writes nothing."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.errors import AccountNotFound, IdempotencyKeyReused, InsufficientBalance, Refusal
from genlock.domain.events import Event
from genlock.domain.job import State
from genlock.domain.money import EntryKind, HoldState
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.world import FUNDS, PRICE, World, idle


async def test_an_accepted_order_holds_its_price(world: World, engine: Engine) -> None:
    job = await engine.order(world.order())

    wallet = await world.wallet()
    assert (wallet.available, wallet.held) == (FUNDS - PRICE, PRICE)
    assert job.hold_state is HoldState.HELD
    [line] = [line for line in await world.store.ledger_entries(world.account, 10) if line.job_id == job.id]
    assert (line.kind, line.amount) == (EntryKind.HOLD, PRICE)


async def test_an_order_without_a_correlation_id_gets_one_of_its_own(world: World, engine: Engine) -> None:
    jobs = [await engine.order(replace(world.order(), correlation_id="")) for _ in range(2)]

    ids = [job.correlation_id for job in jobs]
    assert all(ids)
    assert len(set(ids)) == 2
    assert [seen.correlation_id for seen in world.recorder.of(Event.JOB_CREATED)] == ids


async def test_the_same_key_gives_the_same_job_and_holds_once(world: World, engine: Engine) -> None:
    order = world.order()

    first = await engine.order(order)
    await idle(engine)
    again = await engine.order(order)
    from_another_instance = await world.engine().order(order)
    await idle(*world.engines)

    assert again.id == first.id == from_another_instance.id
    assert (await world.wallet()).held == PRICE
    assert len(world.provider.created) == 1
    assert len(world.recorder.of(Event.JOB_CREATED)) == 1
    assert len(world.recorder.of(Event.JOB_REPLAYED)) == 2


async def test_the_same_key_at_the_same_moment_gives_one_job(world: World, engine: Engine) -> None:
    order = world.order()
    other = world.engine()

    jobs = await asyncio.gather(*(instance.order(order) for instance in (engine, other) for _ in range(10)))
    await idle(engine, other)

    assert len({job.id for job in jobs}) == 1
    assert (await world.wallet()).held == PRICE
    assert len(world.provider.created) == 1


async def test_the_same_key_gives_the_same_job_even_when_it_has_ended_and_the_money_is_gone(
    world: World, engine: Engine
) -> None:
    order = world.order(price=FUNDS)
    job = await engine.order(order)
    await idle(engine)
    await world.call_back(engine, job, task="task-1")
    assert (await world.wallet()).available == 0

    assert (await engine.order(order)).id == job.id


async def test_the_same_key_with_another_body_is_refused_and_changes_nothing(world: World, engine: Engine) -> None:
    order = world.order()
    job = await engine.order(order)

    with pytest.raises(IdempotencyKeyReused):
        await engine.order(replace(order, input='{"prompt":"a cat"}'))
    with pytest.raises(IdempotencyKeyReused):
        await engine.order(replace(order, price=PRICE - 1))

    await idle(engine)
    assert (await world.wallet()).held == PRICE
    assert [created.id for created, _ in world.provider.created] == [job.id]


async def test_without_enough_balance_nothing_is_held_written_or_called(world: World, engine: Engine) -> None:
    with pytest.raises(InsufficientBalance) as refused:
        await engine.order(world.order(price=FUNDS + 1))
    await idle(engine)

    assert (refused.value.price, refused.value.available) == (FUNDS + 1, FUNDS)
    wallet = await world.wallet()
    assert (wallet.available, wallet.held) == (FUNDS, 0)
    assert await world.store.jobs() == []
    assert world.provider.created == []
    assert world.channel.calls == []
    assert len(world.recorder.of(Event.JOB_REFUSED, reason="InsufficientBalance")) == 1


async def test_a_balance_is_never_spent_twice_by_orders_that_come_together(world: World, engine: Engine) -> None:
    orders = [world.order(price=FUNDS // 2 + 1) for _ in range(5)]

    answers = await asyncio.gather(*(engine.order(order) for order in orders), return_exceptions=True)

    assert sum(isinstance(answer, InsufficientBalance) for answer in answers) == 4
    assert (await world.wallet()).held == FUNDS // 2 + 1


async def test_a_free_order_needs_no_balance_and_moves_no_money(world: World, engine: Engine) -> None:
    newcomer = await world.store.ensure_account("chat", "bot", "43")
    job = await engine.order(world.order(account_id=newcomer, price=0))
    await idle(engine)
    await world.call_back(engine, job, task="task-1")

    assert (await world.see(job)).hold_state is HoldState.FREE
    assert await world.store.ledger_entries(newcomer, 10) == []


async def test_an_order_of_an_unknown_account_provider_or_channel_is_refused(world: World, engine: Engine) -> None:
    with pytest.raises(AccountNotFound):
        await engine.order(world.order(account_id=world.account + 1000))
    with pytest.raises(Refusal, match="the provider 'other'"):
        await engine.order(world.order(provider="other"))
    with pytest.raises(Refusal, match="the channel 'other'"):
        await engine.order(world.order(channel="other"))
    assert await world.store.jobs() == []


async def test_a_full_instance_accepts_orders_for_the_others(world: World) -> None:
    full = world.engine(EngineRules(capacity=0))

    job = await full.order(world.order())
    await idle(full)

    assert (job.state, job.lease_owner) == (State.QUEUED, None)
    assert world.provider.created == []
    [claimed] = await world.store.claim_jobs(10, world.engine().ctx.lease)
    assert claimed.id == job.id
