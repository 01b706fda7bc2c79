"""Files that clients send for their orders: `POST /v1/files`, and their ids in the inputs of orders."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from tempfile import TemporaryFile
from typing import IO, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from genlock.api.operation import Answered, Call, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, Problem, bad_request, invalid, too_many, unavailable
from genlock.api.reading import too_large
from genlock.api.task_inputs import has_jobs, with_tasks
from genlock.api.types import FileAnswer
from genlock.channels.api.channel import hash_file
from genlock.domain.api_key import ApiScope
from genlock.domain.catalog import Model
from genlock.domain.errors import MediaNotFound, ProviderError
from genlock.domain.field import FILES, Field
from genlock.domain.stored_file import StoredFile, make_key
from genlock.domain.upload import Upload
from genlock.media.budget import TooComplex
from genlock.media.content_types import content_type_of
from genlock.media.download import HEAD_BYTES
from genlock.media.sniff import Format, MediaType, NotMedia, recognise

ID_PREFIX = "file_"
ID_LENGTH_MAX = 60
#: as in the chat
BYTES_MAX = 20_000_000
SECONDS_MAX = 120.0
CHUNK = 65_536
WRITE_BYTES = 1_000_000
FOLDER = "genlock"
#: upload again after this time: the provider keeps files for three days
RENEW_SECONDS = 2 * 86_400
HOUR = 3600.0
DAY = 86_400.0
MEGABYTE = 1_000_000
#: files that this instance receives at the same time, all and of one account
FILES_AT_ONCE = 8
FILES_PER_ACCOUNT = 2


class FileRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        #: files that are being received, by account
        self._receiving: Counter[int] = Counter()

    def operations(self) -> list[Operation]:
        return [
            Operation(
                name="create_file",
                method="POST",
                path="/v1/files",
                summary="Send a file for an order",
                description=f"The body is the file itself: an image, a video or a sound, up to {BYTES_MAX:,} bytes. "
                "Its type is found from its content.",
                handle=self.create,
                scope=ApiScope.ORDER,
                tag="files",
                raw_body="application/octet-stream",
                answers={201: Answered(description="The file is stored.", kind=FileAnswer)},
                problems=(400, 408, 413, 422),
            )
        ]

    async def create(self, call: Call) -> Response:
        await self._check_quota(call)
        with self._slot(call.account_id), TemporaryFile() as file:
            size = await _receive(call.request, file)
            answer = await self._store(call, file, size)
        return Response(answer.model_dump_json(), 201, media_type="application/json")

    @contextmanager
    def _slot(self, account_id: int) -> Iterator[None]:
        """Hold room for a file. One slow account leaves room for the others. Raises Problem."""
        if self._receiving[account_id] >= FILES_PER_ACCOUNT:
            raise too_many("too_many_files", f"send {FILES_PER_ACCOUNT} files at a time", 1.0)
        if self._receiving.total() >= FILES_AT_ONCE:
            raise unavailable("this instance receives many files at the moment")
        self._receiving[account_id] += 1
        try:
            yield
        finally:
            self._receiving[account_id] -= 1
            self._receiving += Counter()  # drops accounts without a file

    async def _check_quota(self, call: Call) -> None:
        per_hour = self._parts.rules.uploads_per_hour
        pause = HOUR / per_hour
        key = f"upload:{call.account_id}"  # the same permits as in the chat
        [wait] = await self._parts.store.take_permits([key], pause, 1, -(per_hour - 1) * pause)
        if wait > 0:
            raise too_many("too_many_files", f"an account may send {per_hour} files per hour", wait)

    async def _check_bytes(self, account_id: int, size: int) -> None:
        """Count the file's megabytes: copies are kept for weeks, and must not fill the disk of the operator."""
        per_day = self._parts.rules.upload_megabytes_per_day
        wanted, pause = ceil(size / MEGABYTE), DAY / per_day
        # Taken ahead of time, up to a day's permits: a limit that lies in the past may be pruned.
        taken = await self._parts.store.reserve_permits(
            f"upload-mb:{account_id}", wanted, pause, 1, (per_day - 1) * pause
        )
        if len(taken) < wanted:
            wait = (wanted - len(taken)) * pause
            raise too_many("too_many_files", f"an account may send {per_day} megabytes of files per day", wait)

    async def _store(self, call: Call, file: IO[bytes], size: int) -> FileAnswer:
        parts = self._parts
        found, kind = _recognise(file)
        await self._check_bytes(call.account_id, size)
        seconds = await self._measure(file) if kind is not MediaType.IMAGE else None
        name, now = secrets.token_hex(12), parts.now()
        stored = StoredFile(
            key=make_key(now, call.account_id, f"{name}{found.suffix}"),
            content_type=content_type_of(found),
            size=size,
            sha256=await asyncio.to_thread(hash_file, file),
        )
        await parts.media.put(stored, file)
        url = await _to_provider(parts, _read(file), f"{name}{found.suffix}")
        file_id = f"{ID_PREFIX}{secrets.token_urlsafe(18)}"
        await parts.store.add_upload(
            Upload(
                address=file_id,
                account_id=call.account_id,
                file=f"{url} {stored}",
                kind=kind.value,
                seconds=seconds,
                age_seconds=0.0,
            )
        )
        return FileAnswer(
            id=file_id,
            kind=kind.value,
            content_type=stored.content_type,
            bytes=size,
            seconds=seconds,
            created_at=now,
            expires_at=stored.expires_at(parts.rules.keep_media_days),
        )

    async def _measure(self, file: IO[bytes]) -> float | None:
        try:
            return await self._parts.reader.measure(file)
        except TooComplex:
            raise _not_usable("cannot be read: it has too many parts") from None


