"""Requests and answers in OpenAI's shape. `price`, `charged` and `job` are ours."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from genlock.api.types import Answer, Credits, Metadata, PageQuery

_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
_Word = Annotated[_Text, Field(max_length=50)]
_Prompt = Annotated[_Text, Field(min_length=1, max_length=32_000)]
_ModelId = Annotated[_Text, Field(min_length=1, max_length=200, description="the id of a model of `GET /v1/models`")]
_Size = Annotated[_Text, Field(max_length=20, description="`1536x1024`: the model's nearest size; `auto`: its default")]
_MaxPrice = Annotated[float, Field(ge=0, le=1e9, description="refuse the order if it costs more credits than this")]


class ModelFields(BaseModel):
    """Every other member must be a field of the model, as its `input_schema` says."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: _ModelId
    prompt: _Prompt
    size: _Size | None = None
    metadata: Metadata | None = None
    max_price: _MaxPrice | None = None


class ImageRequest(ModelFields):
    n: int | None = Field(default=None, ge=1, le=10, description="more than 1 only if the model can")
    quality: _Word | None = Field(default=None, description="a value of the model's field `quality`, or `auto`")
    background: _Word | None = Field(default=None, description="a value of the model's field `background`, or `auto`")
    output_format: _Word | None = Field(default=None, description="a value of the model's field `output_format`")
    style: _Word | None = Field(default=None, description="a value of the model's field `style`")
    response_format: Literal["url", "b64_json"] | None = Field(default=None, description="without it, both are given")
    stream: Literal[False] | None = None
    user: _Text | None = Field(default=None, max_length=500, description="kept in the job's metadata")
    safety_identifier: _Text | None = Field(default=None, max_length=500, description="kept in the job's metadata")


class Reference(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    image_url: _Text | None = Field(default=None, max_length=2048, description="an https address")
    file_id: _Text | None = Field(default=None, max_length=60, description="the id of a file of `POST /v1/files`")


class VideoRequest(ModelFields):
    seconds: _Word | int | None = Field(default=None, description="the length, one that the model makes")
    input_reference: Reference | None = Field(default=None, description="an image, for the model's first image field")


class ImageData(Answer):
    b64_json: str | None = None
    url: str | None = Field(default=None, description="works without a key for an hour")


class ImagesAnswer(Answer):
    created: int
    data: list[ImageData]
    price: Credits
    charged: Literal[True] = True
    job: str


class VideoError(Answer):
    code: str
    message: str


VideoStatus = Literal["queued", "in_progress", "completed", "failed"]


class VideoAnswer(Answer):
    id: str = Field(description="also the id of the job")
    object: Literal["video"] = "video"
    model: str
    status: VideoStatus
    progress: int = Field(ge=0, le=100)
    created_at: int
    completed_at: int | None
    expires_at: int | None
    prompt: str | None
    seconds: str | None
    size: str = Field(description="the size that was ordered from the model, or `auto`")
    remixed_from_video_id: None = None
    error: VideoError | None
    price: Credits
    charged: bool


class VideoList(Answer):
    object: Literal["list"] = "list"
    data: list[VideoAnswer]
    first_id: str | None
    last_id: str | None
    has_more: bool


class VideoPageQuery(PageQuery):
    after: str | None = Field(
        default=None, pattern=r"^job_[0-9A-Z]{1,20}$", max_length=30, description="`last_id` of the page before"
    )
    order: Literal["desc"] = Field(default="desc", description="newest first; there is no other order")


class ContentQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    variant: Literal["video"] = "video"


class ErrorContent(BaseModel):
    model_config = ConfigDict(extra="allow")

    message: str
    type: Literal["invalid_request_error", "insufficient_quota", "rate_limit_error", "server_error"]
    param: str | None
    code: str
    charged: Literal[False] = False
    price: float | None = None
    available: float | None = None
    job: str | None = None


class ErrorAnswer(BaseModel):
    """An error in OpenAI's shape."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorContent


FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "model": {"type": "string", "minLength": 1, "maxLength": 200},
        "prompt": {"type": "string", "minLength": 1, "maxLength": 32_000},
        "seconds": {"type": "string", "maxLength": 50},
        "size": {"type": "string", "maxLength": 20},
        "input_reference": {"type": "string", "format": "binary"},
    },
    "required": ["model", "prompt"],
    "additionalProperties": {"type": "string"},
}
