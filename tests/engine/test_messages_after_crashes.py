"""Whatever is changed for a user outside a job, the user is told once, wherever the instance crashes.

A change is made once to count the calls that an instance makes. Then it is made again for each of them, by an instance
that crashes just before or just after that call, and two other instances that continue at the same time.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from genlock.bot.money.gifts import Gifts
from genlock.domain.bulk import BulkKind, BulkSelection
from genlock.domain.errors import ChannelBusy
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.domain.money import EntryKind
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.queued_message import QUEUED
from genlock.engine import operate
from genlock.engine.accounts import AccountActions, Allowance
from genlock.engine.bulk import BulkWork
from genlock.engine.engine import Engine
from genlock.engine.erasure import DELAY_SECONDS, Erasure
from genlock.engine.refunds import REFUND, REFUNDED, RESUME_SECONDS, Refunds
from genlock.engine.tell import refund_message, send_queued, send_waiting, tell
from genlock.i18n.translator import package_texts
from genlock.ports import Database
from tests.engine.crash_points import CrashPoint, new_world
from tests.engine.faults import FaultProxy
from tests.engine.world import World, die
from tests.stores.builders import ensure_profile

BOT = "bot"
PAID = 120_000
INVITERS = count(1)


class FakeService:
    """A payment service that refunds each charge once."""

    name, currency, symbol = "Telegram", "stars", "⭐"

    def __init__(self) -> None:
        self.refunded: set[str] = set()

    async def refund(self, payment: Payment, external_id: str) -> None:
        assert external_id
        self.refunded.add(payment.charge)

    async def balance(self) -> int:
        return 0


@dataclass
class Instance:
    """An instance whose every call can crash it, and what it acts with."""

    world: World
    service: FakeService
    crash: CrashPoint = field(default_factory=CrashPoint)

    def __post_init__(self) -> None:
        store, channel, service = (
            FaultProxy(target) for target in (self.world.store, self.world.channel, self.service)
        )
        for proxy in (store, channel, service):
            proxy.tap = self.crash
        self.engine: Engine = self.world.engine(store=store, channel=channel)
        self.store = cast("Database", store)
        self.store_faults, self.faults = store, service
        self.send = partial(send_queued, self.engine.ctx)
        self.refunds = Refunds(
            bot=BOT, store=self.store, texts=package_texts(), send_queued=self.send, service=cast("Any", service)
        )
        self.actions = AccountActions(
            store=self.store, texts=package_texts(), tell=partial(tell, self.engine.ctx), send_queued=self.send
        )

    @property
    def charge(self) -> str:
        return f"charge of {self.world.account}"


async def paid(world: World, charge: str) -> None:
    await world.store.transfer(world.account, EntryKind.TOPUP, PAID, f"stars:{charge}")
    await world.store.add_payment(charge, world.account, 100, PAID)


class Change:
    """What is changed for the user of a world, and how another instance continues after a crash."""

    #: how many messages it brings
    messages = 1

    async def prepare(self, world: World) -> None:
        """Bring about what the change needs."""

    async def make(self, instance: Instance) -> None:
        raise NotImplementedError

    async def go_on(self, instance: Instance) -> None:
        """By default the change is asked for again, as when an update is handled again."""
        await self.make(instance)

    async def is_made(self, world: World) -> bool:
        return True


class RefundByOperator(Change):
    async def prepare(self, world: World) -> None:
        await paid(world, f"charge of {world.account}")

    async def make(self, instance: Instance) -> None:
        payment = await instance.refunds.refund(instance.charge, "op")
        await instance.refunds.tell_refunded(payment)

    async def go_on(self, instance: Instance) -> None:
        await instance.refunds.resume(RESUME_SECONDS)

    async def is_made(self, world: World) -> bool:
        payment = await world.store.payment(f"charge of {world.account}")
        assert payment is not None
        assert payment.state is not PaymentState.REFUNDING
        return payment.state is PaymentState.REFUNDED


class ResumedRefund(RefundByOperator):
    """A refund whose answer was lost."""

    async def prepare(self, world: World) -> None:
        await super().prepare(world)
        charge = f"charge of {world.account}"
        await world.store.kv_put(f"{REFUND}{charge}", "op", BOT)
        assert await world.store.begin_refund(charge, "op")

    async def make(self, instance: Instance) -> None:
        await instance.refunds.resume(0.0)


class ConfirmedRefund(ResumedRefund):
    """A refund that the service's own list confirms, after its answer was lost."""

    async def make(self, instance: Instance) -> None:
        await instance.refunds.book_external(instance.charge)


