"""Payments and the states of their refunds."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class PaymentState(StrEnum):
    PAID = "paid"  #: credited → refunding by an operator; → refunded when the payment service refunds it without us
    REFUNDING = "refunding"  #: the credits are taken back, the refund call may have been made → refunded; → paid if the
    #: channel refuses the refund
    REFUNDED = "refunded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Payment:
    charge: str
    account_id: int
    #: what the user paid, in the smallest unit of the currency
    paid_amount: int
    #: what was credited, in thousandths of a credit
    amount: int
    state: PaymentState
    #: refund attempts begun so far; each has its own ledger key
    refunds: int
    at: datetime
    #: the part of `amount` that had been spent when the payment service refunded the payment without us
    owed: int = 0
    #: when such a refund was booked
    external_refund_at: datetime | None = None
