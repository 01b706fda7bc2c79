"""Pages of the ledger by kind, user and time. By an index, so that the length of the history does not matter.

Entries of orders (holds, captures, releases) are listed by the number of the order, the others by their time; the
entries of one user are listed together, by their time.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from enum import StrEnum

from genlock.dashboard.ledger_view import MOVE_KINDS, last_place
from genlock.domain.errors import Refusal
from genlock.domain.money import ORDER_KINDS, EntryKind, LedgerEntry
from genlock.domain.place import NEWEST, Place, microseconds
from genlock.domain.value import value
from genlock.ports import Database

#: entries of one user that a page looks at, in steps, when it wants some kinds only
_STEP, _STEPS_MAX = 200, 5
_ID_DIGITS_MAX = 18


class LedgerKind(StrEnum):
    MOVES = "moves"  #: everything that belongs to no order
    TOPUP = "topup"
    GRANT = "grant"
    REFUND = "refund"
    DEBIT = "debit"
    REPAY = "repay"
    ORDERS = "orders"  #: everything that belongs to an order
    HOLD = "hold"
    CAPTURE = "capture"
    RELEASE = "release"

    @property
    def kinds(self) -> tuple[EntryKind, ...]:
        match self:
            case LedgerKind.MOVES:
                return MOVE_KINDS
            case LedgerKind.ORDERS:
                return tuple(sorted(ORDER_KINDS))
            case _:
                return (EntryKind(self.value),)


@value
class LedgerFilter:
    #: None: every kind, which is possible for one user only
    kind: LedgerKind | None = LedgerKind.MOVES
    account_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def kinds(self) -> tuple[EntryKind, ...]:
        return tuple(EntryKind) if self.kind is None else self.kind.kinds


@value
class LedgerPage:
    entries: Sequence[LedgerEntry]
    #: where the next page begins; "" after the last one
    older: str


class LedgerReader:
    def __init__(self, store: Database) -> None:
        self._store = store

    async def page(self, which: LedgerFilter, before: str, limit: int) -> LedgerPage:
        """Return entries after a place, which an earlier page named. Raises Refusal if it is not such a place."""
        if which.account_id is not None:
            return await self._of_account(which, which.account_id, before, limit)
        if ORDER_KINDS.issuperset(which.kinds):
            return await self._of_orders(which, before, limit)
        kinds = [kind for kind in which.kinds if kind not in ORDER_KINDS]
        place = _place(before, which.until)
        entries = await self._store.ledger_moves(kinds, before=place, since=which.since, limit=limit)
        return LedgerPage(entries=entries, older=_text(last_place(entries, limit)))

    async def pages(self, which: LedgerFilter, limit: int) -> AsyncIterator[Sequence[LedgerEntry]]:
        """Yield every page."""
        before = ""
        while True:
            page = await self.page(which, before, limit)
            yield page.entries
            before = page.older
            if not before:
                return

    async def _of_orders(self, which: LedgerFilter, before: str, limit: int) -> LedgerPage:
        if before and not (before.isascii() and before.isdigit() and len(before) <= _ID_DIGITS_MAX):
            raise Refusal("this is not a place in a list")
        start = int(before) if before else None
        if start is None and which.until is not None:
            start = await self._store.job_id_at(which.until)
        page = await self._store.order_ledger(which.kinds, before=start, since=which.since, limit=limit)
        return LedgerPage(entries=page.entries, older="" if page.before is None else str(page.before))

    async def _of_account(self, which: LedgerFilter, account_id: int, before: str, limit: int) -> LedgerPage:
        """Look at a bounded number of the user's entries: a page may be empty and still have a next one."""
        found: list[LedgerEntry] = []
        place: Place | None = _place(before, which.until)
        for _ in range(_STEPS_MAX):
            assert place is not None
            entries = (await self._store.account_ledger(account_id, before=place, limit=_STEP)).entries
            for entry in entries:
                if which.since is not None and entry.at < which.since:
                    return LedgerPage(entries=found, older="")
                if entry.kind in which.kinds:
                    found.append(entry)
                    if len(found) == limit:
                        return LedgerPage(entries=found, older=str(Place.of(entry.at, entry.key)))
            place = last_place(entries, _STEP)
            if place is None:
                break
        return LedgerPage(entries=found, older=_text(place))


def _place(before: str, until: datetime | None) -> Place:
    if before:
        return Place.parse(before)
    return NEWEST if until is None else Place(microseconds=microseconds(until), key="")


def _text(place: Place | None) -> str:
    return "" if place is None else str(place)
