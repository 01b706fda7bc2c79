"""Read jobs of an account in steps: one job may have an input of a hundred kilobytes, and a list a hundred jobs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import accumulate
from weakref import WeakValueDictionary

from genlock.domain.job import Job
from genlock.ports import ApiJobStore

#: jobs that one statement reads for a list: the default `limit` and one more, which tells whether there are more
LIST_STEP = 21
#: the same for a stream, whose client may read it slowly
STREAM_STEP = 4
#: the same after a step of small jobs
SMALL_STEP = 100
#: characters of a small job at most
SMALL_JOB_CHARACTERS = 5_000
#: characters of jobs that a stream holds while its client reads; a single job may have more
STREAM_CHARACTERS_MAX = 100_000
#: characters of jobs after which a list ends early; its next page goes on
LIST_CHARACTERS_MAX = 300_000
#: lists that this instance reads at the same time
LISTS_AT_ONCE = 4


class ListSlots:
    """Limits how many lists are read at once, as each takes megabytes: one of an account, a few of all accounts."""

    def __init__(self) -> None:
        self._of_account: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._of_all = asyncio.Semaphore(LISTS_AT_ONCE)

    @asynccontextmanager
    async def take(self, account_id: int) -> AsyncIterator[None]:
        async with self._of_account.setdefault(account_id, asyncio.Lock()), self._of_all:
            yield


def characters_of(job: Job) -> int:
    """Return the size of what its owner and the provider wrote into a job; the rest is small."""
    return len(job.input) + len(job.address) + sum(len(part.value) for part in job.parts)


async def read_list(store: ApiJobStore, account_id: int, before: int | None, limit: int) -> tuple[list[Job], bool]:
    """Return up to `limit` of an account's jobs, fewer if they are large, and whether there are more."""
    found: list[Job] = []
    size = 0
    async with aclosing(newest_jobs(store, account_id, before, limit + 1)) as jobs:
        async for job in jobs:
            if len(found) == limit or size > LIST_CHARACTERS_MAX:
                return found, True
            found.append(job)
            size += characters_of(job)
    return found, False


async def newest_jobs(
    store: ApiJobStore, account_id: int, before: int | None, wanted: int
) -> AsyncGenerator[Job, None]:
    """Yield an account's jobs, newest first; about `wanted` of them will be read."""
    step = min(wanted, LIST_STEP)
    while True:
        jobs = await store.api_jobs(account_id, before=before, limit=step)
        for job in jobs:
            yield job
        if len(jobs) < step:
            return
        before = jobs[-1].id
        step = SMALL_STEP if _are_small(jobs) else LIST_STEP
        await asyncio.sleep(0)  # SQLite answers at once: without a pause no other request would be answered meanwhile


async def jobs_by_id(store: ApiJobStore, found: Mapping[int, Job | None]) -> AsyncGenerator[Job, None]:
    """Yield jobs in the order of their ids in `found`; those that it has only the id of are read."""
    numbers, start, step = list(found), 0, STREAM_STEP
    while start < len(numbers):
        held = await _read_step(store, found, numbers[start : start + step])
        step = SMALL_STEP if _are_small([job for job in held if job is not None]) else STREAM_STEP
        held = held[: _held_at_once(held)]
        for job in held:
            if job is not None:
                yield job
        start += len(held)
        await asyncio.sleep(0)  # neither SQLite nor a client that is gone makes a stream wait


async def _read_step(store: ApiJobStore, found: Mapping[int, Job | None], numbers: Sequence[int]) -> list[Job | None]:
    """Return a job for each id; None if it is gone."""
    read = await store.api_jobs_by_id([number for number in numbers if found[number] is None])
    by_id = {job.id: job for job in read}
    return [found[number] or by_id.get(number) for number in numbers]


def _held_at_once(jobs: Sequence[Job | None]) -> int:
    """Return how many of the jobs may wait for a slow client, at least one: the others are read again."""
    sizes = accumulate(characters_of(job) if job is not None else 0 for job in jobs)
    return max(1, sum(size <= STREAM_CHARACTERS_MAX for size in sizes))


def _are_small(jobs: Sequence[Job]) -> bool:
    return sum(map(characters_of, jobs)) <= SMALL_JOB_CHARACTERS * len(jobs)
