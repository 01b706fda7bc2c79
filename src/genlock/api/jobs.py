"""Jobs of an account: read, list, cancel."""

import asyncio
from weakref import WeakValueDictionary

from starlette.responses import Response

from genlock.api.job_pages import read_list
from genlock.api.job_view import status_of
from genlock.api.operation import Answered, Call, Header, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import Problem, conflict, not_found, too_many
from genlock.api.types import JobAnswer, JobList, JobPageQuery
from genlock.api.waiting import read_wait, wait_until_final
from genlock.domain.api_key import ApiScope
from genlock.domain.errors import ActionNotAllowed, JobWasSubmitted
from genlock.domain.job import Actor, Job
from genlock.domain.money import HoldState

DAY = 86_400.0
#: orders that an account may cancel before their submit, without a pause (or as many as it may have running), and the
#: pause before each further one. They are free, and their rows stay.
EARLY_CANCELS, EARLY_CANCEL_SECONDS = 1000, 60.0
_PREFER_DOC = Header(
    name="Prefer",
    description="`wait=N` waits up to N seconds, at most 60, for the end of the job.",
    schema={"type": "string", "maxLength": 200},
)


class JobRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        #: held while a job of the account is cancelled, so that cancellations at the same time are counted one by one
        self._cancelling: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="list_jobs",
                method="GET",
                path="/v1/jobs",
                summary="List jobs, newest first",
                description="A page of very long inputs ends early; `next_cursor` tells whether there are more jobs.",
                handle=self.list,
                scope=ApiScope.READ,
                query=JobPageQuery,
                answers={200: Answered(description="One page of jobs.", kind=JobList)},
                problems=(404, 422),
            ),
            Operation(
                name="get_job",
                method="GET",
                path="/v1/jobs/{job_id}",
                summary="Read a job",
                handle=self.get,
                scope=ApiScope.READ,
                job_in_path="job_id",
                headers=(_PREFER_DOC,),
                answers={200: Answered(description="The job as it is now.", kind=JobAnswer)},
                problems=(404,),
            ),
            Operation(
                name="cancel_job",
                method="POST",
                path="/v1/jobs/{job_id}/cancel",
                summary="Cancel a job",
                description="The hold is released at once, and the result is not delivered even if it comes later.",
                handle=self.cancel,
                scope=ApiScope.ORDER,
                answers={202: Answered(description="The job was cancelled, now or before.", kind=JobAnswer)},
                problems=(404, 409),
            ),
        ]

    async def list(self, call: Call) -> Response:
        query = call.query
        assert isinstance(query, JobPageQuery)
        before = None
        if query.cursor is not None and (before := self._parts.view.job_id(query.cursor)) is None:
            raise not_found("?cursor is not a next_cursor of this list")
        async with self._parts.list_slots.take(call.account_id):
            page, has_more = await read_list(self._parts.store, call.account_id, before, query.limit)
        view = self._parts.view
        answer = JobList(
            data=[view.answer(job, call.base_url) for job in page],
            next_cursor=view.id_of(page[-1].id) if has_more else None,
        )
        return Response(answer.model_dump_json(), media_type="application/json")

    async def get(self, call: Call) -> Response:
        wait = read_wait(call.request)
        job, waited = await wait_until_final(call.request, self._parts.watch, given_job(call), wait)
        headers = {} if waited is None else {"Preference-Applied": f"wait={waited:g}"}
        return self._answer(call, job, 200, headers)

    async def cancel(self, call: Call) -> Response:
        async with self._cancelling.setdefault(call.account_id, asyncio.Lock()):
            return await self._cancel(call)

    async def _cancel(self, call: Call) -> Response:
        parts, job = self._parts, await find_own(self._parts, call)
        if job.cancelled_by is Actor.USER:
            return self._answer(call, job, 202)
        is_submitted = job.submitted_at is not None
        if is_submitted and not job.ended:
            await self._check_quota(call)
        elif not job.ended:
            await self._check_early_quota(call)
        try:
            job = await parts.engine.cancel(
                job.id, f"API key {call.key.id}", Actor.USER, attempt=None if is_submitted else job.attempt
            )
        except JobWasSubmitted:  # since it was read: once more, with the quota
            return await self._cancel(call)
        except ActionNotAllowed:
            job = await find_own(parts, call)  # it may have been cancelled by the same request, sent twice at once
            if job.cancelled_by is not Actor.USER:
                charged = job.hold_state is HoldState.CAPTURED
                money = "its price was charged" if charged else "it was not charged"
                detail = f"the job has already ended: {status_of(job)}; {money}"
                raise conflict("already_ended", detail, charged=charged) from None
        return self._answer(call, job, 202)

    async def _check_quota(self, call: Call) -> None:
        most = self._parts.rules.late_cancels_per_day
        if await self._parts.store.late_cancels(call.account_id) >= most:
            detail = (
                f"the day's limit of cancellations after the provider has begun is reached ({most}); this order goes on"
            )
            raise too_many("too_many_cancels", detail, DAY / 24)

    async def _check_early_quota(self, call: Call) -> None:
        """Raise Problem 429 if too many orders were cancelled that cost nothing: their inputs would fill the disk."""
        at_once = max(EARLY_CANCELS, self._parts.rules.running_max)
        # Taken ahead of time: a limit that lies in the past may be pruned.
        taken = await self._parts.store.reserve_permits(
            f"early-cancel:{call.account_id}", 1, EARLY_CANCEL_SECONDS, 1, (at_once - 1) * EARLY_CANCEL_SECONDS
        )
        if not taken:
            detail = f"the account has cancelled {at_once} orders that the provider had not begun; this order goes on"
            raise too_many("too_many_cancels", detail, EARLY_CANCEL_SECONDS)

    def _answer(self, call: Call, job: Job, status: int, headers: dict[str, str] | None = None) -> Response:
        answer = self._parts.view.answer(job, call.base_url)
        return Response(answer.model_dump_json(), status, headers=headers, media_type="application/json")


def given_job(call: Call) -> Job:
    """Return the job that was read with the key. Raises Problem 404."""
    if call.job is None:
        raise _no_job()
    return call.job


async def find_own(parts: ApiParts, call: Call) -> Job:
    """Read the job that the path names, if the key's account has ordered it. Raises Problem 404."""
    job_id = parts.view.job_id(call.path("job_id"))
    job = await parts.store.api_job(job_id) if job_id is not None else None
    if job is None or job.account_id != call.account_id:
        raise _no_job()
    return job


def _no_job() -> Problem:
    return not_found("this account has no job with this id")
