"""`/v1/videos`: orders of videos, in OpenAI's shape."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack, aclosing
from dataclasses import replace
from functools import partial
from typing import IO, Any

from starlette.responses import Response

from genlock.api.forms import MEDIA_TYPE, Form, is_form, receive_form
from genlock.api.job_pages import LIST_CHARACTERS_MAX, characters_of, newest_jobs
from genlock.api.job_view import results_of, status_of
from genlock.api.jobs import given_job
from genlock.api.openai.errors import openai_response, rename_fields
from genlock.api.openai.images import find_model
from genlock.api.openai.orders import KEY_DOC, Complete, OpenAIOrders
from genlock.api.openai.parameters import PROMPT, ModelInput, seconds_field
from genlock.api.openai.sizes import size_of
from genlock.api.openai.types import (
    FORM_SCHEMA,
    ContentQuery,
    ErrorAnswer,
    VideoAnswer,
    VideoError,
    VideoList,
    VideoPageQuery,
    VideoRequest,
    VideoStatus,
)
from genlock.api.operation import Answered, Call, Header, Operation
from genlock.api.order_acceptance import REPLAYED_HEADER, ClientOrder
from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, Problem, invalid, not_found
from genlock.api.reading import hash_request, read_json, validated
from genlock.api.results import ResultRoutes
from genlock.api.types import JobAnswer, Status
from genlock.api.uploads import Arrival, Uploads
from genlock.domain.api_key import ApiScope
from genlock.domain.catalog import Model, Output
from genlock.domain.field import Field
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.media.hashing import hash_file

PATH = "/v1/videos"
REFERENCE = "input_reference"
#: when OpenAI's clients ask again
POLL_HEADERS = {"openai-poll-after-ms": "2000"}
#: jobs that one request for a list looks through
SCANNED_MAX = 1_000
_STATUSES: Mapping[Status, VideoStatus] = {
    Status.QUEUED: "queued",
    Status.RUNNING: "in_progress",
    Status.SUCCEEDED: "completed",
}


class VideoRoutes:
    def __init__(self, parts: ApiParts, orders: OpenAIOrders, uploads: Uploads, results: ResultRoutes) -> None:
        self._parts = parts
        self._orders = orders
        self._uploads = uploads
        self._results = results

    def operations(self) -> list[Operation]:
        return [
            replace(
                operation,
                tag="openai",
                refuse=openai_response,
                refusal=ErrorAnswer,
                refusal_media_type="application/json",
            )
            for operation in (self._create_operation(), *self._read_operations())
        ]

    def _create_operation(self) -> Operation:
        return Operation(
            name="create_video",
            method="POST",
            path=PATH,
            summary="Order a video",
            description=f"In OpenAI's shape, as JSON or as a form with the file `{REFERENCE}`.",
            handle=self.create,
            scope=ApiScope.ORDER,
            raw_bodies={"application/json": VideoRequest, MEDIA_TYPE: FORM_SCHEMA},
            headers=(KEY_DOC,),
            answers={200: Answered(description="The order was accepted, now or before.", kind=VideoAnswer)},
            problems=(400, 404, 408, 409, 413, 415),
        )

    def _read_operations(self) -> list[Operation]:
        listing = Operation(
            name="list_videos",
            method="GET",
            path=PATH,
            summary="List orders of videos, newest first",
            description=f"One page looks through at most {SCANNED_MAX} jobs of the account.",
            handle=self.list_videos,
            scope=ApiScope.READ,
            query=VideoPageQuery,
            answers={200: Answered(description="One page of videos.", kind=VideoList)},
            problems=(400, 404),
        )
        read = Operation(
            name="get_video",
            method="GET",
            path=f"{PATH}/{{video_id}}",
            summary="Read an order of a video",
            handle=self.get,
            scope=ApiScope.READ,
            job_in_path="video_id",
            answers={200: Answered(description="The order as it is now.", kind=VideoAnswer)},
            problems=(404,),
        )
        content = Operation(
            name="get_video_content",
            method="GET",
            path=f"{PATH}/{{video_id}}/content",
            summary="Read the video itself",
            handle=self.content,
            scope=ApiScope.READ,
            job_in_path="video_id",
            query=ContentQuery,
            headers=(Header(name="Range", description="one range of bytes, such as `bytes=0-1023`"),),
            answers={
                200: Answered(description="The video.", media_type="*/*"),
                206: Answered(description="The range.", media_type="*/*"),
                304: Answered(description="The copy named by If-None-Match is still right.", media_type=""),
            },
            problems=(400, 404, 410, 416),
        )
        return [listing, read, content]

    async def create(self, call: Call) -> Response:
        if not is_form(call.request):
            take_permits = partial(self._parts.limits.take, call.key.id)
            content = await read_json(call.request, self._parts.memory, call.account_id, take_permits)
            return await self._order(call, _validated(content), hash_request("POST", PATH, content), None, 0)
        with ExitStack() as closing:
            async with Arrival() as arrival:
                receiving = self._uploads.receiving(call.account_id, arrival)
                form = await receive_form(
                    call.request,
                    self._parts.memory,
                    call.account_id,
                    REFERENCE,
                    lambda: closing.enter_context(receiving),
                )
            content = _form_content(form)
            body = _validated(content, strict=False)
            if form.file is None:
                return await self._order(call, body, hash_request("POST", PATH, content), None, 0)
            digest = await asyncio.to_thread(hash_file, form.file)
            request_hash = hash_request("POST", PATH, {**content, REFERENCE: digest})
            return await self._order(call, body, request_hash, form.file, form.file_bytes)

    async def _order(
        self, call: Call, body: VideoRequest, request_hash: str, file: IO[bytes] | None, size: int
    ) -> Response:
        model = find_model(self._parts, body.model)
        found = ModelInput(model)
        image = _set_parameters(found, body, has_file=file is not None)
        order = ClientOrder(
            model=model.id,
            input=found.values,
            request_hash=request_hash,
            metadata=body.metadata or {},
            max_price=body.max_price,
        )
        complete: Complete | None = None
        if file is not None and image is not None:
            complete = self._completing(call, found, image, file, size)
        try:
            accepted = await self._orders.accept(call, order, complete)
        except Problem as problem:
            raise rename_fields(problem, found.parameters) from None
        headers = POLL_HEADERS | ({REPLAYED_HEADER: "true"} if accepted.replayed else {})
        return self._answer(call, accepted.job, headers)

    def _completing(self, call: Call, model_input: ModelInput, image: Field, file: IO[bytes], size: int) -> Complete:
        async def complete() -> Mapping[str, Any]:
            await self._uploads.check_quota(call)
            stored = await self._uploads.store(call, file, size)
            return {**model_input.values, image.name: [stored.id] if image.many else stored.id}

        return complete

    async def list_videos(self, call: Call) -> Response:
        query = call.query
        assert isinstance(query, VideoPageQuery)
        before = None
        if query.after is not None and (before := self._parts.view.job_id(query.after)) is None:
            raise not_found("?after is not an id of this list")
        async with self._parts.list_slots.take(call.account_id):
            found, last, has_more = await self._videos(call.account_id, before, query.limit)
        data = [self._video(job, call.base_url) for job in found]
        last_id = self._parts.view.id_of(last) if last is not None else None
        page = VideoList(data=data, first_id=data[0].id if data else None, last_id=last_id, has_more=has_more)
        return Response(page.model_dump_json(), media_type="application/json")

    async def _videos(self, account_id: int, before: int | None, limit: int) -> tuple[list[Job], int | None, bool]:
        """Return the videos of a page, the last job that was looked at, and whether there are more jobs."""
        found: list[Job] = []
        last, scanned, size = before, 0, 0
        async with aclosing(newest_jobs(self._parts.store, account_id, before, SCANNED_MAX)) as jobs:
            async for job in jobs:
                if len(found) == limit or size > LIST_CHARACTERS_MAX or scanned == SCANNED_MAX:
                    return found, last, True
                last, scanned = job.id, scanned + 1
                if self._makes_video(job):
                    found.append(job)
                    size += characters_of(job)
        return found, last, False

    async def get(self, call: Call) -> Response:
        return self._answer(call, self._find(call), POLL_HEADERS)

    async def content(self, call: Call) -> Response:
        job = self._find(call)
        if not results_of(job) and not job.erased:
            raise not_found(f"the video is not there; its status is {status_of(job)}")
        index = next((n for n, part in enumerate(results_of(job)) if part.kind is not PartKind.TEXT), 0)
        return await self._results.content(call.request, job, str(index))

    def _find(self, call: Call) -> Job:
        job = given_job(call)
        if not self._makes_video(job):
            raise not_found("this account has no video with this id")
        return job

    def _makes_video(self, job: Job) -> bool:
        model = self._model(job)
        return model is not None and Output.VIDEO in model.outputs

    def _model(self, job: Job) -> Model | None:
        return self._parts.catalog.get().models.get(job.model)

    def _answer(self, call: Call, job: Job, headers: Mapping[str, str]) -> Response:
        content = self._video(job, call.base_url).model_dump_json()
        return Response(content, headers=dict(headers), media_type="application/json")

    def _video(self, job: Job, base_url: str) -> VideoAnswer:
        answer, model = self._parts.view.answer(job, base_url), self._model(job)
        values = answer.input or {}
        length = seconds_field(model) if model else None
        seconds = values.get(length.name) if length else None
        prompt = values.get(PROMPT)
        expires = min((result.expires_at for result in answer.results if result.expires_at), default=None)
        is_completed = answer.status is Status.SUCCEEDED
        return VideoAnswer(
            id=answer.id,
            model=answer.model,
            status=_STATUSES.get(answer.status, "failed"),
            progress=round((answer.progress or 0.0) * 100),
            created_at=int(answer.created_at.timestamp()),
            completed_at=int(answer.ended_at.timestamp()) if is_completed and answer.ended_at else None,
            expires_at=int(expires.timestamp()) if expires else None,
            prompt=prompt if isinstance(prompt, str) else None,
            seconds=None if seconds is None else str(seconds),
            size=(size_of(model, values) if model else None) or "auto",
            error=_error(answer),
            price=answer.price,
            charged=answer.charged,
        )


def _validated(content: Any, *, strict: bool | None = None) -> VideoRequest:
    body = validated(VideoRequest, content, strict=strict)
    assert isinstance(body, VideoRequest)
    return body


def _set_parameters(model_input: ModelInput, body: VideoRequest, *, has_file: bool) -> Field | None:
    """Set the model's fields; return the one for the reference image, if the request has one. Raises Problem."""
    model_input.set_prompt(body.prompt, Output.VIDEO)
    model_input.set_size(body.size)
    model_input.set_seconds(body.seconds)
    model_input.set_own(body.model_extra or {})
    reference = body.input_reference
    image = model_input.image_field() if has_file or reference is not None else None
    if image is not None and reference is not None:
        given = [value for value in (reference.image_url, reference.file_id) if value]
        if len(given) == 1 and not has_file:
            model_input.set(REFERENCE, image, given if image.many else given[0])
        else:
            model_input.refuse(REFERENCE, "needs one of a file, image_url and file_id")
    elif image is not None:
        model_input.parameters[image.name] = REFERENCE
        if image.name in model_input.values:
            model_input.refuse(REFERENCE, f"cannot be combined with {image.name}")
    model_input.check()
    return image


def _form_content(form: Form) -> dict[str, Any]:
    """Return a form as JSON would be: `a[b]` is a member of the object `a`, `a[]` an item of a list."""
    content: dict[str, Any] = dict(form.lists)
    for name, text in form.texts.items():
        outer, bracket, inner = name.partition("[")
        if not bracket:
            content[name] = text
            continue
        members = content.setdefault(outer, {})
        if not inner.endswith("]") or not isinstance(members, dict):
            raise invalid([Fault(pointer=f"/{name}", detail="is not a name that this form can have")])
        members[inner[:-1]] = text
    return content


def _error(answer: JobAnswer) -> VideoError | None:
    if answer.error is not None:
        return VideoError(code=answer.error.code, message=f"{answer.error.message} Nothing was charged.")
    if answer.status is Status.CANCELED:
        return VideoError(code="canceled", message="The order was cancelled. Nothing was charged.")
    return None