class ExternalRefund(RefundByOperator):
    """A refund without us. The service's list is read again from the same position."""

    async def make(self, instance: Instance) -> None:
        await instance.refunds.book_external(instance.charge)

    async def go_on(self, instance: Instance) -> None:
        await instance.refunds.resume(RESUME_SECONDS)
        await instance.refunds.book_external(instance.charge)


class Credit(Change):
    allowance: Allowance | None = None

    async def make(self, instance: Instance) -> None:
        account = instance.world.account
        message = await instance.actions.move_credits(
            account, EntryKind.GRANT, 500, key=f"form {account}", reason="sorry", allowance=self.allowance
        )
        if message is not None:
            await instance.actions.send_queued(message)


class CreditWithinAllowance(Credit):
    allowance = Allowance(name="support", most=10**9)


class RefundOfOrder(Change):
    async def prepare(self, world: World) -> None:
        engine = world.engine()
        job = await world.running(engine, notice=False)
        await world.call_back(engine, job)
        await die(engine)

    async def make(self, instance: Instance) -> None:
        [job] = await instance.world.store.jobs(account_id=instance.world.account)
        ctx = instance.engine.ctx
        message = await refund_message(instance.store, package_texts(), job)
        if await operate.refund(ctx, job.id, "op", message=message):
            await send_queued(ctx, message)


class BulkRefund(RefundOfOrder):
    async def prepare(self, world: World) -> None:
        await super().prepare(world)
        await world.store.begin_bulk_action(
            BulkKind.REFUND,
            BulkSelection(filters=JobFilter(account_id=world.account)),
            author="op",
            request_key=f"bulk {world.account}",
            expected=JobCount(number=1, kind=CountKind.EXACT),
        )

    async def make(self, instance: Instance) -> None:
        work = BulkWork(instance.engine.ctx, instance.engine.leader, instance.store)
        while actions := await instance.store.open_bulk_actions(1):
            await work.advance(actions[0])


class ErasedAccount(Change):
    async def prepare(self, world: World) -> None:
        await Erasure(world.store).request(world.account, "user", f"erasure of {world.account}")
        world.clock.advance(DELAY_SECONDS)

    async def make(self, instance: Instance) -> None:
        await Erasure(instance.store, package_texts(), instance.send).run(BOT)


class Reward(RefundOfOrder):
    messages = 2

    async def prepare(self, world: World) -> None:
        await super().prepare(world)
        await paid(world, f"own money of {world.account}")

    async def make(self, instance: Instance) -> None:
        rules = SimpleNamespace(reward_inviter=5_000, reward_invited=3_000)
        bundle = SimpleNamespace(id=BOT, rules=rules, texts=package_texts())
        gifts = Gifts(
            bundle=cast("Any", bundle), store=instance.store, quotas=cast("Any", None), send_queued=instance.send
        )
        await gifts.reward()


async def user_of(world: World) -> World:
    """A new account that the channel reaches, invited by another one."""
    inviter = await world.store.ensure_account("chat", BOT, f"inviter {next(INVITERS)}")
    new = await new_world(world)
    for account, referred_by in ((inviter, None), (new.account, inviter)):
        await world.store.set_account_address(account, str(account))
        await ensure_profile(world.store, account, language="en", name="Ann", username="", referred_by=referred_by)
    return new


async def make_until_crash(change: Change, instance: Instance) -> None:
    try:
        await asyncio.ensure_future(change.make(instance))
    except asyncio.CancelledError:
        assert instance.crash.dead
    await die(instance.engine)


