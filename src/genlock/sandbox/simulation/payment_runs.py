"""Payments of a simulation: credited once, refunded by operators and by the payment service, and promo codes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, cast

from genlock.domain.errors import ActionNotAllowed, ChannelBusy, ChannelError, ChannelOutcomeUnknown
from genlock.domain.money import EntryKind
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.promo import Promo, PromoVerdict
from genlock.domain.queued_message import QueuedMessage
from genlock.engine.context import EngineContext
from genlock.engine.periodic import PeriodicTask
from genlock.engine.refunds import Refunds
from genlock.i18n.translator import package_texts
from genlock.ports import Database, Violation
from genlock.ports.payment_service import PaymentService
from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import InstanceLifecycle, transmit
from genlock.sandbox.simulation.users import Users
from genlock.sandbox.simulation.world import World

BOT = "bot"
PAYMENTS = 8
AMOUNT = 2000
RESUME_SECONDS = 3.0
PROMO = Promo(code="PROMO", amount=700, runs=0, uses_max=2, per_account=1, until=None, bot=BOT)


class Service:
    """The payment service: which charges it has really refunded. It reports each to the bot, its own and ours."""

    def __init__(self, world: World, report: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        self._world = world
        self._report = report
        self._rng = world.stream("payment service")
        self.refunded: set[str] = set()

    async def refund(self, charge: str) -> None:
        await self._world.delay(0)
        kind = self._world.pick(("send: busy", "send: request lost", "part: refused at some levels"), charge=charge)
        if kind == "send: busy":
            raise ChannelBusy(self._rng.uniform(0.5, 6.0))
        if kind == "send: request lost":
            raise ChannelOutcomeUnknown
        if kind and charge not in self.refunded:
            raise ChannelError("the charge cannot be refunded")
        self.make_refund(charge)
        if self._world.happens("send: answer lost", charge=charge):
            raise ChannelOutcomeUnknown

    def make_refund(self, charge: str) -> None:
        if charge not in self.refunded:
            self.refunded.add(charge)
            self._world.note("service", "REFUNDED", charge=charge)
            self._world.spawn(self._report(charge))


class PaymentRuns(Addition):
    calls = (
        "service.refund", "store.begin_refund", "store.finish_refund", "store.undo_refund", "store.add_payment",
        "store.book_external_refund", "store.use_promo", "store.transfer",
    )  # fmt: skip

    def __init__(self, world: World, store: Database, fleet: Fleet, users: Users) -> None:
        self._world = world
        self._store = store
        self._fleet = fleet
        self._users = users
        self._rng = world.stream("payments")
        self._service = Service(world, self._report_refund)
        self._refunds: dict[str, Refunds] = {}
        #: the account that has paid each charge
        self._paid: dict[str, int] = {}
        #: how often each account was told that a promo code was used
        self._gifts: Counter[int] = Counter()

    async def prepare(self) -> None:
        await self._store.create_promo(PROMO, lasting=None, author="operator")
        for account_id in self._users.account_ids:
            await self._store.ensure_profile_and_draft(
                account_id, chat=None, language="en", name="", username="", referred_by=None
            )

    def tasks_of(self, lifecycle: InstanceLifecycle, ctx: EngineContext) -> Sequence[PeriodicTask]:
        async def refund(payment: Payment, _: str) -> None:
            await transmit(self._world, lifecycle, "service.refund", lambda: self._service.refund(payment.charge))

        async def send_queued(message: QueuedMessage) -> bool:
            return await ctx.store.kv_delete(message.key)

        service = SimpleNamespace(name="Telegram", currency="stars", symbol="*", refund=refund)
        refunds = Refunds(
            bot=BOT,
            store=cast("Database", ctx.store),
            texts=package_texts(),
            send_queued=send_queued,
            service=cast("PaymentService", service),
        )
        self._refunds[lifecycle.name] = refunds

        async def resume() -> None:
            await refunds.resume(RESUME_SECONDS)

        return [PeriodicTask(name="resume_refunds", period_seconds=1.5, run=resume, leader_only=True)]

    # what users, operators and the payment service do

    async def work(self) -> None:
        for number in range(PAYMENTS):
            await asyncio.sleep(self._rng.uniform(0.0, 6.0))
            account_id = self._rng.choice(self._users.account_ids)
            self._world.spawn(self._pay(f"c{number}", account_id))
            self._world.spawn(self._use_promo(f"p{number}", self._rng.choice(self._users.account_ids)))

    async def _pay(self, charge: str, account_id: int) -> None:
        """Pay; the update comes once or more. Then the payment may be refunded, by one side or both."""

        async def credit(instance: Instance) -> None:
            store = cast("Database", instance.store)
            await store.transfer(account_id, EntryKind.TOPUP, AMOUNT, f"stars:{charge}", "stars")
            await store.add_payment(charge, account_id, 100, AMOUNT)

        self._paid[charge] = account_id
        for _ in range(self._rng.choice((1, 1, 2))):
            await self._fleet.ask_until_answered(credit, self._rng)
        await asyncio.sleep(self._rng.uniform(0.0, 20.0))
        sides = self._rng.choice(((), (self._refund_outside,), (self._refund,), (self._refund_outside, self._refund)))
        await asyncio.gather(*(side(charge) for side in sides))

    async def _refund_outside(self, charge: str) -> None:
        await asyncio.sleep(self._rng.random() * 2.0)
        self._service.make_refund(charge)

    async def _report_refund(self, charge: str) -> None:
        """Tell the bot of a refund, once or more."""

        async def book(instance: Instance) -> None:
            await self._refunds[instance.lifecycle.name].book_external(charge)

        for _ in range(self._rng.choice((1, 2))):
            await self._fleet.ask_until_answered(book, self._rng)

    async def _refund(self, charge: str) -> None:
        async def refund(instance: Instance) -> None:
            try:
                await self._refunds[instance.lifecycle.name].refund(charge, "operator")
            except (ActionNotAllowed, ChannelError):
                return

        await self._fleet.ask_until_answered(refund, self._rng)

    async def _use_promo(self, key: str, account_id: int) -> None:
        async def use(instance: Instance) -> bool:
            store = cast("Database", instance.store)
            found = await store.use_promo(PROMO.code, account_id, key)
            if found.verdict in (PromoVerdict.UNKNOWN, PromoVerdict.OVER, PromoVerdict.USED):
                return False
            gift = f"promo:{PROMO.code}:{account_id}:{found.number}"
            await store.transfer(account_id, EntryKind.GRANT, found.amount, gift, "promo code")
            return True

        answers = [await self._fleet.ask_until_answered(use, self._rng) for _ in range(self._rng.choice((1, 2)))]
        self._gifts[account_id] += any(answers)

    # checking

    async def is_settled(self) -> bool:
        payments = [await self._store.payment(charge) for charge in self._paid]
        return not any(payment and payment.state is PaymentState.REFUNDING for payment in payments)

    async def check(self) -> list[Violation]:
        """Check the payments and codes, and add what they gave to the truth, with which the wallets are compared."""
        found = []
        for charge, account_id in self._paid.items():
            payment = await self._store.payment(charge)
            refunded = charge in self._service.refunded
            if payment is None or (payment.state is PaymentState.REFUNDED) != refunded:
                detail = f"{charge}: {payment and payment.state}, refunded by the service: {refunded}"
                found.append(_violation("A payment is refunded here if it is refunded there.", detail))
            self._world.truth.granted[account_id] += 0 if refunded else AMOUNT
        if self._gifts.total() > (PROMO.uses_max or 0) or max(self._gifts.values(), default=0) > PROMO.per_account:
            found.append(_violation("A promo code is used within its limits.", f"{self._gifts}"))
        for account_id, times in self._gifts.items():
            self._world.truth.granted[account_id] += times * PROMO.amount
        return found


def _violation(rule: str, detail: str) -> Violation:
    return Violation(rule=rule, subject="-", detail=detail)
