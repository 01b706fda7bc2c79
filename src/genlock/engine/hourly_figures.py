"""Figures by hour: the leader keeps them for the dashboard, in small steps, beside the work.

What is counted where:

- **Jobs.** An order's figures belong to the hour in which it was accepted, whatever becomes of it later. Jobs are
  counted in blocks of successive ids. A block is counted again while it has open jobs, and the difference to the last
  count is added to the figures of its hours and days, in the same commit. A job that changes after its end (a resend,
  a late result, the cost of a cancelled task or of an attempt that was given up, a refund by an operator) leaves a row
  in `figure_changes`, by a trigger, and its block is counted again.
- **Payments.** All payments of an hour are counted together, again when one of them changes.
- **Accounts.** Who started, ordered and paid is kept as sets, so that the users of any period are counted exactly. Days
  that have passed are united to sets of 30 days: a long period is then read from few sets.

Every step may be repeated, and a crash between two steps loses nothing: the next leader reads from the store what is
left to do. Counting everything again (`clear_figures`) gives the same figures.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from genlock.domain.account_set import PIECE_ACCOUNTS, AccountSet
from genlock.engine.context import EngineContext
from genlock.engine.leader import Leader
from genlock.ports import UNITED_DAYS, HourlyFigureStore, NewPayment, Role, SetKey, united_kind

PERIOD_SECONDS = 10.0
#: between two steps, so that other statements can pass
PAUSE_SECONDS = 0.1
#: blocks that one round lists at a time
BLOCKS = 50
#: how long one round counts orders: it counts a block once, and the newest must not wait for a long history
ROUND_SECONDS = 30.0
#: orders, accounts or payments that one step reads
ROWS = 2000
HOURS_PER_DAY = 24
HOUR_MICROSECONDS = 3_600_000_000
#: an account in a set, before it is known which piece of the set that is: kind, span, start, bot, account
Member = tuple[str, str, int, str, int]


@dataclass(frozen=True)
class HourlyFigureKeeper:
    ctx: EngineContext
    leader: Leader
    store: HourlyFigureStore

    async def round(self) -> None:
        """Bring all figures up to date."""
        await self._count_jobs()
        await self._count_changed_topups()
        for step in (self._add_accounts, self._add_orders, self._add_payments, self._unite_days):
            more = True
            while more and (role := self.leader.role):
                more = await step(role)
                await asyncio.sleep(PAUSE_SECONDS if more else 0)

    async def _count_jobs(self) -> None:
        counted: set[int] = set()
        until = self.ctx.loop.time() + ROUND_SECONDS
        while blocks := [block for block in await self.store.due_job_blocks(BLOCKS) if block not in counted]:
            for block in blocks:
                role = self.leader.role
                if role is None or not await self.store.fold_jobs(block, role):
                    return
                counted.add(block)
                await asyncio.sleep(PAUSE_SECONDS if len(blocks) > 1 else 0)
            if self.ctx.loop.time() > until:
                return

    async def _count_changed_topups(self) -> None:
        for hour in await self.store.changed_topup_hours(BLOCKS):
            if role := self.leader.role:
                await self.store.fold_topups(hour, role)

    async def _add_accounts(self, role: Role) -> bool:
        """Put new accounts into the sets of those that started. Returns whether there may be more."""
        position = await self.store.figure_position("accounts")
        accounts = await self.store.accounts_after(int(position or 0), ROWS)
        if not accounts:
            return False
        members = [
            ("started", span, start, new.bot, new.account_id) for new in accounts for span, start in _spans(new.hour)
        ]
        return await self._save("accounts", position, str(accounts[-1].account_id), members, role)

    async def _add_orders(self, role: Role) -> bool:
        """Put the accounts of new orders into the sets of those that ordered. Returns whether there may be more."""
        position = await self.store.figure_position("orders")
        orders = await self.store.orders_after(int(position or 0), ROWS)
        if not orders:
            return False
        members: list[Member] = []
        for order in orders:
            members += [("active", span, start, order.bot, order.account_id) for span, start in _spans(order.hour)]
            if order.first:
                members += [
                    ("first_order", "hour", order.hour, order.bot, order.account_id),
                    ("ordered", "ever", 0, order.bot, order.account_id),
                ]
        return await self._save("orders", position, str(orders[-1].job_id), members, role)

    async def _add_payments(self, role: Role) -> bool:
        """Count the hours of new payments, and put their accounts into the sets of those that paid.

        The position does not pass a payment before which another one may still be committed, so that the newest are
        read again in the next round. Returns whether there may be more.
        """
        position = await self.store.figure_position("payments")
        payments = await self.store.payments_after(int(position or 0), ROWS)
        payments = _without_last_time(payments) if len(payments) == ROWS else payments
        for hour in sorted({payment.at // HOUR_MICROSECONDS for payment in payments}):
            await self.store.fold_topups(hour, role)
        members = [
            ("topped_up_again" if payment.repeated else "topped_up", "ever", 0, payment.bot, payment.account_id)
            for payment in payments
        ]
        settled = [payment for payment in payments if payment.settled]
        if not payments:
            return False
        to = str(settled[-1].at) if settled else position
        return await self._save("payments", position, to, members, role) and to != position

    async def _unite_days(self, role: Role) -> bool:
        """Unite the next 30 days of each kind that no order or account is added to any more. Returns whether it did."""
        account_id = int(await self.store.figure_position("accounts") or 0)
        job_id = int(await self.store.figure_position("orders") or 0)
        accounts = await self.store.accounts_after(account_id - 1, 1) if account_id else []
        orders = await self.store.orders_after(job_id - 1, 1) if job_id else []
        united = [await self._unite_until("started", account.hour // HOURS_PER_DAY, role) for account in accounts]
        united += [await self._unite_until("active", order.hour // HOURS_PER_DAY, role) for order in orders]
        return any(united)

    async def _unite_until(self, kind: str, today: int, role: Role) -> bool:
        """Unite the next 30 days if they ended before the day that is being counted."""
        name = united_kind(kind)
        position = await self.store.figure_position(name)
        if position:
            day = int(position)
        else:
            known = await self.store.account_set_days(kind, 0, today)
            day = min(known, default=today) // UNITED_DAYS * UNITED_DAYS
        if day + UNITED_DAYS >= today:
            return False
        sets = await self.store.account_sets_of_days(kind, range(day, day + UNITED_DAYS))
        pieces = AccountSet.union(sets.values()).pieces
        keys = {SetKey(kind=name, span="day", start=day, bot="", piece=piece): bits for piece, bits in pieces.items()}
        return await self.store.save_account_sets(name, position, str(day + UNITED_DAYS), keys, role)

    async def _save(self, name: str, before: str, to: str, members: Iterable[Member], role: Role) -> bool:
        """Add accounts to their sets and move the position, in one commit."""
        added: dict[SetKey, int] = defaultdict(int)
        for kind, span, start, bot, account_id in members:
            piece, bit = divmod(account_id, PIECE_ACCOUNTS)
            added[SetKey(kind=kind, span=span, start=start, bot=bot, piece=piece)] |= 1 << bit
        known = await self.store.account_sets(list(added))
        sets = {key: known.get(key, 0) | bits for key, bits in added.items()}
        sets = {key: bits for key, bits in sets.items() if bits != known.get(key)}
        if not sets and to == before:
            return False
        return await self.store.save_account_sets(name, before, to, sets, role)


def _spans(hour: int) -> Sequence[tuple[str, int]]:
    return ("hour", hour), ("day", hour // HOURS_PER_DAY)


def _without_last_time(payments: Sequence[NewPayment]) -> list[NewPayment]:
    """Leave out the payments of the last time of a full page: there may be more of the same time."""
    return [payment for payment in payments if payment.at < payments[-1].at] or list(payments)
