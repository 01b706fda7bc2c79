"""Reads queries and JSON bodies of requests, within limits, and names every wrong value."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request

from genlock.api.problems import Fault, Problem, bad_request, invalid
from genlock.web.requests import BodyMemory, IncomingBody, RequestRefused

JSON_BYTES_MAX = 250_000
#: in a JSON body, as its commas and brackets say; reading a value takes microseconds, during which nothing else runs
VALUES_MAX = 20_000
PARAMETERS_MAX = 50
#: a JSON body takes a permit of its key for each of these, besides that of its request
BYTES_PER_PERMIT = 20_000
#: of a refused body: all of it up to the largest file, or only its beginning
DISCARDED_BYTES_MAX, DISCARDED_BEGINNING_BYTES = 25_000_000, 250_000
#: refused bodies that are read to the end at the same time: a hostile client with a key sends hundreds
DISCARDED_AT_ONCE = 16
FAULTS_MAX = 20
_POINTER = str.maketrans({"~": "~0", "/": "~1"})


class RefusedBodies:
    """Reads refused bodies to their end and drops them: a client that is still sending would not see the answer."""

    def __init__(self) -> None:
        self._at_once = 0

    async def discard(self, request: Request, *, is_known: bool) -> None:
        """Read the rest of a body; only the beginning if its sender is unknown, or many others are being read."""
        headers = request.headers
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            return
        reads_all = is_known and self._at_once < DISCARDED_AT_ONCE
        self._at_once += 1
        try:
            await _drop(request, *((DISCARDED_BYTES_MAX, 5.0) if reads_all else (DISCARDED_BEGINNING_BYTES, 2.0)))
        finally:
            self._at_once -= 1


async def _drop(request: Request, bytes_left: int, seconds: float) -> None:
    with suppress(ClientDisconnect, TimeoutError, RuntimeError):  # RuntimeError: all of it was read
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                bytes_left -= len(chunk)
                if bytes_left < 0:
                    return


async def read_json(
    request: Request, memory: BodyMemory, account_id: int, take_permits: Callable[[int], Awaitable[object]]
) -> Any:
    """Return the JSON body of a request of an account. Raises Problem.

    A large body takes further permits of its key before it is parsed, because that holds up all other requests.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Problem(
            status=415,
            code="unsupported_media_type",
            detail="send the body as JSON, with Content-Type: application/json",
        )
    with IncomingBody(request, memory, sender_name(account_id)) as incoming:
        incoming.authenticate()
        try:
            body = await incoming.read(JSON_BYTES_MAX)
        except RequestRefused as refused:
            raise refused_body(refused) from None
        if body is None:
            raise too_large(JSON_BYTES_MAX)
        if (permits := len(body) // BYTES_PER_PERMIT) > 0:
            await take_permits(permits)
        return parse_json(body)


def sender_name(account_id: int) -> str:
    """Return the name under which the connections and bodies of an account are counted."""
    return f"account {account_id}"


def refused_body(refused: RequestRefused) -> Problem:
    codes = {400: "incomplete_body", 408: "body_timeout", 413: "too_large", 503: "unavailable"}
    headers = {"Connection": "close", **({"Retry-After": "2"} if refused.status == 503 else {})}  # noqa: PLR2004
    return Problem(status=refused.status, code=codes[refused.status], detail=refused.reason, headers=headers)


def too_large(bytes_max: int) -> Problem:
    detail = f"the body has more than {bytes_max} bytes"
    return Problem(status=413, code="too_large", detail=detail, headers={"Connection": "close"})


def parse_json(body: bytes) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN, no half surrogate pairs. Raises Problem."""
    if sum(map(body.count, (b",", b"[", b"{"))) > VALUES_MAX:
        raise bad_request("invalid_json", f"the body has more than {VALUES_MAX} values")
    try:
        content = json.loads(body, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise bad_request("invalid_json", "the body contains half of a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise bad_request("invalid_json", f"the body is not valid JSON: {reason}") from None
    return content


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def validated(kind: type[BaseModel], content: Any, *, strict: bool | None = None) -> BaseModel:
    """Return a JSON body as its type; strictly, if the type says so and `strict` nothing else. Raises Problem."""
    try:
        return kind.model_validate(content, strict=strict)
    except ValidationError as error:
        raise invalid(_faults(error, "")) from None


def read_query(kind: type[BaseModel], query: QueryParams) -> BaseModel:
    """Return the query parameters as their type. Raises Problem."""
    given = Counter(name for name, _ in query.multi_items())
    if len(given) > PARAMETERS_MAX:
        raise invalid([Fault(pointer="?", detail=f"has more than {PARAMETERS_MAX} parameters")])
    repeated = sorted(name for name, times in given.items() if times > 1)
    if repeated:
        raise invalid([Fault(pointer=name[:100], detail="is given more than once") for name in repeated[:FAULTS_MAX]])
    try:
        return kind.model_validate(dict(query))
    except ValidationError as error:
        raise invalid(_faults(error, "?")) from None


def _faults(error: ValidationError, start: str) -> list[Fault]:
    found = []
    for details in error.errors(include_url=False, include_context=False, include_input=False)[:FAULTS_MAX]:
        path = [str(part)[:100].translate(_POINTER) for part in details["loc"] if part != "[key]"]
        pointer = start + "/".join(path) if start else "/" + "/".join(path)
        found.append(Fault(pointer=pointer if path else "body", detail=details["msg"].removeprefix("Value error, ")))
    return found


def hash_request(method: str, path: str, content: Any) -> str:
    """Return a hash by which a repeated request is told from another one: the order of keys does not matter."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{method} {path}\n{canonical}".encode()).hexdigest()[:32]
