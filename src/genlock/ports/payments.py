"""Payments and their refunds."""

from typing import Protocol

from genlock.domain.payment import Payment, PaymentState


class PaymentStore(Protocol):
    async def add_payment(self, charge: str, account_id: int, stars: int, amount: int) -> bool:
        """Record a payment whose credit is in the ledger already. Returns False if it was known."""

    async def payment(self, charge: str) -> Payment | None: ...

    async def payments(self, account_id: int, limit: int) -> list[Payment]:
        """The account's payments, newest first."""

    async def change_payment_state(
        self,
        charge: str,
        before: PaymentState,
        state: PaymentState,
        refunds: int | None = None,
        *,
        untaken: bool = False,
    ) -> int | None:
        """Change the state of a payment from `before`; with `refunds`, only if that is still the current refund.

        Returns the number of refunds begun so far, or None if the state or the number is different. `untaken` lowers
        the number by one, for a refund that has debited nothing, so that its ledger key is used again.
        """
