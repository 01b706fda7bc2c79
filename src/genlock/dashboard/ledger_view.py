"""Ledger entries as pages show them."""

from collections.abc import Iterator, Sequence

from genlock.domain.money import EntryKind, LedgerAccount, LedgerEntry
from genlock.domain.place import Place
from genlock.domain.value import value

#: kinds of entries that belong to no order
MOVE_KINDS = (EntryKind.TOPUP, EntryKind.GRANT, EntryKind.REFUND, EntryKind.DEBIT, EntryKind.REPAY)

#: the ledger keys of the gifts that the bot makes by itself begin with these
GIFTS = ("welcome", "referral", "promo")
PROMO_REASON = "promo code "


@value
class LedgerLine:
    entry: LedgerEntry
    #: what the entry changed of what the user may spend
    change: int
    #: what the user could spend after it; None where it is not known
    balance: int | None = None

    @property
    def job_id(self) -> int | None:
        """The order it belongs to; a refund by an operator names it in its key."""
        beginning, _, rest = self.entry.key.partition(":")
        of_refund = beginning == "refund" and rest.isascii() and rest.isdecimal()
        return int(rest) if of_refund else self.entry.job_id

    @property
    def gift(self) -> str:
        """Which gift of the bot it is, for a text in the viewer's language; empty if it is none."""
        beginning = self.entry.key.partition(":")[0]
        return beginning if beginning in GIFTS and self.entry.kind is EntryKind.GRANT else ""

    @property
    def reason(self) -> str:
        """What an operator or a payment says; empty where the page says it in the viewer's language."""
        if self.gift in ("welcome", "referral") or self.job_id != self.entry.job_id:
            return ""
        return self.entry.reason.removeprefix(PROMO_REASON) if self.gift == "promo" else self.entry.reason


def change_of(entry: LedgerEntry) -> int:
    if entry.credit is LedgerAccount.AVAILABLE:
        return entry.amount
    return -entry.amount if entry.debit is LedgerAccount.AVAILABLE else 0


def ledger_lines(entries: Sequence[LedgerEntry], balance: int | None = None) -> Iterator[LedgerLine]:
    """Yield lines, newest first. `balance` is what the user can spend after the newest one, if that is known."""
    for entry in entries:
        change = change_of(entry)
        yield LedgerLine(entry=entry, change=change, balance=balance)
        balance = None if balance is None else balance - change


def last_place(entries: Sequence[LedgerEntry], limit: int) -> Place | None:
    """Return where the next page begins; None if this one was not full."""
    return Place.of(entries[-1].at, entries[-1].key) if len(entries) == limit else None
