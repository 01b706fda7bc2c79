"""Payments and the states of their refunds."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class PaymentState(StrEnum):
    PAID = "paid"  #: credited → refunding by an operator
    REFUNDING = "refunding"  #: the credits are taken back, the refund call may have been made → refunded; → paid if the
    #: channel refuses the refund or the user no longer has the credits
    REFUNDED = "refunded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Payment:
    charge: str
    account_id: int
    stars: int
    #: what was credited, in thousandths of a credit
    amount: int
    state: PaymentState
    #: refund attempts begun so far; each has its own ledger key
    refunds: int
    at: datetime
