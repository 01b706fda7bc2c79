"""Server-sent events: every change of one job, or of all jobs of an account."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from genlock.api.authentication import authenticate
from genlock.api.job_pages import jobs_by_id
from genlock.api.job_view import status_of
from genlock.api.job_watch import TooManyWatchers, Watcher, version_of
from genlock.api.jobs import find_own
from genlock.api.operation import Answered, Call, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import Problem, too_many, unavailable
from genlock.api.types import FINAL
from genlock.domain.api_key import ApiScope
from genlock.domain.errors import StoreError
from genlock.domain.job import Job

#: a comment is sent after this time without an event, so that proxies keep the connection
HEARTBEAT_SECONDS = 15.0
STREAMS_PER_KEY = 10
#: jobs of an account that have not ended when a stream begins
OPEN_JOBS_MAX = 1_000
MEDIA_TYPE = "text/event-stream"


class EventStream(StreamingResponse):
    """A stream that tells when it has ended, also if its client is gone before the first line."""

    def __init__(self, events: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(
            events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=MEDIA_TYPE
        )
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class EventRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        #: open streams of this instance by key
        self._streams: Counter[int] = Counter()

    def operations(self) -> list[Operation]:
        stream = {
            200: Answered(description="A stream of events named `job`; the data is a job.", media_type=MEDIA_TYPE)
        }
        return [
            Operation(
                name="watch_job",
                method="GET",
                path="/v1/jobs/{job_id}/events",
                summary="Watch one job until its end",
                handle=self.one_job,
                scope=ApiScope.READ,
                tag="events",
                answers=stream,
                problems=(404,),
            ),
            Operation(
                name="watch_jobs",
                method="GET",
                path="/v1/events",
                summary="Watch all jobs of the account",
                description="Begins with the jobs that have not ended, and sends every change from then on.",
                handle=self.all_jobs,
                scope=ApiScope.READ,
                tag="events",
                answers=stream,
            ),
        ]

    async def one_job(self, call: Call) -> Response:
        with self._opening(call) as stream:
            job = await find_own(self._parts, call)
            open_jobs = {} if status_of(job) in FINAL else {job.id: version_of(job)}
            return stream(self._events(call, Watcher(call.account_id, open_jobs), {job.id: job}, ends=True))

    async def all_jobs(self, call: Call) -> Response:
        store = self._parts.store
        with self._opening(call) as stream:
            newest = await store.api_jobs(call.account_id, before=None, limit=1)
            after = newest[0].id if newest else 0
            found = await store.api_jobs_without_end(call.account_id, OPEN_JOBS_MAX)
            watcher = Watcher(call.account_id, found, account_id=call.account_id, after=after)
            return stream(self._events(call, watcher, dict.fromkeys(found), ends=False))

    @contextmanager
    def _opening(self, call: Call) -> Iterator[Callable[[AsyncIterator[str]], Response]]:
        """Count a stream from its first line on, before anything is read for it. Raises Problem.

        The stream that is made in the block is counted until it ends.
        """
        key = call.key.id
        if self._streams[key] >= STREAMS_PER_KEY:
            raise too_many(
                "too_many_streams", f"a key may have {STREAMS_PER_KEY} event streams open", HEARTBEAT_SECONDS
            )
        try:
            self._parts.watch.check_room(call.account_id)
        except TooManyWatchers:
            raise unavailable("too many requests are waiting on this instance; try again") from None
        self._streams[key] += 1
        opened = []

        def stream(events: AsyncIterator[str]) -> Response:
            opened.append(EventStream(events, partial(self._ended, key)))
            return opened[0]

        try:
            yield stream
        finally:
            if not opened:
                self._ended(key)

    def _ended(self, key: int) -> None:
        self._streams[key] -= 1
        if not self._streams[key]:
            del self._streams[key]

    async def _events(
        self, call: Call, watcher: Watcher, first: Mapping[int, Job | None], *, ends: bool
    ) -> AsyncIterator[str]:
        watch, store = self._parts.watch, self._parts.store
        try:
            with watch.watching(watcher):
                async for job in jobs_by_id(store, first):
                    yield self._event(call, job)
                while watch.is_open() and (watcher.jobs or not ends):
                    changed = await watcher.next_changes(HEARTBEAT_SECONDS)
                    if not await self._is_allowed(call):
                        return
                    if not changed:
                        yield ": still here\n\n"
                    async for job in jobs_by_id(store, changed):
                        yield self._event(call, job)
        except StoreError:  # the stream ends; the client opens another
            return
        except TooManyWatchers:  # the last places were taken since the stream was counted
            yield f"event: error\ndata: {unavailable('too many requests wait here').document()['code']}\n\n"

    async def _is_allowed(self, call: Call) -> bool:
        """Whether the key still works: a stream may outlive a key that was revoked, or the ban of its account."""
        try:
            await authenticate(call.request, self._parts.store)
        except (Problem, StoreError):  # without an answer of the store the stream ends; the client opens another
            return False
        return True

    def _event(self, call: Call, job: Job) -> str:
        answer = self._parts.view.answer(job, call.base_url)
        return f"event: job\nid: {answer.id}\ndata: {answer.model_dump_json()}\n\n"