class FileInputs:
    """Replaces ids of files in an order's input by addresses that the provider can read."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts

    async def resolve(
        self, account_id: int, model_id: str, values: Mapping[str, Any], request_key: str | None
    ) -> tuple[Mapping[str, Any], dict[str, float]]:
        """Return the values with addresses, and the measured lengths of the files by address. Raises Problem.

        With a request key that was used before, nothing is looked up: the order exists.
        """
        model = self._parts.catalog.get().models.get(model_id)
        if model is None or not (has_jobs(model, values) or any(_ids(one, values) for one in model.fields)):
            return values, {}
        store = self._parts.store
        if request_key is not None and await store.job_by_request_key(account_id, request_key) is not None:
            return values, {}
        resolved, seconds = await with_tasks(self._parts, account_id, model, values), {}
        for one in model.fields:
            for file_id in _ids(one, values):
                url, length = await self._address(account_id, one, file_id)
                resolved[one.name] = _replaced(resolved[one.name], file_id, url)
                if length is not None:
                    seconds[url] = length
                if request_key is not None:
                    await store.mark_upload_used(file_id)
        _check_lengths(model, resolved, seconds)
        return resolved, seconds

    async def _address(self, account_id: int, one: Field, file_id: str) -> tuple[str, float | None]:
        upload = await self._parts.store.upload(file_id) if len(file_id) <= ID_LENGTH_MAX else None
        if upload is None or upload.account_id != account_id:
            raise _wrong_input(one, f"there is no file {file_id[:ID_LENGTH_MAX]} in this account, or not any more")
        if upload.kind != one.type.value:
            raise _wrong_input(one, f"must be of type {one.type.value}, and {file_id} is of type {upload.kind}")
        url, _, reference = upload.file.partition(" ")
        if upload.age_seconds > RENEW_SECONDS:
            url = await self._renew(upload, StoredFile.parse(reference), one)
        return url, upload.seconds

    async def _renew(self, upload: Upload, stored: StoredFile, one: Field) -> str:
        """Upload a file to the provider again, from our copy."""
        content = self._parts.media.read(stored.key, 0, stored.size)
        try:
            url = await _to_provider(self._parts, content, stored.key.rpartition("/")[2])
        except MediaNotFound:
            raise _wrong_input(one, f"the file {upload.address} has expired; send it again") from None
        finally:
            await content.aclose()
        await self._parts.store.add_upload(replace(upload, file=f"{url} {stored}"))
        return url


async def _receive(request: Request, file: IO[bytes]) -> int:
    """Write the body to disk. Raises Problem."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > BYTES_MAX:
        raise too_large(BYTES_MAX)
    size, pending, waiting = 0, [], 0
    try:
        async with asyncio.timeout(SECONDS_MAX):
            async for chunk in request.stream():
                size, waiting = size + len(chunk), waiting + len(chunk)
                if size > BYTES_MAX:
                    raise too_large(BYTES_MAX)
                pending.append(chunk)
                if waiting >= WRITE_BYTES:
                    await asyncio.to_thread(file.writelines, pending)
                    pending, waiting = [], 0
    except TimeoutError:
        close = {"Connection": "close"}
        raise Problem(status=408, code="body_timeout", detail="the file took too long", headers=close) from None
    except ClientDisconnect:
        raise bad_request("incomplete_body", "the body is incomplete") from None
    await asyncio.to_thread(file.writelines, pending)
    file.seek(0)
    return size


def _recognise(file: IO[bytes]) -> tuple[Format, MediaType]:
    file.seek(0)
    try:
        found = recognise(file.read(HEAD_BYTES))
    except NotMedia as error:
        raise _not_usable(str(error)) from None
    if not found.media:
        raise _not_usable("it is not an image, a video or a sound in a known format")
    return found, found.media[0]


def _not_usable(detail: str) -> Problem:
    return invalid([Fault(pointer="body", detail=detail)], "not_media")


def _wrong_input(one: Field, detail: str) -> Problem:
    return invalid([Fault(pointer=f"/input/{one.name}", detail=detail)], "invalid_input")


async def _to_provider(parts: ApiParts, content: AsyncIterator[bytes], name: str) -> str:
    try:
        return await parts.upload(content, name, FOLDER)
    except ProviderError:
        raise unavailable("the provider does not take files at the moment") from None


async def _read(file: IO[bytes]) -> AsyncIterator[bytes]:
    file.seek(0)
    while chunk := await asyncio.to_thread(file.read, CHUNK):
        yield chunk


def _ids(one: Field, values: Mapping[str, Any]) -> list[str]:
    if one.type not in FILES:
        return []
    value = values.get(one.name)
    given = value[: (one.max_count or 1) + 1] if isinstance(value, list) else [value]
    return [item for item in given if isinstance(item, str) and item.startswith(ID_PREFIX)]


def _replaced(value: Any, file_id: str, url: str) -> Any:
    return [url if item == file_id else item for item in value] if isinstance(value, list) else url


def _check_lengths(model: Model, values: Mapping[str, Any], seconds: Mapping[str, float]) -> None:
    """Raise Problem if a file plays longer than the model allows."""
    for one in model.fields:
        if one.type not in FILES or one.max_seconds is None:
            continue
        value = values.get(one.name)
        for url in value if isinstance(value, list) else [value]:
            length = seconds.get(url) if isinstance(url, str) else None
            if length is not None and length > one.max_seconds + 1:
                raise _wrong_input(one, f"plays {length:g} seconds; at most {one.max_seconds:g} are allowed")
