"""Searching jobs. No filter has an index of its own: a search reads candidates in steps, newest first.

Selective filters have few candidates, which an index gives: the jobs of a task, of an account, the open ones, those
that need attention. All other searches step through the ids. Each statement reads a bounded number of rows.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from genlock.domain.attempt import AttemptCost
from genlock.domain.job import Job
from genlock.domain.job_search import CountKind, FoundJobs, JobCount, JobFilter
from genlock.stores.rows import read_job
from genlock.stores.session import Session, Subject

#: ids that one statement reads: single milliseconds, so that on SQLite no order waits long for it
STEP = 5_000
#: the first step is small, because most pages are full after it; the steps grow by this factor
FIRST_STEP = 200
STEP_GROWTH = 5
#: candidates that one statement reads from an index
WINDOW = 2_000
#: up to this number the entries of an index are counted, where no other filter is set
COUNTED_MAX = 10_000
#: the sample of a count: evenly spread blocks of consecutive ids
SAMPLE_BLOCKS = 40
SAMPLE_BLOCK_IDS = 50
#: if none of n sampled rows matches, fewer than 3/n of all do, in 19 of 20 cases
RULE_OF_THREE = 3
#: ids follow the order of time, but for transactions that ran at the same time
TIME_SLACK_US = 60_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: the year 2255
_FAR_FUTURE = 9_000_000_000_000_000

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The ids between `low` (inclusive) and `high` (exclusive), or what an index gives of them."""

    low: int
    high: int
    #: the statement that returns the candidates below an id; None: all ids are candidates
    statement: str | None
    params: Mapping[str, Any]

    async def step(self, session: Session, before: int, size: int, window: int) -> tuple[list[Range], int]:
        """Return the next candidates, as ranges of ids, and the id down to which these are all."""
        if self.statement is None:
            floor = max(before - size, self.low)
            return [(floor, before)], floor
        rows = await session.one(self.statement, low=self.low, before=before, limit=window, **self.params)
        ids = [row["id"] for row in rows]
        return [(number, number + 1) for number in ids], ids[-1] if len(ids) == window else self.low


