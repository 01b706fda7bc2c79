"""Money: whole numbers of thousandths of a credit, moved between three accounts, never made or lost."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

THOUSANDTHS = 1000


class LedgerAccount(StrEnum):
    AVAILABLE = "available"  #: a person may spend it
    HELD = "held"  #: a person's, set aside for a job that has not ended
    HOUSE = "house"  #: the operator's side of every payment; its balance is minus the sum of all others


class EntryKind(StrEnum):
    """Why money moved. The first three are a job's; a person's balance changes by the others."""

    HOLD = "hold"
    CAPTURE = "capture"
    RELEASE = "release"
    TOPUP = "topup"
    GRANT = "grant"
    REFUND = "refund"
    DEBIT = "debit"


#: From which account to which each kind moves.
ROUTE: dict[EntryKind, tuple[LedgerAccount, LedgerAccount]] = {
    EntryKind.HOLD: (LedgerAccount.AVAILABLE, LedgerAccount.HELD),
    EntryKind.CAPTURE: (LedgerAccount.HELD, LedgerAccount.HOUSE),
    EntryKind.RELEASE: (LedgerAccount.HELD, LedgerAccount.AVAILABLE),
    EntryKind.TOPUP: (LedgerAccount.HOUSE, LedgerAccount.AVAILABLE),
    EntryKind.GRANT: (LedgerAccount.HOUSE, LedgerAccount.AVAILABLE),
    EntryKind.REFUND: (LedgerAccount.HOUSE, LedgerAccount.AVAILABLE),
    EntryKind.DEBIT: (LedgerAccount.AVAILABLE, LedgerAccount.HOUSE),
}


class HoldState(StrEnum):
    """Where a job's money is. HELD is left by the commit that ends the job's delivery or the job."""

    FREE = "free"  #: costs nothing; stays so
    HELD = "held"  #: → captured by the delivered commit, → released by any other end
    CAPTURED = "captured"  #: paid for a delivered result; stays so
    RELEASED = "released"  #: → held again when a person wants to see a result that could not be delivered to them


@dataclass(frozen=True, kw_only=True, slots=True)
class Wallet:
    account_id: int
    available: int
    held: int


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
