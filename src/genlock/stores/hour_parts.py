"""Parts of hours, from quarters of an hour or counted from the rows: a day may begin within an hour of UTC."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from genlock.domain.account_set import AccountSet, load_piece
from genlock.domain.figures import ModelFigures, TopupFigures, hour_number
from genlock.domain.place import microseconds
from genlock.ports import PartOrders, TimeSpan
from genlock.stores.hourly_figures import HourlyFigures, read_model_figures, read_topup_figures

#: how far the order of ids and the order of times may differ
TIME_SLACK = timedelta(minutes=1)
_Items = list[dict[str, Any]]


class HourParts(HourlyFigures):
    async def part_orders(self, parts: Sequence[TimeSpan]) -> list[PartOrders]:
        providers = await self._figures("part_quarters", _times(parts))
        topups = {
            row["number"]: read_topup_figures(row) for row in await self.session.many("part_topups", {}, _times(parts))
        }
        return [
            PartOrders(providers=tuple(providers[number]), topups=topups.get(number, TopupFigures()))
            for number in range(len(parts))
        ]

    async def part_models(self, parts: Sequence[TimeSpan]) -> list[Sequence[ModelFigures]]:
        models = await self._figures("part_jobs", await self._with_ids(parts))
        return [models[number] for number in range(len(parts))]

    async def part_active(self, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        rows = await self.session.many("part_orders", {}, await self._with_ids(parts))
        return _sets(len(parts), ((row["number"], row["account_id"]) for row in rows))

    async def part_started(self, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        return await self._members("part_accounts", "started", parts)

    async def count_started(self, parts: Sequence[TimeSpan]) -> list[int]:
        sets = await self._hour_sets("started", {hour_number(since) for since, _ in parts})
        items = [
            {**item, "low": ids[0], "high": ids[-1]}
            for item, (since, _) in zip(_times(parts), parts, strict=True)
            if (ids := sets[hour_number(since)].bounds())
        ]
        rows = await self.session.many("count_part_accounts", {}, items) if items else ()
        counts = {row["number"]: row["accounts"] for row in rows}
        return [counts.get(number, 0) for number in range(len(parts))]

    async def part_first_orders(self, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        return await self._members("part_first_orders", "first_order", parts)

    async def _with_ids(self, parts: Sequence[TimeSpan]) -> _Items:
        """Return the parts with the ranges of ids that contain their jobs."""
        spans = [(microseconds(since - TIME_SLACK), microseconds(until + TIME_SLACK)) for since, until in parts]
        times = sorted({at for span in spans for at in span})
        found = await self.session.one("first_jobs_since", times_us=self.session.array(times))
        ids = {row["at_us"]: row["id"] for row in found}
        ranges = [(ids[since], ids[until]) for since, until in spans]
        return [{**item, "low": low, "high": high} for item, (low, high) in zip(_times(parts), ranges, strict=True)]

    async def _figures(self, statement: str, items: _Items) -> dict[int, list[ModelFigures]]:
        found: dict[int, list[ModelFigures]] = defaultdict(list)
        for row in await self.session.many(statement, {}, items):
            found[row["number"]].append(read_model_figures(row))
        return found

    async def _members(self, statement: str, kind: str, parts: Sequence[TimeSpan]) -> list[AccountSet]:
        """Return the accounts of each part, from the sets of the hours."""
        sets = await self._hour_sets(kind, {hour_number(since) for since, _ in parts})
        items = [
            {**item, "account_id": account_id}
            for item, (since, _) in zip(_times(parts), parts, strict=True)
            for account_id in sets[hour_number(since)].ids()
        ]
        rows = await self.session.many(statement, {}, items) if items else ()
        return _sets(len(parts), ((row["number"], row["id"]) for row in rows))

    async def _hour_sets(self, kind: str, hours: Iterable[int]) -> dict[int, AccountSet]:
        """Return the accounts of a kind of set in each hour."""
        found = defaultdict[int, AccountSet](AccountSet)
        for row in await self.session.one("sets_of_hours", kind=kind, hours=self.session.array(sorted(hours))):
            found[row["hour"]] |= AccountSet({row["piece"]: load_piece(row["members"])})
        return found


def _sets(count: int, members: Iterable[tuple[int, int]]) -> list[AccountSet]:
    """Return the sets of pairs of a set's number and an account."""
    found = defaultdict[int, list[int]](list)
    for number, account_id in members:
        found[number].append(account_id)
    return [AccountSet.of(found[number]) for number in range(count)]


def _times(parts: Sequence[TimeSpan]) -> _Items:
    return [
        {"number": number, "since_us": microseconds(since), "until_us": microseconds(until)}
        for number, (since, until) in enumerate(parts)
    ]
