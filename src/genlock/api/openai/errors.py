"""Problems in OpenAI's shape, with the statuses and codes by which its clients choose the exception to raise."""

from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from genlock.api.problems import Problem

#: the words of OpenAI for problems that it knows
_CODES = {
    "no_credits": "insufficient_quota",
    "spend_limit": "insufficient_quota",
    "model_unavailable": "model_not_found",
    "moderation": "moderation_blocked",
    "too_many_requests": "rate_limit_exceeded",
    "unauthorized": "invalid_api_key",
}
#: a client that repeats these by itself may succeed
_REPEATABLE = frozenset({408, 503})
_BAD_REQUEST, _PAYMENT_REQUIRED, _UNPROCESSABLE, _TOO_MANY, _SERVER_ERROR = 400, 402, 422, 429, 500


def openai_response(problem: Problem) -> Response:
    status = {_PAYMENT_REQUIRED: _TOO_MANY, _UNPROCESSABLE: _BAD_REQUEST}.get(problem.status, problem.status)
    is_repeatable = problem.status in _REPEATABLE or problem.status == _TOO_MANY
    content = {
        "message": _message(problem),
        "type": _type(problem.status),
        "param": _parameter(problem),
        "code": _CODES.get(problem.code, problem.code),
        "charged": False,
        **problem.members,
    }
    headers = {**problem.headers, "x-should-retry": "true" if is_repeatable else "false"}
    return JSONResponse({"error": content}, status, headers=headers)


def rename_fields(problem: Problem, parameters: dict[str, str]) -> Problem:
    """Return a problem that names the parameters of the request in place of the model's fields that they set."""
    errors: list[dict[str, Any]] = problem.members.get("errors", [])
    renamed = [{**error, "pointer": _renamed(str(error["pointer"]), parameters)} for error in errors]
    return replace(problem, members={**problem.members, "errors": renamed}) if renamed else problem


def _renamed(pointer: str, parameters: dict[str, str]) -> str:
    name = pointer.removeprefix("/input/")
    return pointer if name == pointer else f"/{parameters.get(name, name)}"


def _message(problem: Problem) -> str:
    errors = problem.members.get("errors", [])
    return "; ".join(f"{error['pointer'].lstrip('/?')}: {error['detail']}" for error in errors)[:1000] or problem.detail


def _type(status: int) -> str:
    match status:
        case 402:
            return "insufficient_quota"
        case 429:
            return "rate_limit_error"
        case _:
            return "invalid_request_error" if status < _SERVER_ERROR else "server_error"


def _parameter(problem: Problem) -> str | None:
    if problem.code == "model_unavailable":
        return "model"
    errors = problem.members.get("errors")
    return str(errors[0]["pointer"]).lstrip("/?") if errors else None
