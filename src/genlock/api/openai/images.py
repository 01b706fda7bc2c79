"""`POST /v1/images/generations`: an order whose answer has the images themselves."""

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import Literal

from starlette.responses import Response

from genlock.api.authentication import authenticate
from genlock.api.download_slots import DownloadSlots
from genlock.api.job_view import results_of, status_of
from genlock.api.models import offered_model
from genlock.api.openai.errors import openai_response, rename_fields
from genlock.api.openai.orders import KEY_DOC, OpenAIOrders
from genlock.api.openai.parameters import ModelInput
from genlock.api.openai.types import ErrorAnswer, ImageRequest, ImagesAnswer
from genlock.api.operation import Answered, Call, Operation
from genlock.api.order_acceptance import REPLAYED_HEADER, Accepted, ClientOrder
from genlock.api.parts import ApiParts
from genlock.api.problems import Problem, not_on_offer
from genlock.api.stored_copies import read_whole
from genlock.api.types import FINAL, JobAnswer, Status
from genlock.api.waiting import wait_until_final
from genlock.domain.api_key import ApiScope
from genlock.domain.catalog import Model, Output
from genlock.domain.errors import MediaNotFound
from genlock.domain.job import Job
from genlock.domain.stored_file import StoredFile

#: how long one request waits for its images at most
WAIT_SECONDS_MAX = 300.0
#: how long a client waits for an answer, as OpenAI's clients say
TIMEOUT_HEADER = "X-Stainless-Read-Timeout"
#: how long before the client gives up the answer leaves
ANSWER_SECONDS = 5.0
_SAME_NAMED = ("quality", "background", "output_format", "style")
_NOTED = ("user", "safety_identifier")
#: failures that the client can avoid by another input
_INPUT_FAILURES = frozenset({"moderation", "bad_input", "file_unreachable"})


class ImageRoutes:
    def __init__(self, parts: ApiParts, orders: OpenAIOrders, slots: DownloadSlots) -> None:
        self._parts = parts
        self._orders = orders
        self._slots = slots

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="create_images",
                method="POST",
                path="/v1/images/generations",
                summary="Order images and wait for them",
                description="In OpenAI's shape. If the images take longer than five minutes, the answer is 503 "
                "`still_running`; the same request again goes on waiting and orders nothing.",
                handle=self.create,
                scope=ApiScope.ORDER,
                tag="openai",
                body=ImageRequest,
                headers=(KEY_DOC,),
                answers={200: Answered(description="The images, charged.", kind=ImagesAnswer)},
                problems=(400, 404, 409, 410, 413, 415, 500),
                refuse=openai_response,
                refusal=ErrorAnswer,
                refusal_media_type="application/json",
            )
        ]

    async def create(self, call: Call) -> Response:
        body = call.body
        assert isinstance(body, ImageRequest)
        self._slots.check(call.account_id)  # before the order: its answer must find room
        model = find_model(self._parts, body.model)
        order_input = _input(model, body)
        order = ClientOrder(
            model=model.id,
            input=order_input.values,
            request_hash=call.request_hash,
            metadata=_metadata(body),
            max_price=body.max_price,
        )
        try:
            accepted = await self._orders.accept(call, order)
        except Problem as problem:
            raise rename_fields(problem, order_input.parameters) from None
        job, _ = await wait_until_final(call.request, self._parts.watch, accepted.job, _wait_seconds(call))
        await authenticate(call.request, self._parts.store)  # the key may have been revoked meanwhile
        answer = self._parts.view.answer(job, call.base_url)
        if status_of(job) is not Status.SUCCEEDED:
            raise not_delivered(answer)
        if not answer.results:
            raise Problem(status=410, code="gone", detail="the results of this job were erased at the user's request")
        return await self._images(job, answer, body.response_format, accepted)

    async def _images(
        self, job: Job, answer: JobAnswer, form: Literal["url", "b64_json"] | None, accepted: Accepted
    ) -> Response:
        """Return the answer as a stream: images in Base64 are not collected in memory."""
        headers = {REPLAYED_HEADER: "true"} if accepted.replayed else {}
        with self._slots.take(job.account_id) as slot:
            async with AsyncExitStack() as closing:
                contents: list[AsyncGenerator[bytes, None] | None] = []
                for part in results_of(job):
                    content = None
                    if form != "url" and part.file is not None:
                        stored = StoredFile.parse(part.file)
                        content = read_whole(self._parts, stored)
                        closing.push_async_callback(content.aclose)
                    contents.append(content)
                firsts = [await _first(content) for content in contents]
                links = [None if form == "b64_json" else result.link for result in answer.results]
                stream = _stream(answer, firsts, contents, links, closing.pop_all())
            return slot.answer(stream, 200, headers=headers, media_type="application/json")