class JobSearch(Subject):
    async def search_jobs(
        self, filters: JobFilter, *, before: int | None = None, limit: int = 50, seconds: float = 0.06
    ) -> FoundJobs:
        candidates = await self._search_candidates(filters)
        upper = candidates.high if before is None else min(before, candidates.high)
        loop = asyncio.get_running_loop()
        stop_at = loop.time() + seconds
        found: list[Job] = []
        size = FIRST_STEP
        while upper > candidates.low:
            ranges, floor = await candidates.step(self.session, upper, size, min(size, WINDOW))
            jobs = await self._matching_jobs(filters, ranges, limit - len(found))
            found += jobs
            if len(found) == limit:
                return FoundJobs(jobs=tuple(found), before=found[-1].id)
            upper, size = floor, min(size * STEP_GROWTH, STEP)
            if upper > candidates.low and loop.time() >= stop_at:
                return FoundJobs(jobs=tuple(found), before=upper, looked_back_to=await self._job_ordered_at(upper))
        return FoundJobs(jobs=tuple(found), before=None)

    async def count_jobs(self, filters: JobFilter) -> JobCount:
        candidates = await self._search_candidates(filters)
        if candidates.statement is None:
            return await self._estimate_jobs(filters, candidates)
        is_plain = filters in (JobFilter(attention=True), JobFilter(account_id=filters.account_id))
        window = COUNTED_MAX if is_plain else WINDOW
        ranges, _ = await candidates.step(self.session, candidates.high, 0, window)
        matches = len(ranges) if is_plain else (await self._count_matching_jobs(filters, ranges))[0]
        return JobCount(number=matches, kind=CountKind.EXACT if len(ranges) < window else CountKind.AT_LEAST)

    async def _estimate_jobs(self, filters: JobFilter, candidates: Candidates) -> JobCount:
        span = candidates.high - candidates.low
        if span <= 0:
            return JobCount(number=0, kind=CountKind.EXACT)
        if span <= STEP:
            matches, _ = await self._count_matching_jobs(filters, [(candidates.low, candidates.high)])
            return JobCount(number=matches, kind=CountKind.EXACT)
        ranges = _sample(candidates.low, candidates.high)
        matches, rows = await self._count_matching_jobs(filters, ranges)
        per_sampled_id = span / sum(end - start for start, end in ranges)
        if matches:
            return JobCount(number=round(matches * per_sampled_id), kind=CountKind.ABOUT)
        return JobCount(number=round(min(RULE_OF_THREE, rows) * per_sampled_id), kind=CountKind.AT_MOST)

    async def jobs_by_id(self, job_ids: Collection[int]) -> list[Job]:
        return await self._matching_jobs(JobFilter(), [(number, number + 1) for number in set(job_ids)], len(job_ids))

    async def refunded_jobs(self, job_ids: Collection[int]) -> frozenset[int]:
        rows = await self.session.one("refunded_jobs", job_ids=self.session.array(list(job_ids)))
        return frozenset(row["id"] for row in rows)

    async def attempt_costs(self, job_ids: Collection[int]) -> list[AttemptCost]:
        rows = await self.session.one("attempt_costs", job_ids=self.session.array(list(job_ids)))
        return [AttemptCost(job_id=row["job_id"], provider=row["provider"], cost=row["cost"]) for row in rows]

    async def account_names(self, account_ids: Collection[int]) -> Mapping[int, str]:
        rows = await self.session.one("account_names", account_ids=self.session.array(list(account_ids)))
        return {row["id"]: row["name"] for row in rows}

    async def job_providers(self) -> Sequence[str]:
        return [row["provider"] for row in await self.session.one("job_providers")]

    async def _search_candidates(self, filters: JobFilter) -> Candidates:
        if filters.is_impossible:
            return Candidates(0, 0, None, {})
        [ids] = await self.session.one("job_id_range")
        low, high = ids["first"] or 0, (ids["last"] or -1) + 1
        if filters.since is not None:
            low = max(low, await self._first_job_since(_microseconds(filters.since) - TIME_SLACK_US))
        if filters.until is not None:
            high = min(high, await self._first_job_since(_microseconds(filters.until) + TIME_SLACK_US))
        statement, params = _candidate_statement(filters)
        return Candidates(low, high, statement, params)

    async def _first_job_since(self, at_us: int) -> int:
        [row] = await self.session.one("first_job_since", at_us=at_us)
        return int(row["id"])

    async def _job_ordered_at(self, job_id: int) -> datetime | None:
        rows = await self.session.one("job_ordered_at", job_id=job_id)
        return self.session.time(rows[0]["created_at"]) if rows else None

    async def _matching_jobs(self, filters: JobFilter, ranges: Iterable[Range], limit: int) -> list[Job]:
        rows = await self.session.one("search_jobs", limit=limit, **self._filter_params(filters, ranges))
        return [read_job(row, self.session.time) for row in rows]

    async def _count_matching_jobs(self, filters: JobFilter, ranges: Iterable[Range]) -> tuple[int, int]:
        """Return how many rows match, and how many there are."""
        [row] = await self.session.one("count_jobs", **self._filter_params(filters, ranges))
        return row["matches"], row["rows"]

    def _filter_params(self, filters: JobFilter, ranges: Iterable[Range]) -> dict[str, Any]:
        array, ranges = self.session.array, list(ranges)
        return {
            "starts": array([start for start, _ in ranges]),
            "ends": array([end for _, end in ranges]),
            "states": array([state.value for state in filters.states]),
            "deliveries": array([delivery.value for delivery in filters.deliveries]),
            "holds": array([hold.value for hold in filters.holds]),
            "model": filters.model,
            "provider": filters.provider,
            "account_id": filters.account_id,
            "since_us": 0 if filters.since is None else _microseconds(filters.since),
            "until_us": _FAR_FUTURE if filters.until is None else _microseconds(filters.until),
            "error_code": filters.error_code,
            "task_id": filters.task_id,
            "texts": array(filters.texts),
            "attention": filters.attention,
        }


def _candidate_statement(filters: JobFilter) -> tuple[str | None, Mapping[str, Any]]:
    """Return the statement with the fewest candidates, and its own parameters."""
    if filters.task_id:
        return "task_job_ids", {"task_id": filters.task_id}
    if filters.is_open:
        return "open_job_ids", {}
    if filters.is_unfinished:
        return "unfinished_job_ids", {}
    if filters.attention:
        return "attention_job_ids", {}
    if filters.account_id is not None:
        return "account_job_ids", {"account_id": filters.account_id}
    return None, {}


def _sample(low: int, high: int) -> list[Range]:
    """Return evenly spread blocks of ids. The same ids give the same blocks, so that a count does not flicker."""
    distance = (high - low) / SAMPLE_BLOCKS
    starts = [low + int(distance * (number + 0.5)) for number in range(SAMPLE_BLOCKS)]
    return [(start, min(start + SAMPLE_BLOCK_IDS, high)) for start in starts]


def _microseconds(at: datetime) -> int:
    return min(max((at - _EPOCH) // _MICROSECOND, 0), _FAR_FUTURE)
