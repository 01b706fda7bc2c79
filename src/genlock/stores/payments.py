"""Payments and their refunds."""

from genlock.domain.payment import Payment, PaymentState
from genlock.stores.rows import read_payment
from genlock.stores.session import Subject


class Payments(Subject):
    async def keep_payment(self, charge: str, account_id: int, stars: int, amount: int) -> bool:
        rows = await self.session.one("keep_payment", charge=charge, account_id=account_id, stars=stars, amount=amount)
        return bool(rows)

    async def payment(self, charge: str) -> Payment | None:
        rows = await self.session.one("payment", charge=charge)
        return read_payment(rows[0], self.session.time) if rows else None

    async def payments(self, account_id: int, limit: int) -> list[Payment]:
        rows = await self.session.one("payments", account_id=account_id, limit=limit)
        return [read_payment(row, self.session.time) for row in rows]

    async def move_payment(
        self,
        charge: str,
        before: PaymentState,
        state: PaymentState,
        refunds: int | None = None,
        *,
        untaken: bool = False,
    ) -> int | None:
        rows = await self.session.one(
            "move_payment", charge=charge, before=before.value, state=state.value, refunds=refunds, untaken=untaken
        )
        return int(rows[0]["refunds"]) if rows else None