def find_model(parts: ApiParts, model_id: str) -> Model:
    """Return a model on offer. Raises Problem 404."""
    model = offered_model(parts, model_id)
    if model is None:
        raise not_on_offer(model_id)
    return model


def not_delivered(answer: JobAnswer) -> Problem:
    """Return why there are no images."""
    members = {"job": answer.id, "price": answer.price}
    if answer.status not in FINAL:
        detail = f"the order {answer.id} goes on; send the same request again, or read {answer.urls.get}"
        headers = {"Retry-After": "1"}
        return Problem(status=503, code="still_running", detail=detail, members=members, headers=headers)
    if answer.error is None:
        detail = f"the order {answer.id} was cancelled; nothing was charged"
        return Problem(status=409, code="canceled", detail=detail, members=members)
    detail = f"{answer.error.message} Nothing was charged."
    status = 400 if answer.error.code in _INPUT_FAILURES else 500
    return Problem(status=status, code=answer.error.code, detail=detail, members=members)


def _input(model: Model, body: ImageRequest) -> ModelInput:
    found = ModelInput(model)
    found.set_prompt(body.prompt, Output.IMAGE)
    found.set_count(body.n)
    found.set_size(body.size)
    for name in _SAME_NAMED:
        found.set_same_named(name, getattr(body, name))
    found.set_own(body.model_extra or {})
    found.check()
    return found


def _metadata(body: ImageRequest) -> dict[str, str]:
    noted = {name: value for name in _NOTED if (value := getattr(body, name))}
    return {**noted, **(body.metadata or {})}


def _wait_seconds(call: Call) -> float:
    try:
        patience = float(call.request.headers.get(TIMEOUT_HEADER, "nan")[:20])
    except ValueError:
        patience = WAIT_SECONDS_MAX
    # not a number compares as false: then the longest wait applies
    return max(1.0, patience - ANSWER_SECONDS) if patience - ANSWER_SECONDS < WAIT_SECONDS_MAX else WAIT_SECONDS_MAX


async def _first(content: AsyncGenerator[bytes, None] | None) -> bytes:
    """Return the first piece of a copy, which tells whether it is there. Raises Problem 410."""
    if content is None:
        return b""
    try:
        return await anext(content, b"")
    except MediaNotFound:
        raise Problem(status=410, code="gone", detail="our copy of this result was deleted") from None


async def _stream(
    answer: JobAnswer,
    firsts: list[bytes],
    contents: list[AsyncGenerator[bytes, None] | None],
    links: list[str | None],
    closing: AsyncExitStack,
) -> AsyncGenerator[bytes, None]:
    async with closing:
        about = {
            "created": int(answer.created_at.timestamp()),
            "price": answer.price,
            "charged": answer.charged,
            "job": answer.id,
        }
        yield json.dumps(about).encode()[:-1] + b', "data": ['
        for number, (first, content, link) in enumerate(zip(firsts, contents, links, strict=True)):
            yield (b"," if number else b"") + b'{"url": ' + json.dumps(link).encode() + b', "b64_json": '
            if content is None:
                yield b"null}"
                continue
            yield b'"'
            async for piece in _base64(first, content):
                yield piece
            yield b'"}'
        yield b"]}"


async def _base64(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Encode pieces of any length: three bytes at a time, so that the pieces can be joined."""
    left = first
    async for piece in rest:
        whole = len(left) - len(left) % 3
        yield base64.b64encode(left[:whole])
        left = left[whole:] + piece
    yield base64.b64encode(left)
