"""What pages for operators use to act on accounts and payments, beside the store."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from genlock.engine.accounts import AccountActions
from genlock.engine.full_check import FullMoneyCheck
from genlock.engine.reconciliation import ReconciliationRecord
from genlock.engine.refunds import Refunds
from genlock.ports.payment_service import PaymentService


@dataclass(frozen=True, kw_only=True)
class OperatorTools:
    accounts: AccountActions
    refunds: Refunds
    reconciliation: ReconciliationRecord
    #: compares with the channel's list of transactions; returns how many were booked; raises ChannelErrors
    reconcile: Callable[[], Awaitable[int]]
    payments: PaymentService
    full_check: FullMoneyCheck
