"""Parts of hours, counted from the rows: a day may begin within an hour of UTC."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from genlock.domain.account_set import AccountSet, load_piece
from genlock.domain.figures import ModelFigures, TopupFigures, hour_number
from genlock.domain.place import microseconds
from genlock.ports import PartAccounts, PartDetails, PartOrders, TimeSpan
from genlock.stores.hourly_figures import HourlyFigures, read_model_figures, read_topup_figures

#: how far the order of ids and the order of times may differ
TIME_SLACK = timedelta(minutes=1)
_Items = list[dict[str, Any]]


class HourParts(HourlyFigures):
    async def part_orders(self, parts: Sequence[TimeSpan]) -> list[PartOrders]:
        items = await self._with_ids(parts)
        providers = await self._figures(items, by_model=False)
        topups = {
            row["number"]: read_topup_figures(row) for row in await self.session.many("part_topups", {}, _times(parts))
        }
        return [
            PartOrders(providers=tuple(providers[number]), topups=topups.get(number, TopupFigures()))
            for number in range(len(parts))
        ]

    async def part_accounts(self, parts: Sequence[TimeSpan]) -> list[PartAccounts]:
        started, first = await self._started(parts), await self._members("part_first_orders", "first_order", parts)
        counted = Counter(number for number, _ in started), Counter(number for number, _ in first)
        return [
            PartAccounts(started=counted[0][number], first_orders=counted[1][number]) for number in range(len(parts))
        ]

    async def part_details(self, parts: Sequence[TimeSpan]) -> list[PartDetails]:
        items = await self._with_ids(parts)
        models = await self._figures(items, by_model=True)
        started, active = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for number, account_id in await self._started(parts):
            started[number].append(account_id)
        for row in await self.session.many("part_orders", {}, items):
            active[row["number"]].append(row["account_id"])
        return [
            PartDetails(
                models=tuple(models[number]),
                started=AccountSet.of(started[number]),
                active=AccountSet.of(active[number]),
            )
            for number in range(len(parts))
        ]

    async def _with_ids(self, parts: Sequence[TimeSpan]) -> _Items:
        """Return the parts with the ranges of ids that contain their jobs."""
        spans = [(microseconds(since - TIME_SLACK), microseconds(until + TIME_SLACK)) for since, until in parts]
        times = sorted({at for span in spans for at in span})
        found = await self.session.one("first_jobs_since", times_us=self.session.array(times))
        ids = {row["at_us"]: row["id"] for row in found}
        ranges = [(ids[since], ids[until]) for since, until in spans]
        return [{**item, "low": low, "high": high} for item, (low, high) in zip(_times(parts), ranges, strict=True)]

    async def _figures(self, items: _Items, *, by_model: bool) -> dict[int, list[ModelFigures]]:
        found: dict[int, list[ModelFigures]] = defaultdict(list)
        for row in await self.session.many("part_jobs", {"by_model": by_model}, items):
            found[row["number"]].append(read_model_figures(row))
        return found

    async def _started(self, parts: Sequence[TimeSpan]) -> list[tuple[int, int]]:
        return await self._members("part_accounts", "started", parts)

    async def _members(self, statement: str, kind: str, parts: Sequence[TimeSpan]) -> list[tuple[int, int]]:
        """Return the accounts of each part, as pairs of its number and an id, from the sets of the hours."""
        sets = await self._sets(kind, {hour_number(since) for since, _ in parts})
        items = [
            {**item, "account_id": account_id}
            for item, (since, _) in zip(_times(parts), parts, strict=True)
            for account_id in sets[hour_number(since)]
        ]
        rows = await self.session.many(statement, {}, items) if items else ()
        return [(row["number"], row["id"]) for row in rows]

    async def _sets(self, kind: str, hours: Iterable[int]) -> dict[int, list[int]]:
        """Return the accounts of a kind of set in each hour."""
        found: dict[int, list[int]] = defaultdict(list)
        rows = await self.session.one("sets_of_hours", kind=kind, hours=self.session.array(sorted(hours)))
        for row in rows:
            found[row["hour"]] += AccountSet({row["piece"]: load_piece(row["members"])}).ids()
        return found


def _times(parts: Sequence[TimeSpan]) -> _Items:
    return [
        {"number": number, "since_us": microseconds(since), "until_us": microseconds(until)}
        for number, (since, until) in enumerate(parts)
    ]
