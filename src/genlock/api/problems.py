"""Errors as problem documents (RFC 9457), each with a `code` that a program can compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from typing import Any

from starlette.responses import JSONResponse, Response

from genlock.domain.printable import escape_unprintable

MEDIA_TYPE = "application/problem+json"
#: every code, and what a client does about it
CODES: Mapping[str, str] = {
    "already_ended": "The job has already ended; `charged` says whether its price was taken.",
    "body_timeout": "The body took too long to arrive. Send it again.",
    "canceled": "The order was cancelled while the request waited for it. Nothing was charged.",
    "dearer": "The price is above `max_price`. Ask for a quote, and order again with the new price.",
    "forbidden": "The key lacks the scope, or the account is blocked. Ask the operator.",
    "gone": "The result was deleted, at the end of its storage time or at the user's request; `detail` says which.",
    "idempotency_key_invalid": "The key is not 1 to 255 visible ASCII characters.",
    "idempotency_key_missing": "Send `Idempotency-Key` with every order.",
    "idempotency_key_reused": "The key was used for another request. Use a new one for a new order.",
    "incomplete_body": "The connection ended before the body did. Send it again.",
    "invalid_form": "The multipart form is incomplete or does not follow RFC 7578.",
    "invalid_input": "The model does not take this input; `errors` names the field.",
    "invalid_json": "The body is not JSON.",
    "invalid_request": "A value is missing, wrong or unknown; `errors` names each.",
    "method_not_allowed": "`Allow` lists the methods of this address.",
    "model_unavailable": "The model is not on offer. `GET /v1/models` lists what is.",
    "no_credits": "The balance does not cover the price; nothing was held. Top up.",
    "not_found": "This account has no such thing.",
    "not_media": "The file is not an image, a video or audio in a known format.",
    "range_not_satisfiable": "The range is outside the content.",
    "spend_limit": "The key has reached its limit of the day. Wait for the next day (UTC), or use another key.",
    "still_running": "The order is in progress. Send the same request again to keep waiting; it orders nothing new.",
    "too_large": "The body is larger than allowed.",
    "too_many_cancels": "Too many orders were cancelled: this one goes on. Wait as long as `Retry-After` says.",
    "too_many_deliveries": "Wait as long as `Retry-After` says.",
    "too_many_downloads": "Wait until some of the account's downloads have ended.",
    "too_many_files": "Wait as long as `Retry-After` says.",
    "too_many_orders": "Wait as long as `Retry-After` says.",
    "too_many_requests": "Wait as long as `Retry-After` says.",
    "too_many_running": "Wait until one of the account's jobs has ended.",
    "too_many_connections": "Wait for the answers to earlier requests before you send more.",
    "too_many_streams": "Close an event stream before you open another.",
    "too_many_webhooks": "Delete an endpoint before you add another.",
    "unauthorized": "The key is missing, unknown or revoked, or the link has expired.",
    "unavailable": "Nothing was done. Repeat the request after `Retry-After` seconds, with the same idempotency key.",
    "unsupported_media_type": "Send JSON with `Content-Type: application/json`.",
}
#: characters of an unknown model name that the refusal repeats
_NAME_LENGTH_MAX = 100
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = "unauthorized", "forbidden", "not_found"


@dataclass(kw_only=True)
class Problem(Exception):
    """The request is answered with this problem. Nothing was charged for it, unless `members` say `charged`."""

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
    #: what is wrong with it, for programs that say it in words of their own: `length`, `range`, `missing` …
    code: str = ""
    #: the limits that it breaks: `min`, `max`, `step`, and what was `given`
    limits: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        code = {"code": self.code} if self.code else {}
        return {"pointer": self.pointer, "detail": self.detail, **code, **self.limits}


def unauthorized(detail: str) -> Problem:
    headers = {"WWW-Authenticate": 'Bearer realm="genlock"'}
    return Problem(status=401, code=UNAUTHORIZED, detail=detail, headers=headers)


def forbidden(detail: str) -> Problem:
    return Problem(status=403, code=FORBIDDEN, detail=detail)


def not_found(detail: str) -> Problem:
    return Problem(status=404, code=NOT_FOUND, detail=detail)


def not_on_offer(model_id: str) -> Problem:
    """Return the refusal of a model that a client named. The name is shown, because most often it is mistyped."""
    shown = escape_unprintable(model_id[:_NAME_LENGTH_MAX]) + ("…" if len(model_id) > _NAME_LENGTH_MAX else "")
    detail = f'the model "{shown}" is not on offer; GET /v1/models lists what is'
    return Problem(status=404, code="model_unavailable", detail=detail)


def bad_request(code: str, detail: str, **members: Any) -> Problem:
    return Problem(status=400, code=code, detail=detail, members=members)


def conflict(code: str, detail: str, **members: Any) -> Problem:
    return Problem(status=409, code=code, detail=detail, members=members)


def invalid(faults: Sequence[Fault], code: str = "invalid_request") -> Problem:
    """Name every wrong value of a request."""
    detail = "; ".join(f"{fault.pointer}: {fault.detail}" for fault in faults)[:1000]
    return Problem(status=422, code=code, detail=detail, members={"errors": [fault.as_json() for fault in faults]})


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
