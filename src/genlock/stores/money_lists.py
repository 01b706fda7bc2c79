"""Lists of ledger entries and payments for operators."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from genlock.domain.money import ORDER_KINDS, EntryKind, HoldState, LedgerEntry
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.place import Place, microseconds
from genlock.ports.money_lists import AccountLedgerPage, OrderLedgerPage
from genlock.stores import scan
from genlock.stores.rows import Row, not_null, read_ledger_entry, read_payment
from genlock.stores.session import Subject

#: steps of `scan.STEP` jobs that one page of order entries looks at
ORDER_STEPS_MAX = 2
#: the hold states of jobs that have an entry of a kind
_HOLD_STATES = {
    EntryKind.HOLD: (HoldState.HELD, HoldState.CAPTURED, HoldState.RELEASED),
    EntryKind.CAPTURE: (HoldState.CAPTURED,),
    EntryKind.RELEASE: (HoldState.RELEASED,),
}


class MoneyTables(Subject):
    async def account_ledger(self, account_id: int, *, before: Place, limit: int) -> AccountLedgerPage:
        rows = await self.session.one(
            "account_ledger", account_id=account_id, at=before.microseconds, key=before.key, limit=limit
        )
        entries = [read_ledger_entry(row, self.session.time) for row in rows]
        return AccountLedgerPage(entries=entries, available=rows[0]["available_now"] if rows else None)

    async def ledger_moves(
        self, kinds: Sequence[EntryKind], *, before: Place, since: datetime | None, limit: int
    ) -> list[LedgerEntry]:
        assert not ORDER_KINDS.intersection(kinds), "entries of orders are listed by order_ledger"
        found: list[LedgerEntry] = []
        for kind in kinds:  # the index is by kind and time: one look into it for each kind
            rows = await self.session.one("ledger_moves", kind=kind.value, **_page(before, since, limit))
            found += [read_ledger_entry(row, self.session.time) for row in rows]
        return sorted(found, key=lambda entry: (entry.at, entry.key), reverse=True)[:limit]

    async def order_ledger(
        self, kinds: Sequence[EntryKind], *, before: int | None, since: datetime | None, limit: int
    ) -> OrderLedgerPage:
        [ids] = await self.session.one("job_id_range")
        lowest = ids["first"] or 0 if since is None else await self.job_id_at(since)
        newest = (ids["last"] or 0) + 1
        upper = newest if before is None else min(before, newest)
        found: list[LedgerEntry] = []
        orders = 0
        for _ in range(ORDER_STEPS_MAX):
            floor = max(upper - scan.STEP, lowest)
            rows = await self._order_entries(kinds, floor=floor, before=upper, limit=limit - orders)
            found += [read_ledger_entry(row, self.session.time) for row in rows if row["key"] is not None]
            orders += len({row["order_id"] for row in rows})
            upper = rows[-1]["order_id"] if orders == limit else floor
            if orders == limit or upper <= lowest:
                break
        return OrderLedgerPage(entries=found, before=upper if upper > lowest else None)

    async def _order_entries(self, kinds: Sequence[EntryKind], *, floor: int, before: int, limit: int) -> list[Row]:
        return await self.session.one(
            "order_ledger_between",
            floor=floor,
            before=before,
            hold_states=self.session.array(sorted({state.value for kind in kinds for state in _HOLD_STATES[kind]})),
            kinds=self.session.array([kind.value for kind in kinds]),
            limit=limit,
        )

    async def job_id_at(self, at: datetime) -> int:
        [ids] = await self.session.one("job_id_range")
        low, high = ids["first"] or 1, (ids["last"] or 0) + 1
        while low < high:  # ids follow the order of time
            [job] = await self.session.one("job_created_from", id=(low + high) // 2)
            if not_null(self.session.time(job["created_at"])) < at:
                low = job["id"] + 1
            else:
                high = (low + high) // 2
        return int(low)

    async def payments_before(self, *, before: Place, since: datetime | None, limit: int) -> list[Payment]:
        return await self._payments("payments_before", **_page(before, since, limit))

    async def payments_in_state(
        self, state: PaymentState, *, before: Place, since: datetime | None, limit: int
    ) -> list[Payment]:
        assert state is not PaymentState.PAID, "nearly all payments are: list them all"
        return await self._payments("payments_in_state", state=state.value, **_page(before, since, limit))

    async def external_refunds(self, *, before: Place, since: datetime | None, limit: int) -> list[Payment]:
        return await self._payments("external_refunds", **_page(before, since, limit))

    async def account_payments(self, account_id: int, *, before: Place, limit: int) -> list[Payment]:
        return await self._payments(
            "account_payments", account_id=account_id, at=before.microseconds, key=before.key, limit=limit
        )

    async def _payments(self, name: str, **params: Any) -> list[Payment]:
        return [read_payment(row, self.session.time) for row in await self.session.one(name, **params)]


def _page(before: Place, since: datetime | None, limit: int) -> dict[str, Any]:
    return {
        "at": before.microseconds,
        "key": before.key,
        "since": 0 if since is None else microseconds(since),
        "limit": limit,
    }
