"""Ledger, payments and figures by day as CSV files, written while they are read."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

from starlette.responses import Response

from genlock.dashboard.csv_export import Cell, credits_cell, csv_response
from genlock.dashboard.formats import zone_name
from genlock.dashboard.ledger_reader import LedgerFilter, LedgerReader
from genlock.dashboard.ledger_view import change_of
from genlock.dashboard.money_days import Day, MoneyDays
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.pages.money import MoneyPage, PaymentFilter, payment_place
from genlock.dashboard.query import Query
from genlock.dashboard.roles import Permission
from genlock.domain.money import LedgerEntry
from genlock.domain.payment import Payment
from genlock.domain.place import Place
from genlock.ports import Database

STEP = 1000
#: after each page, so that a long export leaves the database to orders for most of the time
PAUSE_SECONDS = 0.05
LEDGER = ("time_utc", "key", "account", "order", "kind", "from", "to", "credits", "balance_change", "reason")
PAYMENTS = ("time_utc", "receipt", "account", "stars", "credits", "state", "refunded_outside_utc", "credits_owed")
DAYS = (
    "day", "time_zone", "orders", "delivered", "failed", "cancelled", "refunded", "revenue_credits", "revenue_usd",
    "provider_cost_usd", "loss_usd", "margin_usd", "topups", "stars", "credits_sold", "repeated_topups",
    "refunded_payments", "refunded_stars",
)  # fmt: skip


class MoneyFiles:
    def __init__(self, store: Database, money: MoneyPage, days: MoneyDays) -> None:
        self._money = money
        self._days = days
        self._reader = LedgerReader(store)

    def routes(self) -> list[PageRoute]:
        view = partial(PageRoute, permission=Permission.VIEW, is_data=True)
        return [
            view(path="/money/ledger.csv", handler=self._ledger),
            view(path="/money/payments.csv", handler=self._payments),
            view(path="/money/days.csv", handler=self._by_day),
        ]

    async def _ledger(self, context: PageContext) -> Response:
        which = self._money.ledger_filter(Query(context, ("kind", "user", "since", "until")))
        return csv_response(context, "ledger.csv", LEDGER, self._ledger_pages(which))

    async def _ledger_pages(self, which: LedgerFilter) -> AsyncIterator[list[Sequence[Cell]]]:
        async for entries in self._reader.pages(which, STEP):
            yield [_ledger_row(entry) for entry in entries]
            await asyncio.sleep(PAUSE_SECONDS)

    async def _payments(self, context: PageContext) -> Response:
        query = Query(context, ("state", "since", "until"))
        which = query.choice("state", PaymentFilter, PaymentFilter.ALL)
        since, until = query.range()
        read = partial(self._money.payments, which, since=since, limit=STEP)

        async def pages() -> AsyncIterator[list[Sequence[Cell]]]:
            before: Place | None = query.place("before", until)
            while before is not None:
                found = await read(before=before)
                yield [_payment_row(payment) for payment in found]
                before = payment_place(found[-1], which) if len(found) == STEP else None
                await asyncio.sleep(PAUSE_SECONDS)

        return csv_response(context, "payments.csv", PAYMENTS, pages())

    async def _by_day(self, context: PageContext) -> Response:
        days = await self._days.read(context.zone, *Query(context, ("since", "until")).range())

        async def pages() -> AsyncIterator[list[Sequence[Cell]]]:
            yield [_day_row(day, zone_name(context.zone)) for day in days]

        return csv_response(context, "days.csv", DAYS, pages())


def _day_row(day: Day, zone: str) -> Sequence[Cell]:
    orders, money, topups = day.orders, day.money, day.topups
    return (
        day.day.isoformat(), zone, orders.orders, orders.delivered, orders.failed, orders.cancelled, orders.refunded,
        credits_cell(orders.revenue), money.revenue, money.cost, day.loss, money.margin, topups.topups,
        topups.paid_amount, credits_cell(topups.credits), topups.repeated, topups.refunds, topups.refunded_amount,
    )  # fmt: skip


def _ledger_row(entry: LedgerEntry) -> Sequence[Cell]:
    change = credits_cell(change_of(entry))
    return (
        entry.at, entry.key, entry.account_id, entry.job_id, entry.kind.value, entry.debit.value, entry.credit.value,
        credits_cell(entry.amount), change, entry.reason,
    )  # fmt: skip


def _payment_row(payment: Payment) -> Sequence[Cell]:
    return (
        payment.at, payment.charge, payment.account_id, payment.paid_amount, credits_cell(payment.amount),
        payment.state.value, payment.external_refund_at, credits_cell(payment.owed),
    )  # fmt: skip