async def go_on(change: Change, world: World, service: FakeService) -> None:
    """Let the new leader and the old one, which does not know yet that it is not the leader, do what is left."""
    world.clock.advance(RESUME_SECONDS)
    both = [Instance(world, service) for _ in range(2)]
    await asyncio.gather(*(change.go_on(instance) for instance in both))
    await asyncio.gather(*(send_waiting(instance.engine.ctx) for instance in both))
    for prefix, bot in ((QUEUED, ""), (REFUND, BOT), (REFUNDED, BOT)):
        assert await world.store.kv_list(prefix, bot) == []


def lost(calls: list[str]) -> set[int]:
    """The calls at which a crash loses a message: it has left the queue, and is sent at most once."""
    sent = [call for call, name in enumerate(calls) if name == "before tell"]
    assert all(calls[call - 1] == "after kv_delete" for call in sent)
    return {call - back for call in sent for back in (0, 1)}


CHANGES = [
    BulkRefund,
    RefundByOperator, ResumedRefund, ConfirmedRefund, ExternalRefund, Credit, CreditWithinAllowance, RefundOfOrder,
    ErasedAccount, Reward,
]  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
async def test_the_user_is_told_of_a_change_once_wherever_the_instance_crashes(
    world: World, kind: type[Change]
) -> None:
    change, first = kind(), await user_of(world)
    await change.prepare(first)
    whole = Instance(first, FakeService())
    await make_until_crash(change, whole)
    calls = whole.crash.calls
    assert len(first.channel.told) == change.messages
    assert len(calls) >= 8

    for call, name in enumerate(calls):
        after, service = await user_of(world), FakeService()
        await change.prepare(after)
        crashing = Instance(after, service, CrashPoint(call))
        await make_until_crash(change, crashing)
        assert crashing.crash.dead, name
        await go_on(change, after, service)

        expected = change.messages - (call in lost(calls)) if await change.is_made(after) else 0
        assert len(after.channel.told) == expected, f"{call}: {name} of {calls}"


async def test_two_leaders_that_resume_one_refund_at_the_same_moment_tell_the_user_once(world: World) -> None:
    """As during a stop: the old leader has asked the payment service, and so has the new one."""
    change, user, service = ResumedRefund(), await user_of(world), FakeService()
    await change.prepare(user)
    both = [Instance(user, service) for _ in range(2)]
    gates = [instance.faults.gate("refund") for instance in both]
    for gate in gates:
        gate.shut()

    resumed = [asyncio.create_task(change.make(instance)) for instance in both]
    for gate in gates:
        await gate.holds()
    for gate in gates:
        gate.open()
    await asyncio.gather(*resumed)

    assert len(user.channel.told) == 1
    assert await change.is_made(user)
    assert [line.detail for line in await world.store.audit(10)] == ["100 ⭐"]
    await go_on(change, user, service)
    assert len(user.channel.told) == 1


async def test_a_refund_that_another_leader_has_finished_meanwhile_is_recorded_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, user, service = ResumedRefund(), await user_of(world), FakeService()
    await change.prepare(user)
    first, second = Instance(user, service), Instance(user, service)
    stale = await world.store.payment(first.charge)
    await change.make(first)

    async def open_before(_: str) -> Payment | None:
        return stale

    monkeypatch.setattr(second.refunds, "_open", open_before)
    await second.refunds._resume(second.charge, "op")

    assert [line.detail for line in await world.store.audit(10)] == ["100 ⭐"]
    assert len(user.channel.told) == 1


async def test_a_message_that_the_channel_asks_to_wait_with_survives_the_erasure_that_it_tells_of(
    world: World,
) -> None:
    change, user, service = ErasedAccount(), await user_of(world), FakeService()
    await change.prepare(user)
    user.channel.faults.add("tell", ChannelBusy(30.0))
    first, second = Instance(user, service), Instance(user, service)
    gate = second.store_faults.gate("erase_account")
    gate.shut()
    late = asyncio.create_task(change.make(second))
    await gate.holds()

    await change.make(first)
    gate.open()
    await late
    await go_on(change, user, service)

    [(_, text)] = user.channel.told
    assert text == package_texts().translator("en").html("privacy.erased")
