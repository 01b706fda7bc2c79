"""Tells waiting requests that a job has changed: one statement at a time for all jobs that are watched here."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import Any

from genlock.api.job_view import status_of
from genlock.api.types import FINAL
from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.ports import ApiJobStore, Observer

PERIOD_SECONDS = 0.5
#: requests that wait in this instance, all and of one account, and jobs that one statement reads
WATCHERS_MAX = 1_000
WATCHERS_PER_ACCOUNT = 100
JOBS_AT_ONCE = 500
#: new jobs of an account that one statement reads
NEW_JOBS_MAX = 50


class TooManyWatchers(Exception):
    """This instance has no room for another waiting request, of this account or at all."""


class Watcher:
    """What one request of the account `owner` waits for: some jobs, or every job of an account."""

    def __init__(self, owner: int, jobs: Mapping[int, Job], account_id: int | None = None, after: int = 0) -> None:
        self.owner = owner
        self.account_id = account_id
        #: the highest job id of the account that was seen
        self.after = after
        self.jobs: dict[int, Job] = dict(jobs)
        self.changed: dict[int, Job] = {}
        self.wake = asyncio.Event()

    def update(self, job: Job) -> None:
        before = self.jobs.get(job.id)
        if before is not None and _version(before) == _version(job):
            return
        self.changed[job.id] = job
        if status_of(job) in FINAL:
            self.jobs.pop(job.id, None)
        else:
            self.jobs[job.id] = job
        self.wake.set()

    async def next_changes(self, seconds: float) -> list[Job]:
        """Return the jobs that have changed since the last call; an empty list after `seconds` without a change."""
        try:
            async with asyncio.timeout(seconds):
                await self.wake.wait()
        except TimeoutError:
            return []
        self.wake.clear()
        jobs, self.changed = list(self.changed.values()), {}
        return jobs


class JobWatch:
    """The watchers of this instance. It reads the store only while there are some."""

    def __init__(self, store: ApiJobStore, observer: Observer, is_open: Callable[[], bool]) -> None:
        self._store = store
        self._observer = observer
        self.is_open = is_open
        self._watchers: set[Watcher] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, watcher: Watcher) -> Any:
        """Keep a watcher up to date for the duration of the block. Raises TooManyWatchers."""
        own = sum(one.owner == watcher.owner for one in self._watchers)
        if len(self._watchers) >= WATCHERS_MAX or own >= WATCHERS_PER_ACCOUNT:
            raise TooManyWatchers
        self._watchers.add(watcher)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def job_changed(self, job_id: int) -> None:
        """Look at once: this instance has just settled a job."""
        if any(job_id in watcher.jobs for watcher in self._watchers):
            self._wake.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._watchers:
            try:
                async with asyncio.timeout(PERIOD_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if not self.is_open():
                for watcher in self._watchers:
                    watcher.wake.set()
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - the next look comes soon; without this task all requests would wait
                self._observer.event(Event.STAGE_ERROR, step="API job watch", error=repr(error))

    async def _look(self) -> None:
        accounts = {one.account_id: one.after for one in self._watchers if one.account_id is not None}
        for watcher in self._watchers:  # several watchers of an account: the one that has seen least decides
            if watcher.account_id is not None:
                accounts[watcher.account_id] = min(accounts[watcher.account_id], watcher.after)
        ids = sorted({job_id for watcher in self._watchers for job_id in watcher.jobs})
        found = await self._store.api_jobs_after(accounts, NEW_JOBS_MAX)
        for start in range(0, len(ids), JOBS_AT_ONCE):
            found += await self._store.api_jobs_by_id(ids[start : start + JOBS_AT_ONCE])
        for job in found:
            for watcher in tuple(self._watchers):
                is_new = watcher.account_id == job.account_id and job.id > watcher.after
                if is_new or job.id in watcher.jobs:
                    watcher.update(job)
        for watcher in self._watchers:
            if watcher.account_id is not None:
                seen = [job.id for job in found if job.account_id == watcher.account_id]
                watcher.after = max([watcher.after, *seen])


def _version(job: Job) -> tuple[object, ...]:
    return status_of(job), job.hold_state, job.late, job.delivery
