"""Errors as problem documents (RFC 9457), each with a `code` that a program can compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from typing import Any

from starlette.responses import JSONResponse, Response

MEDIA_TYPE = "application/problem+json"
#: codes by status, for problems that need no other word
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = "unauthorized", "forbidden", "not_found"


@dataclass(kw_only=True)
class Problem(Exception):
    """The request is answered with this problem. Nothing was charged for it."""

    status: int
    code: str
    detail: str
    #: further members of the document
    members: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "type": f"/v1/docs#problem-{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "charged": False,
            **self.members,
        }

    def response(self) -> Response:
        return JSONResponse(self.document(), self.status, headers=dict(self.headers), media_type=MEDIA_TYPE)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One wrong value: where it is (a JSON pointer, or the name of a header or query parameter), and why."""

    pointer: str
    detail: str


def unauthorized(detail: str) -> Problem:
    headers = {"WWW-Authenticate": 'Bearer realm="genlock"'}
    return Problem(status=401, code=UNAUTHORIZED, detail=detail, headers=headers)


def forbidden(detail: str) -> Problem:
    return Problem(status=403, code=FORBIDDEN, detail=detail)


def not_found(detail: str) -> Problem:
    return Problem(status=404, code=NOT_FOUND, detail=detail)


def bad_request(code: str, detail: str, **members: Any) -> Problem:
    return Problem(status=400, code=code, detail=detail, members=members)


def conflict(code: str, detail: str, **members: Any) -> Problem:
    return Problem(status=409, code=code, detail=detail, members=members)


def invalid(faults: Sequence[Fault], code: str = "invalid_request") -> Problem:
    """Name every wrong value of a request."""
    detail = "; ".join(f"{one.pointer}: {one.detail}" for one in faults)[:1000]
    errors = [{"pointer": one.pointer, "detail": one.detail} for one in faults]
    return Problem(status=422, code=code, detail=detail, members={"errors": errors})


def too_many(code: str, detail: str, after: float, **members: Any) -> Problem:
    seconds = max(1, ceil(after))
    headers = {"Retry-After": str(seconds)}
    return Problem(status=429, code=code, detail=detail, members={"retry_after": seconds, **members}, headers=headers)


def unavailable(detail: str, after: int = 2) -> Problem:
    return Problem(
        status=503,
        code="unavailable",
        detail=detail,
        members={"retry_after": after},
        headers={"Retry-After": str(after)},
    )
