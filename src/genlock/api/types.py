"""What requests and answers look like. The OpenAPI document is made from these types."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from genlock.domain.webhook import DESCRIPTION_LENGTH_MAX, URL_LENGTH_MAX, WebhookEvent

METADATA_MAX = 16
LIST_MAX = 100

Credits = Annotated[float, Field(ge=0, description="in credits, exact to a thousandth")]
_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Metadata = Annotated[
    dict[Annotated[_Text, Field(max_length=40)], Annotated[_Text, Field(max_length=500)]],
    Field(max_length=METADATA_MAX, description="your own notes, returned with the job"),
]


class Status(StrEnum):
    """The state of a job. The last four are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELED, Status.EXPIRED})


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewOrder(RequestBody):
    model: str = Field(min_length=1, max_length=200, description="the id of a model of `GET /v1/models`")
    input: dict[str, Any] = Field(
        max_length=100,
        description="the values of the model's fields, as its `input_schema` says; "
        "a file is an https address, or the id of a file of `POST /v1/files`",
    )
    metadata: Metadata = {}
    max_price: float | None = Field(
        default=None,
        ge=0,
        le=1e9,
        description="refuse the order, with 409 `dearer`, if it costs more credits than this",
    )


class QuoteRequest(RequestBody):
    model: str = Field(min_length=1, max_length=200, description="the id of a model")
    input: dict[str, Any] = Field(max_length=100, description="the values of the model's fields")


class Result(Answer):
    index: int
    kind: Literal["image", "video", "audio", "text", "file"]
    content_type: str
    bytes: int
    sha256: str | None = Field(description="of the content, hexadecimal")
    url: str = Field(description="the address of the content; needs your key")
    link: str = Field(description="an address that works without a key for an hour, for browsers")
    expires_at: datetime | None = Field(description="when the copy is deleted")
    text: str | None = Field(default=None, description="the text itself, where the result is one")


class JobError(Answer):
    code: str
    message: str


class JobUrls(Answer):
    get: str
    cancel: str
    events: str


class JobAnswer(Answer):
    id: str
    object: Literal["job"] = "job"
    status: Status
    model: str
    input: dict[str, Any] | None = Field(description="null when it was erased")
    price: Credits
    charged: bool = Field(description="whether the price was taken from the balance: only for a result that is there")
    late: bool = Field(description="a result that came after the end of the job: free of charge")
    progress: float | None = Field(ge=0, le=1, description="the share of the expected time that has passed")
    expected_seconds: float | None
    results: list[Result]
    error: JobError | None
    metadata: dict[str, str]
    created_at: datetime
    ended_at: datetime | None
    urls: JobUrls


class JobList(Answer):
    data: list[JobAnswer]
    next_cursor: str | None = Field(description="the `cursor` of the next page; null on the last one")


class ModelAnswer(Answer):
    id: str
    object: Literal["model"] = "model"
    created: Literal[0] = Field(default=0, description="has no meaning here; OpenAI's clients expect it")
    owned_by: str = Field(description="the vendor, where OpenAI's clients look for it")
    title: str
    vendor: str
    category: str
    outputs: list[str]
    price_from: Credits = Field(description="the lowest price; `POST /v1/quote` has the price of your input")
    expected_seconds: float
    deadline_seconds: float
    input_schema: dict[str, Any] = Field(description="JSON Schema of the input")


class ModelList(Answer):
    object: Literal["list"] = "list"
    data: list[ModelAnswer]


class QuoteAnswer(Answer):
    model: str
    price: Credits
    charged: Literal[False] = False
    available: Credits
    sufficient: bool = Field(description="whether the balance covers the price")
    assumed_seconds: float | None = Field(
        description="the length that the price assumes for a file that was not sent to `POST /v1/files`"
    )
    expected_seconds: float


class BalanceAnswer(Answer):
    available: Credits
    held: Credits = Field(description="reserved for orders that have not ended")
    debt: Credits = Field(description="deducted from the next top-up")
    spend_limit: Credits | None = Field(description="what this key may spend per day (UTC); null: no limit")
    spent_today: Credits


