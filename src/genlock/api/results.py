"""`GET /v1/jobs/{id}/results/{n}`: the bytes of a result, whole or in ranges."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from genlock.api.download_slots import DownloadSlots
from genlock.api.job_view import TEXT_TYPE, results_of
from genlock.api.jobs import given_job
from genlock.api.operation import Answered, Call, Header, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import Problem, not_found, unauthorized
from genlock.api.stored_copies import read_whole
from genlock.domain.api_key import ApiScope
from genlock.domain.delivery import Part
from genlock.domain.errors import MediaNotFound
from genlock.domain.job import Job
from genlock.domain.result import PartKind
from genlock.domain.stored_file import StoredFile
from genlock.media.sniff import media_type_of
from genlock.web.byte_ranges import ByteRange, RangeNotSatisfiable, read_range

_INDEX = re.compile(r"\d{1,2}")
#: a result is content from outside: a browser must not run it as a page of this address
_SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


class ResultRoutes:
    def __init__(self, parts: ApiParts, slots: DownloadSlots) -> None:
        self._parts = parts
        self._slots = slots

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="get_result",
                method="GET",
                path="/v1/jobs/{job_id}/results/{index}",
                summary="Read the content of a result",
                description="With a key, or by the signed `link` of the result without one. Ranges are supported.",
                handle=self.get,
                scope=ApiScope.READ,
                signed=True,
                job_in_path="job_id",
                headers=(Header(name="Range", description="one range of bytes, such as `bytes=0-1023`"),),
                answers={
                    200: Answered(description="The content.", media_type="*/*"),
                    206: Answered(description="The range.", media_type="*/*"),
                    304: Answered(description="The copy named by If-None-Match is still right.", media_type=""),
                },
                problems=(404, 410, 416),
            )
        ]

    async def get(self, call: Call) -> Response:
        return await self.content(call.request, given_job(call), call.path("index"))

    async def get_by_link(self, request: Request) -> Response:
        """Serve a result by its signed link, without a key. Raises Problem."""
        parts, query = self._parts, request.query_params
        job_id = parts.view.job_id(str(request.path_params["job_id"]))
        index = str(request.path_params["index"])
        expires, signature = query.get("expires", ""), query.get("signature", "")
        if job_id is None or _INDEX.fullmatch(index) is None:
            raise not_found("there is no such result")
        if not parts.links.accepts(job_id, int(index), expires, signature):
            raise unauthorized("this link is wrong or has expired; read the job again for a new one")
        job = await parts.store.api_job(job_id)
        if job is None:
            raise not_found("there is no such result")
        return await self.content(request, job, index)

    async def content(self, request: Request, job: Job, index: str) -> Response:
        """Serve one result of a job. Raises Problem."""
        results = results_of(job)
        if job.erased and not results:
            raise Problem(status=410, code="gone", detail="the results of this job were erased at the user's request")
        if _INDEX.fullmatch(index) is None or int(index) >= len(results):
            raise not_found(f"there is no such result: the job has {len(results)}, numbered from 0")
        part = results[int(index)]
        if part.kind is PartKind.TEXT or part.file is None:
            return _text(request, part)
        return await self._file(request, StoredFile.parse(part.file), job.account_id)

    async def _file(self, request: Request, stored: StoredFile, account_id: int) -> Response:
        if (unchanged := _not_modified(request, stored)) is not None:
            return unchanged
        wanted = _range(request, stored.size, stored.sha256)
        with self._slots.take(account_id) as slot:
            if wanted.length == stored.size:
                chunks = read_whole(self._parts, stored)
            else:  # cannot be verified: there is one hash for all of the file
                chunks = self._parts.media.read(stored.key, wanted.start, wanted.length)
            try:
                first = await anext(chunks, b"")  # also for HEAD: it tells whether the copy is there
            except MediaNotFound:
                raise Problem(status=410, code="gone", detail="our copy of this result was deleted") from None
            headers = _headers(stored.content_type, stored.sha256) | wanted.headers
            return slot.answer(_chained(first, chunks), wanted.status, headers, stored.content_type)


def _text(request: Request, part: Part) -> Response:
    content = part.value.encode()
    wanted = _range(request, len(content), "")
    part_of_it = content[wanted.start : wanted.start + wanted.length]
    return Response(part_of_it, wanted.status, _headers(TEXT_TYPE, "") | wanted.headers, TEXT_TYPE)


def _headers(content_type: str, etag: str) -> dict[str, str]:
    inline = media_type_of(content_type) is not None or content_type == TEXT_TYPE
    return {
        **_SAFE,
        "Accept-Ranges": "bytes",
        "Content-Disposition": "inline" if inline else "attachment",
        "Cache-Control": "private, max-age=3600, immutable",
        **({"ETag": f'"{etag}"'} if etag else {}),
    }


def _not_modified(request: Request, stored: StoredFile) -> Response | None:
    """Return the answer to a client that has the file already, with the headers that it would have got."""
    known = request.headers.get("if-none-match", "")[:2000]
    if known.strip() == "*" or f'"{stored.sha256}"' in known:
        return Response(status_code=304, headers=_headers(stored.content_type, stored.sha256))
    return None


def _range(request: Request, size: int, etag: str) -> ByteRange:
    try:
        return read_range(request.headers, size, etag)
    except RangeNotSatisfiable as error:
        raise Problem(status=416, code="range_not_satisfiable", detail=str(error), headers=error.headers) from None


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        async for chunk in rest:
            yield chunk
