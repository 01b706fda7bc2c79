"""Lists of ledger entries and payments for operators, newest first. A long history does not make them slower."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from genlock.domain.money import EntryKind, LedgerEntry
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.place import Place
from genlock.domain.value import value


@value
class AccountLedgerPage:
    entries: Sequence[LedgerEntry]
    #: what the account had available when the entries were read; None if there are none
    available: int | None


@value
class OrderLedgerPage:
    entries: Sequence[LedgerEntry]
    #: the job before which the next page begins; None after the oldest job
    before: int | None


class MoneyLists(Protocol):
    async def account_ledger(self, account_id: int, *, before: Place, limit: int) -> AccountLedgerPage:
        """Return the ledger entries of an account before a place."""

    async def ledger_moves(
        self, kinds: Sequence[EntryKind], *, before: Place, since: datetime | None, limit: int
    ) -> list[LedgerEntry]:
        """Return the ledger entries of these kinds, which must not be those of orders (ORDER_KINDS)."""

    async def order_ledger(
        self, kinds: Sequence[EntryKind], *, before: int | None, since: datetime | None, limit: int
    ) -> OrderLedgerPage:
        """Return the holds, captures and releases of up to `limit` jobs before an id that were ordered since a time.

        A bounded number of jobs is looked at, so that a page may be empty and still have a next one. Of an order that
        was charged again for showing a lost result, only the latest hold and its end are here.
        """

    async def job_id_at(self, at: datetime) -> int:
        """Return the id of the first job ordered at this time or later; one above all ids if there is none."""

    async def payments_before(self, *, before: Place, since: datetime | None, limit: int) -> list[Payment]:
        """Return payments in any state."""

    async def payments_in_state(
        self, state: PaymentState, *, before: Place, since: datetime | None, limit: int
    ) -> list[Payment]:
        """Return the payments that are `refunding` or `refunded`."""

    async def external_refunds(self, *, before: Place, since: datetime | None, limit: int) -> list[Payment]:
        """Return the payments that the payment service refunded without us, by the time when that was booked."""

    async def account_payments(self, account_id: int, *, before: Place, limit: int) -> list[Payment]:
        """Return the payments of an account before a place."""