class LedgerLine(Answer):
    at: datetime
    kind: str
    amount: Credits
    debit: str = Field(description="where the amount was taken from: available, held or house")
    credit: str = Field(description="where the amount went")
    job: str | None


class LedgerList(Answer):
    data: list[LedgerLine]
    next_cursor: str | None


class FileAnswer(Answer):
    id: str = Field(description="use it in the input of an order in place of an address")
    object: Literal["file"] = "file"
    kind: Literal["image", "video", "audio"]
    content_type: str
    bytes: int
    seconds: float | None = Field(description="how long it plays, as measured")
    created_at: datetime
    expires_at: datetime


class FaultAnswer(Answer):
    """One wrong value. `code` says what is wrong with an input, and the numbers which limit it breaks."""

    pointer: str
    detail: str
    code: str | None = None
    min: float | None = None
    max: float | None = None
    step: float | None = None
    given: float | None = None


class ProblemDocument(BaseModel):
    """An error (RFC 9457). Compare `code`; `detail` is for humans."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str
    charged: bool = Field(
        default=False, description="whether a price was taken: only if an order that has ended is to be cancelled"
    )
    errors: list[FaultAnswer] | None = None
    retry_after: int | None = None
    price: float | None = None
    available: float | None = None


class PageQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: int = Field(default=20, ge=1, le=LIST_MAX)


class JobPageQuery(PageQuery):
    cursor: str | None = Field(
        default=None, pattern=r"^job_[0-9A-Z]{1,20}$", max_length=30, description="`next_cursor` of the page before"
    )


class LedgerPageQuery(PageQuery):
    cursor: str | None = Field(
        default=None,
        pattern=r"^[0-8]?[0-9]{1,15}\.[0-9]{1,3}$",
        max_length=30,
        description="`next_cursor` of the page before",
    )


# webhooks

JobEvent = Literal["job.started", "job.succeeded", "job.failed", "job.canceled", "job.expired"]
_Url = Annotated[_Text, Field(min_length=10, max_length=URL_LENGTH_MAX, description="an https address of yours")]
_Events = Annotated[list[JobEvent], Field(max_length=10, description="which events are sent; empty: all")]
_Description = Annotated[_Text, Field(max_length=DESCRIPTION_LENGTH_MAX, description="your own note")]


class NewWebhookRequest(RequestBody):
    url: _Url
    events: _Events = []
    description: _Description = ""


class WebhookChange(RequestBody):
    url: _Url | None = None
    events: _Events | None = None
    description: _Description | None = None
    enabled: bool | None = None


class WebhookAnswer(Answer):
    id: str
    object: Literal["webhook"] = "webhook"
    url: str
    events: list[str]
    description: str
    enabled: bool
    disabled_reason: str = Field(description="why the endpoint was disabled; enable it when it works again")
    created_at: datetime


class WebhookWithSecret(WebhookAnswer):
    secret: str = Field(description="verifies the signatures; shown only now")


class WebhookList(Answer):
    data: list[WebhookAnswer]


class DeliveryAnswer(Answer):
    id: str = Field(description="the `webhook-id` header, the same for every attempt")
    event: WebhookEvent
    job: str | None
    created_at: datetime
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    next_attempt_at: datetime | None
    last_status: int | None
    last_error: str
    delivered_at: datetime | None


class DeliveryList(Answer):
    data: list[DeliveryAnswer]
    next_cursor: str | None


class DeliveryPageQuery(PageQuery):
    state: Literal["pending", "delivered", "failed"] | None = None
    cursor: str | None = Field(
        default=None, pattern=r"^msg_[0-9a-f]{1,64}$", max_length=80, description="`next_cursor` of the page before"
    )


class RedeliverRequest(RequestBody):
    since: AwareDatetime = Field(strict=False)
    until: AwareDatetime = Field(strict=False)
    failed_only: bool = Field(default=True, description="leave out what was delivered")


class RedeliverAnswer(Answer):
    count: int = Field(description="how many events are sent again, at most 10,000 at once")
