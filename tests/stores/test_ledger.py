"""Balances under random sequences of events, compared with a simple model."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from genlock.domain.delivery import again
from genlock.domain.errors import InsufficientBalance
from genlock.domain.job import OPEN, Delivery, NewJob, Notice, State, Verdict
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from tests.databases import sqlite_in_memory
from tests.random_examples import examples
from tests.shared_postgres import SharedPostgres
from tests.stores.builders import ME, RESULT, SHOWN, ManualClock, end, finish, order, see
from tests.stores.conftest import RecordingObserver

T = TypeVar("T")
AMOUNTS = st.integers(1, 50)
PRICES = st.integers(0, 40)
LEASES = st.sampled_from([ME, None])
ENDS = st.sampled_from([State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED])
DELIVERIES = st.sampled_from([Delivery.DELIVERED, Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN])


@dataclass
class Balances:
    """The balances that an account should have."""

    available: int = 0
    held: int = 0
    debt: int = 0

    def repay(self, arrived: int) -> int:
        """Repay a debt from credits that were paid for and have just arrived; gives what was repaid."""
        repaid = min(self.debt, arrived)
        self.available -= repaid
        self.debt -= repaid
        return repaid


@dataclass
class Paid:
    """What the model knows of a payment in Stars."""

    account_id: int
    amount: int
    refunding: bool = False
    refunded: bool = False
    refunds: int = 0


@dataclass
class Order:
    """What the model knows of a job: its money and its lease token."""

    id: int
    account_id: int
    price: int
    hold_state: HoldState
    token: int
    state: State = State.QUEUED
    delivery: Delivery = Delivery.NONE
    late: bool = False
    leased: bool = True
    submitted: bool = False
    notice: Notice = Notice.WANTED

    def verdict(self, state: State) -> Verdict:
        """The verdict that an attempt to end it in this state must get."""
        if self.state in OPEN:
            return Verdict.WON
        late = self.state in (State.EXPIRED, State.FAILED) and state is State.SUCCEEDED and not self.late
        if late and self.submitted:
            return Verdict.BUSY if self.leased else Verdict.LATE
        if self.state is State.CANCELLED:
            return Verdict.CANCELLED
        if self.state is State.SUCCEEDED and state is State.FAILED:
            return Verdict.CONTRADICTION
        return Verdict.DUPLICATE


class Ledger(RuleBasedStateMachine):
    """Accounts pay, order, receive, fail, cancel and get results resent; balances match the model after each step."""

    accounts = Bundle("accounts")
    jobs = Bundle("jobs")
    transfers = Bundle("transfers")
    orders = Bundle("orders")
    charges = Bundle("charges")

    #: it has the loop of the store, which PostgreSQL's connections cannot leave
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self._store = self._run(self._open())
        self._balances: dict[int, Balances] = {}
        self._orders: dict[int, Order] = {}
        self._accepted: dict[str, int] = {}
        self._payments: dict[str, Paid] = {}
        self._paid_in = 0
        self._keys = 0

    async def _open(self) -> SqlDatabase:
        """An empty store."""
        return await sqlite_in_memory(ManualClock(), RecordingObserver())

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.get_loop().run_until_complete(coroutine)

    def teardown(self) -> None:
        self._run(self._store.close())

    # accounts and the house

    @rule(target=accounts, amount=AMOUNTS)
    def meet(self, amount: int) -> int:
        account_id = self._run(self._store.ensure_account("chat", "bot", str(len(self._balances))))
        self._balances[account_id] = Balances()
        self.pay_in(account_id, EntryKind.GRANT, amount)
        return account_id

    @rule(
        target=transfers, account_id=accounts, kind=st.sampled_from([EntryKind.TOPUP, EntryKind.REFUND]), amount=AMOUNTS
    )
    def pay_in(self, account_id: int, kind: EntryKind, amount: int) -> tuple[int, EntryKind, int, str]:
        self._keys += 1
        transfer = (account_id, kind, amount, f"transfer:{self._keys}")
        assert self._run(self._store.transfer(*transfer))
        balances = self._balances[account_id]
        balances.available += amount
        self._paid_in += amount
        if kind is not EntryKind.GRANT:
            self._paid_in -= balances.repay(amount)
        return transfer

    @rule(target=transfers, account_id=accounts, amount=AMOUNTS)
    def take_out(self, account_id: int, amount: int) -> Any:
        self._keys += 1
        transfer = (account_id, EntryKind.DEBIT, amount, f"transfer:{self._keys}")
        if amount > self._balances[account_id].available:
            with pytest.raises(InsufficientBalance):
                self._run(self._store.transfer(*transfer))
            return multiple()
        assert self._run(self._store.transfer(*transfer))
        self._balances[account_id].available -= amount
        self._paid_in -= amount
        return transfer

    @rule(transfer=transfers)
    def transfer_again(self, transfer: tuple[int, EntryKind, int, str]) -> None:
        assert not self._run(self._store.transfer(*transfer))

    # payments in Stars, and refunds by operators and by Telegram

    @rule(target=charges, account_id=accounts, amount=AMOUNTS)
    def pay(self, account_id: int, amount: int) -> str:
        charge = f"charge-{len(self._payments)}"
        assert self._run(self._store.transfer(account_id, EntryKind.TOPUP, amount, f"stars:{charge}"))
        assert self._run(self._store.add_payment(charge, account_id, 1, amount))
        self._payments[charge] = Paid(account_id, amount)
        balances = self._balances[account_id]
        balances.available += amount
        self._paid_in += amount - balances.repay(amount)
        return charge

    @rule(charge=charges)
    def pay_again(self, charge: str) -> None:
        payment = self._payments[charge]
        key = f"stars:{charge}"
        assert not self._run(self._store.transfer(payment.account_id, EntryKind.TOPUP, payment.amount, key))

    @rule(charge=charges)
    def begin_refund(self, charge: str) -> None:
        payment = self._payments[charge]
        balances = self._balances[payment.account_id]
        possible = not (payment.refunding or payment.refunded) and balances.available >= payment.amount
        assert (self._run(self._store.begin_refund(charge, "op")) is not None) == possible
        if possible:
            balances.available -= payment.amount
            self._paid_in -= payment.amount
            payment.refunding = True
            payment.refunds += 1

    @rule(charge=charges, drift=st.sampled_from([0, 0, -1]))
    def undo_refund(self, charge: str, drift: int) -> None:
        payment = self._payments[charge]
        possible = payment.refunding and not drift
        assert self._run(self._store.undo_refund(charge, payment.refunds + drift, "refused")) == possible
        if possible:
            payment.refunding = False
            balances = self._balances[payment.account_id]
            balances.available += payment.amount
            self._paid_in += payment.amount - balances.repay(payment.amount)

    @rule(charge=charges)
    def refund_by_telegram(self, charge: str) -> None:
        payment = self._payments[charge]
        booked = self._run(self._store.book_external_refund(charge, "telegram"))
        assert (booked is None) == payment.refunded
        if not payment.refunded and not payment.refunding:
            balances = self._balances[payment.account_id]
            taken = min(balances.available, payment.amount)
            balances.available -= taken
            balances.debt += payment.amount - taken
            self._paid_in -= taken
        payment.refunded, payment.refunding = True, False

    # jobs

    @rule(target=orders, account_id=accounts, price=PRICES)
    def want(self, account_id: int, price: int) -> NewJob:
        return order(account_id, price=price)

    @rule(target=jobs, wanted=orders, lease=LEASES)
    def accept(self, wanted: NewJob, lease: Any) -> Any:
        balances = self._balances[wanted.account_id]
        known = self._accepted.get(wanted.request_key)
        if known is None and wanted.price > balances.available:
            with pytest.raises(InsufficientBalance):
                self._run(self._store.accept_job(wanted, lease))
            return multiple()
        accepted = self._run(self._store.accept_job(wanted, lease))
        job = accepted.job
        assert accepted.created == (known is None)
        if known is not None:
            assert job.id == known
            return multiple()
        self._accepted[wanted.request_key] = job.id
        balances.available -= wanted.price
        balances.held += wanted.price
        self._orders[job.id] = Order(
            id=job.id,
            account_id=job.account_id,
            price=job.price,
            hold_state=HoldState.HELD if job.price else HoldState.FREE,
            token=job.lease_token,
            leased=lease is not None,
        )
        return job.id

    @rule(job_id=jobs)
    def submit(self, job_id: int) -> None:
        """Record the intent to call the provider: only a job that was submitted takes a late result."""
        job = self._orders[job_id]
        begun = self._run(self._store.begin_submit(job_id, job.token, "hash", None))
        assert begun == (job.leased and job.state in (State.QUEUED, State.SUBMITTING))
        if begun:
            job.state, job.submitted = State.SUBMITTING, True

    @rule(job_id=jobs, state=ENDS, lease=LEASES)
    def end(self, job_id: int, state: State, lease: Any) -> None:
        """End by a report, a deadline or a cancellation; a success after the deadline is late and free."""
        job = self._orders[job_id]
        expected = job.verdict(state)

        attempt = self._run(end(self._store, job_id, state, lease))

        assert attempt.verdict is expected
        if expected in (Verdict.WON, Verdict.LATE):
            job.late = expected is Verdict.LATE
            job.state = job.state if job.late else state
            job.token += 1
            job.delivery = Delivery.SENDING if lease else Delivery.PENDING
            job.leased = lease is not None
            job.notice = Notice.WANTED
            if expected is Verdict.WON and state is not State.SUCCEEDED:
                self._settle(job, HoldState.RELEASED)

    @rule(job_id=jobs, state=ENDS, drift=st.sampled_from([-1, 1]))
    def end_with_a_stale_token(self, job_id: int, state: State, drift: int) -> None:
        token = self._orders[job_id].token + drift
        assert self._run(end(self._store, job_id, state, token=token)).verdict is Verdict.STALE

    @rule(job_id=jobs, delivery=DELIVERIES)
    def finish(self, job_id: int, delivery: Delivery) -> None:
        job = self._orders[job_id]
        sending = job.delivery is Delivery.SENDING

        assert self._finished(job, delivery, job.token) == sending

        if sending:
            job.delivery = delivery
            if delivery is Delivery.UNKNOWN or (delivery is Delivery.DELIVERED and job.notice is Notice.WANTED):
                job.notice = Notice.DUE
            job.leased = job.notice is Notice.DUE
            arrived = delivery is Delivery.DELIVERED and job.state is State.SUCCEEDED
            self._settle(job, HoldState.CAPTURED if arrived else HoldState.RELEASED)

    @rule(job_id=jobs, delivery=DELIVERIES, drift=st.sampled_from([-1, 1]))
    def finish_with_a_stale_token(self, job_id: int, delivery: Delivery, drift: int) -> None:
        job = self._orders[job_id]
        assert not self._finished(job, delivery, job.token + drift)

    def _finished(self, job: Order, delivery: Delivery, token: int) -> bool:
        row = self._run(see(self._store, job.id))
        return self._run(finish(self._store, row, delivery, token=token, parts=SHOWN))

    @rule(job_id=jobs)
    def notify(self, job_id: int) -> None:
        job = self._orders[job_id]
        assert self._run(self._store.begin_notice(job_id, job.token)) == (job.notice is Notice.DUE)
        if job.notice is Notice.DUE:
            job.notice = Notice.SENT
            job.leased = False

    @rule(job_id=jobs)
    def resend(self, job_id: int) -> None:
        job = self._orders[job_id]
        possible = job.delivery in (Delivery.DELIVERED, Delivery.UNDELIVERABLE, Delivery.UNKNOWN)

        assert self._run(self._store.resend_job(job_id, again(RESULT))) == possible

        if possible:
            job.token += 1
            job.delivery = Delivery.PENDING
            job.leased = False
            if job.notice is Notice.DUE:
                job.notice = Notice.WANTED

    @rule(limit=st.integers(1, 3))
    def claim(self, limit: int) -> None:
        for taken in self._run(self._store.claim_jobs(limit, ME)):
            job = self._orders[taken.id]
            job.token += 1
            job.leased = True
            if job.delivery is Delivery.PENDING:
                job.delivery = Delivery.SENDING
            assert (taken.lease_token, taken.delivery) == (job.token, job.delivery)

    def _settle(self, job: Order, hold_state: HoldState) -> None:
        """Settle the hold of a job, once."""
        if job.hold_state is not HoldState.HELD:
            return
        job.hold_state = hold_state
        balances = self._balances[job.account_id]
        balances.held -= job.price
        if hold_state is HoldState.RELEASED:
            balances.available += job.price
            self._paid_in -= balances.repay(job.price)
        else:
            self._paid_in -= job.price

    # always

    @invariant()
    def balances_and_hold_states_match_the_model_and_no_invariant_is_violated(self) -> None:
        self._run(self._check())

    async def _check(self) -> None:
        for account_id, balances in self._balances.items():
            expected = Wallet(
                account_id=account_id, available=balances.available, held=balances.held, debt=balances.debt
            )
            assert await self._store.wallet(account_id) == expected
            assert min(balances.available, balances.held) >= 0
        assert sum(balances.available + balances.held for balances in self._balances.values()) == self._paid_in
        rows = {row.id: row for row in await self._store.jobs(limit=1000)}
        assert {job_id: (row.state, row.delivery, row.hold_state, row.notice) for job_id, row in rows.items()} == {
            job.id: (job.state, job.delivery, job.hold_state, job.notice) for job in self._orders.values()
        }
        assert await self._store.violations(settled=False) == []


@pytest.mark.slow
@pytest.mark.random
def test_balances_match_the_model_on_sqlite() -> None:
    with asyncio.Runner() as loop:

        class OnSqlite(Ledger):
            runner = loop

        few = settings(max_examples=examples(30), stateful_step_count=40)
        run_state_machine_as_test(OnSqlite, settings=few)


@pytest.mark.random
def test_balances_match_the_model_on_postgresql(migrated_postgres_url: str) -> None:
    with asyncio.Runner() as loop:
        opened = loop.run(PostgresStore.open(migrated_postgres_url, observer=RecordingObserver(), connections=1))
        shared = SharedPostgres(migrated_postgres_url, opened.session.pool)

        class OnPostgres(Ledger):
            runner = loop

            async def _open(self) -> SqlDatabase:
                return await shared.new_store(ManualClock(), RecordingObserver())

            def teardown(self) -> None:
                """The connections stay open for the next case."""

        few = settings(max_examples=examples(10), stateful_step_count=30, suppress_health_check=list(HealthCheck))
        run_state_machine_as_test(OnPostgres, settings=few)
        loop.run(opened.close())
