"""What pages for operators use to act on accounts and payments, beside the store."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from genlock.engine.accounts import AccountActions
from genlock.engine.full_check import FullMoneyCheck
from genlock.engine.reconciliation import ReconciliationRecord
from genlock.engine.refunds import Refunds


@dataclass(frozen=True, kw_only=True)
class OperatorTools:
    accounts: AccountActions
    refunds: Refunds
    reconciliation: ReconciliationRecord
    #: compares with the channel's list of transactions; returns how many were booked; raises ChannelErrors
    reconcile: Callable[[], Awaitable[int]]
    #: asks the channel how many stars the bot has; raises ChannelErrors
    star_balance: Callable[[], Awaitable[int]]
    full_check: FullMoneyCheck
