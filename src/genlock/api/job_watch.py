"""Tells waiting requests that a job has changed: one task reads all jobs that are watched here, in one statement.

A request that waits costs its connection and an entry here: no task, no timer, and no statement of its own.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from genlock.api.job_pages import SMALL_JOB_CHARACTERS, characters_of
from genlock.api.job_view import status_of
from genlock.api.types import FINAL
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.ports import ApiJobStore, JobVersion, Observer

PERIOD_SECONDS = 0.5
#: how exactly the end of a wait is kept
PRECISION_SECONDS = 0.05
#: requests that wait in this instance: of all accounts, and of one, which also gets at most half of the free places
WATCHERS_MAX = 5_000
WATCHERS_PER_ACCOUNT = 500
#: places that one account always has, however many the others take
WATCHERS_PER_ACCOUNT_MIN = 10
#: jobs whose version, and whose row, one statement reads
VERSIONS_AT_ONCE = 2_000
JOBS_AT_ONCE = 100
#: watched jobs that are compared before other requests are answered
COMPARED_AT_ONCE = 10_000
#: new jobs of an account that one statement reads
NEW_JOBS_MAX = 50
_NEVER = float("inf")


class TooManyWatchers(Exception):
    """This instance has no room for another waiting request, of this account or at all."""


class Watcher:
    """What one request of the account `owner` waits for: some jobs, or every job of an account."""

    def __init__(
        self, owner: int, jobs: Mapping[int, JobVersion], account_id: int | None = None, after: int = 0
    ) -> None:
        self.owner = owner
        self.account_id = account_id
        #: the highest job id of the account that was seen
        self.after = after
        #: the jobs that are watched, and what was last seen of them
        self.jobs: dict[int, JobVersion] = dict(jobs)
        #: a large job is not kept for a client that reads slowly, but read again
        self.changed: dict[int, Job | None] = {}
        self.wake = asyncio.Event()
        #: the loop's time at which the request goes on although nothing has changed
        self.until = _NEVER
        #: whether the request must stop waiting: its client is gone
        self.stopped = False

    def stop(self) -> None:
        """End the wait of the request now."""
        self.stopped = True
        self.wake.set()

    def update(self, job: Job) -> None:
        version = version_of(job)
        if self.jobs.get(job.id) == version:
            return
        self.changed[job.id] = job if characters_of(job) <= SMALL_JOB_CHARACTERS else None
        if status_of(job) in FINAL:
            self.jobs.pop(job.id, None)
        else:
            self.jobs[job.id] = version
        self.wake.set()

    async def next_changes(self, seconds: float) -> dict[int, Job | None]:
        """Return the jobs that have changed since the last call, the large ones as ids; none after `seconds`.

        The watch wakes it: one timer serves all watchers.
        """
        self.until = asyncio.get_running_loop().time() + seconds
        await self.wake.wait()
        self.until = _NEVER
        self.wake.clear()
        jobs, self.changed = self.changed, {}
        return jobs


class JobWatch:
    """The watchers of this instance. It reads the store only while there are some."""

    def __init__(self, store: ApiJobStore, observer: Observer, is_open: Callable[[], bool]) -> None:
        self.store = store
        self._observer = observer
        self.is_open = is_open
        self._watchers: set[Watcher] = set()
        self._owners: Counter[int] = Counter()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def check_room(self, owner: int) -> None:
        """Raise TooManyWatchers if another watcher of this account would be too many."""
        own = self._owners[owner]
        half_of_the_rest = (WATCHERS_MAX - (len(self._watchers) - own)) // 2
        if own >= min(WATCHERS_PER_ACCOUNT, max(WATCHERS_PER_ACCOUNT_MIN, half_of_the_rest)):
            raise TooManyWatchers

    @contextmanager
    def watching(self, watcher: Watcher) -> Iterator[Watcher]:
        """Keep a watcher up to date for the duration of the block. Raises TooManyWatchers."""
        self.check_room(watcher.owner)
        self._watchers.add(watcher)
        self._owners[watcher.owner] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            self._owners[watcher.owner] -= 1
            if not self._owners[watcher.owner]:
                del self._owners[watcher.owner]

    def job_changed(self, _: int) -> None:
        """Look at once: this instance has just settled a job."""
        if self._watchers:
            self._wake.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        look_at = clock() + PERIOD_SECONDS
        while self._watchers:
            await self._rest(look_at - clock())
            now = clock()
            for watcher in self._watchers:
                if watcher.until <= now or not self.is_open():
                    watcher.wake.set()
            if now < look_at and not self._wake.is_set():
                continue
            self._wake.clear()
            look_at = now + PERIOD_SECONDS
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - the next look comes soon; without this task all requests would wait
                self._observer.event(Event.STAGE_ERROR, step="API job watch", error=repr(error))

    async def _rest(self, seconds: float) -> None:
        """Wait until the next look is due, a wait ends, or a job has changed."""
        earliest = min((watcher.until for watcher in self._watchers), default=_NEVER)
        left = earliest - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(seconds, max(left, PRECISION_SECONDS))):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _look(self) -> None:
        self._tell(await self._new_jobs())
        changed = await self._changed_jobs()
        for start in range(0, len(changed), JOBS_AT_ONCE):
            self._tell(await self.store.api_jobs_by_id(changed[start : start + JOBS_AT_ONCE]))
            await asyncio.sleep(0)

    def _tell(self, found: Iterable[Job]) -> None:
        by_id = {job.id: job for job in found}
        by_account: dict[int, list[Job]] = {}
        for job in by_id.values():
            by_account.setdefault(job.account_id, []).append(job)
        for watcher in self._watchers if by_id else ():
            for job_id in _shared(watcher.jobs, by_id):
                watcher.update(by_id[job_id])
            if watcher.account_id is not None:
                self._tell_new(watcher, by_account.get(watcher.account_id, ()))

    def _tell_new(self, watcher: Watcher, jobs: Iterable[Job]) -> None:
        after = watcher.after
        for job in jobs:
            if job.id > after:
                watcher.update(job)
                watcher.after = max(watcher.after, job.id)

    async def _new_jobs(self) -> list[Job]:
        """Return jobs that watched accounts have ordered; the watcher that has seen least decides for its account."""
        positions: dict[int, int] = {}
        for watcher in self._watchers:
            if watcher.account_id is not None:
                positions[watcher.account_id] = min(positions.get(watcher.account_id, watcher.after), watcher.after)
        return await self.store.api_jobs_after(positions, NEW_JOBS_MAX)

    async def _changed_jobs(self) -> list[int]:
        """Return the watched jobs of which a watcher has seen another version: others are not read whole."""
        ids: set[int] = set()
        async for watcher in self._with_pauses():
            ids.update(watcher.jobs)
        versions: dict[int, JobVersion] = {}
        in_order = sorted(ids)
        for start in range(0, len(in_order), VERSIONS_AT_ONCE):
            versions |= await self.store.api_job_versions(in_order[start : start + VERSIONS_AT_ONCE])
        changed: set[int] = set()
        async for watcher in self._with_pauses():
            changed.update(job_id for job_id, seen in watcher.jobs.items() if versions.get(job_id, seen) != seen)
        return sorted(changed)

    async def _with_pauses(self) -> AsyncIterator[Watcher]:
        """Yield the watchers. Those of a few clients may watch hundreds of thousands of jobs."""
        compared = 0
        for watcher in tuple(self._watchers):
            yield watcher
            compared += len(watcher.jobs)
            if compared >= COMPARED_AT_ONCE:
                compared = 0
                await asyncio.sleep(0)


def _shared(watched: Mapping[int, JobVersion], jobs: Mapping[int, Job]) -> list[int]:
    """Return the ids in both, from the smaller one: most watchers watch one job."""
    few, many = (watched, jobs) if len(watched) < len(jobs) else (jobs, watched)
    return [job_id for job_id in few if job_id in many]


def version_of(job: Job) -> JobVersion:
    return JobVersion(job.state, job.delivery, job.hold_state, job.late)
