"""Money: figures by day, ledger, payments and refunds, the comparison with Telegram, and whether it adds up."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, time
from enum import StrEnum
from functools import partial

from starlette.responses import Response

from genlock.dashboard.formats import zone_name
from genlock.dashboard.ledger_reader import LedgerFilter, LedgerKind, LedgerReader
from genlock.dashboard.ledger_view import ledger_lines
from genlock.dashboard.money_days import MoneyDays, lines_of
from genlock.dashboard.page import PageContext, PageRoute
from genlock.dashboard.query import Query
from genlock.dashboard.roles import Permission
from genlock.domain.errors import ChannelError, Refusal
from genlock.domain.figures import JobFigures, TopupFigures
from genlock.domain.margin import Money
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.place import Place
from genlock.engine import money_check
from genlock.engine.full_check import RunState
from genlock.engine.operator_tools import OperatorTools
from genlock.ports import Database

PAGE = 50
#: Telegram is asked for the balance at most this often
BALANCE_SECONDS = 60.0
BALANCE_WAIT_SECONDS = 3.0
#: a comparison that is younger than this is not repeated
RECONCILE_SECONDS = 10.0
RECONCILE_WAIT_SECONDS = 25.0
#: the leader's check reports every 10 seconds
CHECK_OLD_SECONDS = 120.0


class PaymentFilter(StrEnum):
    ALL = "all"
    REFUNDING = "refunding"
    REFUNDED = "refunded"
    OUTSIDE = "outside"  #: refunded by Telegram, without us


class MoneyPage:
    def __init__(self, store: Database, tools: OperatorTools, days: MoneyDays) -> None:
        self._store = store
        self._tools = tools
        self._days = days
        self._ledger_reader = LedgerReader(store)
        self._balance = _CachedBalance(tools.payments.balance)
        self._reconciling = asyncio.Lock()

    def routes(self) -> list[PageRoute]:
        view = partial(PageRoute, permission=Permission.VIEW)
        post = partial(PageRoute, permission=Permission.MANAGE_MONEY, method="POST")
        return [
            view(path="/money", handler=self._summary),
            view(path="/money/ledger", handler=self._ledger),
            view(path="/money/payments", handler=self._payments),
            view(path="/money/reconciliation", handler=self._reconciliation),
            view(path="/money/check", handler=self._check),
            post(path="/money/reconciliation", handler=self._reconcile),
            post(path="/money/refunds", handler=self._resume_refunds),
            post(path="/money/check", handler=self._start_check),
        ]

    # the first page

    async def _summary(self, context: PageContext) -> Response:
        query = Query(context, ("since", "until"))
        days = await self._days.read(context.zone, *query.range())
        return context.render(
            "money.html",
            tab="",
            lines=lines_of(days),
            orders=sum((day.orders for day in days), JobFigures()),
            topups=sum((day.topups for day in days), TopupFigures()),
            money=sum((day.money for day in days), Money()),
            zone=zone_name(context.zone),
            date=lambda day: context.day(datetime.combine(day, time(), context.zone)),
            since=query.text("since"),
            until=query.text("until"),
            balance=await self._balance.read(),
            open_refunds=len(await self._tools.refunds.open_refunds()),
            reconciliation=await self._tools.reconciliation.read(),
            check=await money_check.read_state(self._store),
            check_old_seconds=CHECK_OLD_SECONDS,
            problems=query.problems,
        )

    # lists

    async def _ledger(self, context: PageContext) -> Response:
        query = Query(context, ("kind", "user", "since", "until", "before"))
        which, before = self.ledger_filter(query), query.text("before")
        try:
            page = await self._ledger_reader.page(which, before, PAGE)
        except Refusal:
            query.problems.append(context.t.plain("dashboard.query.wrong", name="before", value=before[:60]))
            page, before = await self._ledger_reader.page(which, "", PAGE), ""
        return context.render(
            "money_ledger.html",
            tab="ledger",
            lines=list(ledger_lines(page.entries)),
            kinds=[*LedgerKind],
            which=which,
            since=query.text("since"),
            until=query.text("until"),
            older=page.older,
            at_start=not before,
            problems=query.problems,
        )

    def ledger_filter(self, query: Query) -> LedgerFilter:
        since, until = query.range()
        account_id = query.number("user")
        kind = query.choice("kind", LedgerKind, LedgerKind.MOVES) if query.text("kind") or not account_id else None
        return LedgerFilter(kind=kind, account_id=account_id, since=since, until=until)

    async def _payments(self, context: PageContext) -> Response:
        query = Query(context, ("state", "since", "until", "before"))
        which = query.choice("state", PaymentFilter, PaymentFilter.ALL)
        since, until = query.range()
        before = query.place("before", until)
        payments = await self.payments(which, before=before, since=since, limit=PAGE)
        return context.render(
            "money_payments.html",
            tab="payments",
            payments=payments,
            states=[*PaymentFilter],
            which=which,
            since=query.text("since"),
            until=query.text("until"),
            older=payment_place(payments[-1], which) if len(payments) == PAGE else None,
            at_start=not query.text("before"),
            open_refunds=await self._tools.refunds.open_refunds() if not query.text("before") else [],
            problems=query.problems,
        )

    async def payments(
        self, which: PaymentFilter, *, before: Place, since: datetime | None, limit: int
    ) -> Sequence[Payment]:
        match which:
            case PaymentFilter.ALL:
                return await self._store.payments_before(before=before, since=since, limit=limit)
            case PaymentFilter.OUTSIDE:
                return await self._store.external_refunds(before=before, since=since, limit=limit)
            case _:
                state = PaymentState(which.value)
                return await self._store.payments_in_state(state, before=before, since=since, limit=limit)

    # the comparison with Telegram, and open refunds

    async def _reconciliation(self, context: PageContext) -> Response:
        query = Query(context, ())
        return context.render(
            "money_reconciliation.html",
            tab="reconciliation",
            last=await self._tools.reconciliation.read(),
            now=await self._store.read_clock(),
            balance=await self._balance.read(),
            problems=query.problems,
        )

    async def _reconcile(self, context: PageContext) -> Response:
        """Compare now. It may run beside the leader's own comparison: each transaction is booked once."""
        last = await self._tools.reconciliation.read()
        if self._reconciling.locked() or (last is not None and last.age_seconds < RECONCILE_SECONDS):
            return context.redirect("/money/reconciliation", "dashboard.money.done.reconciled_before")
        await context.audit("reconciliation", "telegram")
        async with self._reconciling:
            try:
                async with asyncio.timeout(RECONCILE_WAIT_SECONDS):
                    booked = await self._tools.reconcile()
            except (ChannelError, TimeoutError) as error:
                reason = str(error) or "timeout"
                return context.redirect(
                    "/money/reconciliation", "dashboard.money.done.not_reconciled", tone="bad", reason=reason[:200]
                )
        return context.redirect("/money/reconciliation", "dashboard.money.done.reconciled", n=booked)

    async def _resume_refunds(self, context: PageContext) -> Response:
        await context.audit("open refunds asked again", "telegram")
        try:
            async with asyncio.timeout(RECONCILE_WAIT_SECONDS):
                await self._tools.refunds.resume(0.0)
        except TimeoutError:
            return context.redirect("/money/payments", "dashboard.money.done.refunds_timeout", tone="bad")
        left = len(await self._tools.refunds.open_refunds())
        return context.redirect("/money/payments", "dashboard.money.done.refunds_resumed", n=left)

    # does it add up

    async def _check(self, context: PageContext) -> Response:
        return context.render(
            "money_check.html",
            tab="check",
            state=await money_check.read_state(self._store),
            run=await self._tools.full_check.latest(),
            now=await self._store.read_clock(),
            running=RunState.RUNNING,
            old_seconds=CHECK_OLD_SECONDS,
            problems=Query(context, ()).problems,
        )

    async def _start_check(self, context: PageContext) -> Response:
        await context.audit("ledger check", "all")
        started = await self._tools.full_check.start(context.operator.name or context.operator.id)
        text = "check_started" if started else "check_running"
        return context.redirect("/money/check", f"dashboard.money.done.{text}")


def payment_place(payment: Payment, which: PaymentFilter) -> Place:
    """Return where the next page of a list of payments begins after this one."""
    at = payment.external_refund_at if which is PaymentFilter.OUTSIDE else payment.at
    return Place.of(at or payment.at, payment.charge)


class _CachedBalance:
    """The bot's stars, asked for at most once a minute; None while Telegram does not answer."""

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._known: int | None = None
        self._until = 0.0

    async def read(self) -> int | None:
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            self._until = now + BALANCE_SECONDS
            try:
                async with asyncio.timeout(BALANCE_WAIT_SECONDS):
                    self._known = await self._ask()
            except (ChannelError, TimeoutError):
                self._known = None
        return self._known
