"""`Prefer: wait=N` (RFC 7240): an answer that waits for the end of a job."""

import asyncio
import re
from collections.abc import Callable

from starlette.requests import Request

from genlock.api.job_pages import jobs_by_id
from genlock.api.job_view import status_of
from genlock.api.job_watch import JobWatch, TooManyWatchers, Watcher, version_of
from genlock.api.types import FINAL
from genlock.domain.errors import StoreError
from genlock.domain.job import Job
from genlock.web.connections import WHEN_GONE

WAIT_SECONDS_MAX = 60.0
_WAIT = re.compile(r"(?:^|[,;\s])wait(?:=\"?(\d{1,6})\"?)?(?=$|[,;\s])", re.IGNORECASE)


def read_wait(request: Request) -> float | None:
    """Return the seconds that the client wants to wait; None if it does not. Other preferences are ignored."""
    found = _WAIT.search(",".join(request.headers.getlist("prefer"))[:1000])
    if found is None:
        return None
    return min(float(found[1]), WAIT_SECONDS_MAX) if found[1] else WAIT_SECONDS_MAX


async def wait_until_final(
    request: Request, watch: JobWatch, job: Job, seconds: float | None
) -> tuple[Job, float | None]:
    """Return the job as it is at its end or after the wait, and the wait that was applied, if one was.

    The wait ends when the client is gone, so that its place is free for others. If too many requests wait already, the
    answer comes at once: the client asks again.
    """
    if seconds is None or status_of(job) in FINAL:
        return job, seconds
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    try:
        with watch.watching(Watcher(job.account_id, {job.id: version_of(job)})) as watcher:
            tell_when_gone(request, watcher.stop)
            while (
                not (status_of(job) in FINAL or watcher.stopped) and watch.is_open() and (left := until - clock()) > 0
            ):
                async for changed in jobs_by_id(watch.store, await watcher.next_changes(left)):
                    job = changed
    except TooManyWatchers:
        return job, None
    except StoreError:  # a large job could not be read again: the client asks again
        return job, seconds
    return job, seconds


def tell_when_gone(request: Request, call: Callable[[], None]) -> None:
    """Call a function when the client of a request is gone, where the server can tell."""
    register = request.scope.get("extensions", {}).get(WHEN_GONE)
    if register is not None:
        register(call)
