"""Payments and the states of their refunds."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class PaymentState(StrEnum):
    PAID = "paid"  #: credited → refunding by an operator
    REFUNDING = "refunding"  #: the credits are taken back, the refund may be on the wire → refunded, or paid if it is
    #: refused or the credits are not there
    REFUNDED = "refunded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Payment:
    charge: str
    account_id: int
    stars: int
    #: what was credited, in thousandths
    amount: int
    state: PaymentState
    #: refunds begun so far; each has a key of its own in the ledger
    refunds: int
    at: datetime
