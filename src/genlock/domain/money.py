"""Money: integers in thousandths of a credit, moved between three ledger accounts (double entry)."""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

THOUSANDTHS = 1000
_DECIMAL = re.compile(r"[0-9]{1,10}(?:[.,][0-9]{1,6})?")
_GROUPED = re.compile(r"[1-9][0-9]*,[0-9]{3}")
AMOUNT_MAX = 10**9 * THOUSANDTHS
"""Less than this can be moved at once, in thousandths of a credit."""


def read_decimal(text: str) -> Decimal | None:
    """Return a number as users and operators write it, `12.5` or `12,5`; None if it is not one.

    `1,000` is none: it is a thousand in English and one in Russian.
    """
    if _DECIMAL.fullmatch(text) is None or _GROUPED.fullmatch(text):
        return None
    return Decimal(text.replace(",", "."))


def read_amount(text: str) -> int:
    """Credits as an operator writes them, in thousandths; 0 if it is not an amount."""
    thousandths = (read_decimal(text) or Decimal(0)) * THOUSANDTHS
    return int(thousandths) if thousandths == int(thousandths) and thousandths < AMOUNT_MAX else 0


def write_amount(thousandths: int) -> str:
    """Return credits as an operator writes them, such as `12.5`."""
    return f"{Decimal(thousandths) / THOUSANDTHS:f}"


class LedgerAccount(StrEnum):
    AVAILABLE = "available"  #: the user may spend it
    HELD = "held"  #: the user's, reserved for a job that has not ended
    HOUSE = "house"  #: the operator's side of every payment; its balance is minus the sum of all others


class EntryKind(StrEnum):
    """Why money moved. The first three belong to a job; the others change a user's balance.

    A repayment takes credits for a debt: the user had spent them before the payment was refunded without us.
    """

    HOLD = "hold"
    CAPTURE = "capture"
    RELEASE = "release"
    TOPUP = "topup"
    GRANT = "grant"
    REFUND = "refund"
    DEBIT = "debit"
    REPAY = "repay"


#: the kinds of entries that belong to an order
ORDER_KINDS = frozenset({EntryKind.HOLD, EntryKind.CAPTURE, EntryKind.RELEASE})
#: From which ledger account to which each kind moves money.
ROUTE: dict[EntryKind, tuple[LedgerAccount, LedgerAccount]] = {
    EntryKind.HOLD: (LedgerAccount.AVAILABLE, LedgerAccount.HELD),
    EntryKind.CAPTURE: (LedgerAccount.HELD, LedgerAccount.HOUSE),
    EntryKind.RELEASE: (LedgerAccount.HELD, LedgerAccount.AVAILABLE),
    EntryKind.TOPUP: (LedgerAccount.HOUSE, LedgerAccount.AVAILABLE),
    EntryKind.GRANT: (LedgerAccount.HOUSE, LedgerAccount.AVAILABLE),
    EntryKind.REFUND: (LedgerAccount.HOUSE, LedgerAccount.AVAILABLE),
    EntryKind.DEBIT: (LedgerAccount.AVAILABLE, LedgerAccount.HOUSE),
    EntryKind.REPAY: (LedgerAccount.AVAILABLE, LedgerAccount.HOUSE),
}
#: Credits that were paid for repay a debt when they arrive; gifts do not. Released holds repay, too, in their commit.
REPAYING = frozenset({EntryKind.TOPUP, EntryKind.REFUND})


class HoldState(StrEnum):
    """The state of a job's hold. The commit that ends the job or its delivery captures or releases it."""

    FREE = "free"  #: costs nothing; stays so
    HELD = "held"  #: → captured by the delivered commit, → released by any other end
    CAPTURED = "captured"  #: paid for a delivered result; stays so
    RELEASED = "released"  #: → held again when the user asks for a result that could not be delivered


@dataclass(frozen=True, kw_only=True, slots=True)
class Wallet:
    account_id: int
    available: int
    held: int
    #: what the user owes after refunds of spent credits that the payment service made without us
    debt: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """One line of the ledger: `amount` left `debit` and reached `credit`. The key makes it happen once."""

    key: str
    account_id: int
    job_id: int | None
    kind: EntryKind
    debit: LedgerAccount
    credit: LedgerAccount
    amount: int
    reason: str
    at: datetime
