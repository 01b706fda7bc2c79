"""Payments and their refunds."""

from typing import Protocol

from genlock.domain.payment import Payment


class PaymentStore(Protocol):
    async def add_payment(self, charge: str, account_id: int, paid_amount: int, amount: int) -> bool:
        """Record a payment whose credit is in the ledger already. Returns False if it was known.

        `paid_amount` and `amount` are as in `Payment`.
        """

    async def payment(self, charge: str) -> Payment | None: ...

    async def payments(self, account_id: int, limit: int) -> list[Payment]:
        """Return the account's payments, newest first."""

    async def begin_refund(self, charge: str, reason: str) -> Payment | None:
        """Debit the credits of a payment and make it `refunding`, in one commit.

        Returns None if it is not in the state `paid`, or if the account does not have the credits.
        """

    async def undo_refund(self, charge: str, refunds: int, reason: str) -> bool:
        """Return the credits of the refund attempt with this number and make the payment `paid`, in one commit.

        Returns False if that attempt is over: another began, or the payment was refunded.
        """

    async def finish_refund(self, charge: str) -> bool:
        """Make a payment that is `refunding` `refunded`. Returns False if it is in another state.

        In the same commit, the mark of the open refund becomes that of a refund whose user is to be told.
        """

    async def book_external_refund(self, charge: str, reason: str) -> Payment | None:
        """Make a payment `refunded` that the channel refunded, once.

        Unless our own refund has debited the credits, what is there is debited and the rest becomes a debt, in the same
        commit; `external_refund_at` is set then. A mark says that the user is to be told, as after `finish_refund`.
        Returns None if the payment is unknown or was refunded before.
        """
