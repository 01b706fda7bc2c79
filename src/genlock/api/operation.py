"""An operation of the API: everything that its route and its part of the OpenAPI document are made from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from genlock.api.problems import MEDIA_TYPE, Problem
from genlock.api.types import ProblemDocument
from genlock.domain.api_key import ApiKey, ApiScope
from genlock.domain.job import Job
from genlock.ports import OrderState

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request that was authenticated and whose query and body are valid."""

    request: Request
    key: ApiKey
    #: when the request came, by the clock of the event loop
    received_at: float
    #: our address as the client sees it, without a slash at the end
    base_url: str
    query: Any = None
    body: Any = None
    #: the hash of method, path and body
    request_hash: str = ""
    #: the account's job that the path names, if the operation has it read with the key
    job: Job | None = None
    #: what the decision about an order needs, if the operation has it read with the key
    order_state: OrderState | None = None

    @property
    def account_id(self) -> int:
        return self.key.account_id

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])


@dataclass(frozen=True, kw_only=True)
class Header:
    """A request header that an operation takes."""

    name: str
    description: str
    required: bool = False
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A successful answer: JSON of a type, or another media type."""

    description: str
    kind: type[BaseModel] | None = None
    media_type: str = "application/json"


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    #: the operationId, which client generators use as a name
    name: str
    method: str
    path: str
    summary: str
    handle: Handler
    #: the scope that the key needs
    scope: ApiScope
    description: str = ""
    tag: str = "jobs"
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    headers: Sequence[Header] = ()
    answers: Mapping[int, Answered] = field(default_factory=dict)
    #: the statuses of problems, besides those that every operation may have
    problems: Sequence[int] = ()
    #: bodies that the handler reads itself: a JSON Schema or a type for each media type
    raw_bodies: Mapping[str, Mapping[str, Any] | type[BaseModel]] = field(default_factory=dict)
    #: the path parameter with the id of a job that is read in the same statement as the key
    job_in_path: str | None = None
    #: whether it orders under an idempotency key, whose state is read in the same statement as the key
    is_order: bool = False
    #: whether a signed link opens it without a key
    signed: bool = False
    #: makes the answer to a request that is refused
    refuse: Callable[[Problem], Response] = Problem.response
    #: the type of that answer
    refusal: type[BaseModel] = ProblemDocument
    refusal_media_type: str = MEDIA_TYPE
