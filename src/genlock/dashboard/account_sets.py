"""Sets of accounts over long periods. Whole days and 30 days are cached, so that a page decodes only what is new."""

from collections.abc import Iterator, Mapping, Sequence

from genlock.domain.account_set import AccountSet
from genlock.ports import UNITED_DAYS, HourlyFigureStore, united_kind

HOURS_PER_DAY = 24
#: sets in the cache; each takes up to 4 kB per 32,768 accounts
KEPT_MAX = 200
#: a kind of set, the first day and the number of days
_Block = tuple[str, int, int]


class AccountSets:
    def __init__(self, store: HourlyFigureStore) -> None:
        self._store = store
        #: with the sizes of its days when it was read: sets only grow, so equal sizes mean an unchanged set
        self._kept: dict[_Block, tuple[Sequence[int], AccountSet]] = {}

    async def read(self, kind: str, since: int, until: int) -> AccountSet:
        """Return the accounts of a kind of set from one hour until another."""
        first_day, last_day = -(-since // HOURS_PER_DAY), until // HOURS_PER_DAY
        if last_day <= first_day:
            return await self._store.account_set(kind, since, until)
        found = AccountSet()
        for begin, end in ((since, first_day * HOURS_PER_DAY), (last_day * HOURS_PER_DAY, until)):
            if begin < end:
                found |= await self._store.account_set(kind, begin, end)
        sizes = await self._store.account_set_days(kind, first_day, last_day)
        blocks = list(_blocks(first_day, last_day))
        await self._read_new(kind, blocks, sizes)
        for block in blocks:
            known = self._kept.pop((kind, *block))
            self._kept[kind, *block] = known  # at the end: the least recently used is removed first
            found |= known[1]
        while len(self._kept) > max(KEPT_MAX, len(blocks)):
            self._kept.pop(next(iter(self._kept)))
        return found

    async def _read_new(self, kind: str, blocks: Sequence[tuple[int, int]], sizes: Mapping[int, int]) -> None:
        """Read the days of all blocks that are not in the cache, or that have grown."""
        new = {}
        for day, days in blocks:
            found = [sizes.get(day + number, 0) for number in range(days)]
            known = self._kept.get((kind, day, days))
            if known is None or known[0] != found:
                new[day, days] = found
        if not new:
            return
        united = await self._united(kind, [day for day, days in new if days == UNITED_DAYS])
        wanted = [day + number for day, days in new if day not in united for number in range(days)]
        sets = await self._store.account_sets_of_days(kind, wanted)
        for (day, days), found in new.items():
            single = (sets[day + number] for number in range(days) if day + number in sets)
            self._kept[kind, day, days] = found, united[day] if day in united else AccountSet.union(single)

    async def _united(self, kind: str, days: Sequence[int]) -> dict[int, AccountSet]:
        """Return those of the sets of 30 days that the leader has stored, by their first day."""
        return await self._store.account_sets_of_days(united_kind(kind), days) if days else {}


def _blocks(first_day: int, last_day: int) -> Iterator[tuple[int, int]]:
    """Divide days into 30 days that begin at a multiple of 30, and single days before and after them."""
    day = first_day
    while day < last_day:
        days = UNITED_DAYS if day % UNITED_DAYS == 0 and day + UNITED_DAYS <= last_day else 1
        yield day, days
        day += days
