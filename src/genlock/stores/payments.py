"""Payments and their refunds."""

from genlock.domain.payment import Payment
from genlock.stores.rows import Row, read_payment
from genlock.stores.session import Subject


class Payments(Subject):
    async def add_payment(self, charge: str, account_id: int, paid_amount: int, amount: int) -> bool:
        rows = await self.session.one(
            "add_payment", charge=charge, account_id=account_id, paid_amount=paid_amount, amount=amount
        )
        return bool(rows)

    async def payment(self, charge: str) -> Payment | None:
        return self._first(await self.session.one("payment", charge=charge))

    async def payments(self, account_id: int, limit: int) -> list[Payment]:
        rows = await self.session.one("payments", account_id=account_id, limit=limit)
        return [read_payment(row, self.session.time) for row in rows]

    async def begin_refund(self, charge: str, reason: str) -> Payment | None:
        return self._first(await self.session.one("begin_refund", charge=charge, reason=reason))

    async def undo_refund(self, charge: str, refunds: int, reason: str) -> bool:
        return bool(await self.session.one("undo_refund", charge=charge, refunds=refunds, reason=reason))

    async def finish_refund(self, charge: str) -> bool:
        return bool(await self.session.one("finish_refund", charge=charge))

    async def book_external_refund(self, charge: str, reason: str) -> Payment | None:
        return self._first(await self.session.one("book_external_refund", charge=charge, reason=reason))

    def _first(self, rows: list[Row]) -> Payment | None:
        return read_payment(rows[0], self.session.time) if rows else None
