"""What the API answers. Members that this version does not know are left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

FINAL = frozenset({"succeeded", "failed", "canceled", "expired"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    index: int
    kind: str  #: image, video, audio, text or file
    content_type: str
    bytes: int
    sha256: str | None
    url: str  #: needs the key
    link: str  #: works without a key for an hour
    expires_at: datetime | None
    text: str | None  #: the text itself, where the result is one

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Result":
        return cls(
            index=data["index"],
            kind=data["kind"],
            content_type=data["content_type"],
            bytes=data["bytes"],
            sha256=data.get("sha256"),
            url=data["url"],
            link=data["link"],
            expires_at=_time(data.get("expires_at")),
            text=data.get("text"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class JobError:
    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    id: str
    status: str  #: queued, running, succeeded, failed, canceled or expired
    model: str
    price: float  #: in credits
    charged: bool  #: whether the price was taken: only for a result that is there
    late: bool  #: a result that came after the end, free of charge
    progress: float | None  #: the share of the expected time that has passed, 0 to 1
    expected_seconds: float | None
    results: tuple[Result, ...]
    error: JobError | None
    metadata: Mapping[str, str]
    input: Mapping[str, Any] | None
    created_at: datetime | None
    ended_at: datetime | None
    replayed: bool = False  #: whether the order was there before this request

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def is_delivered(self) -> bool:
        return self.status == "succeeded"

    @classmethod
    def parse(cls, data: Mapping[str, Any], *, replayed: bool = False) -> "Job":
        error = data.get("error")
        return cls(
            id=data["id"],
            status=data["status"],
            model=data["model"],
            price=data["price"],
            charged=data["charged"],
            late=data.get("late", False),
            progress=data.get("progress"),
            expected_seconds=data.get("expected_seconds"),
            results=tuple(Result.parse(result) for result in data.get("results", ())),
            error=JobError(code=error["code"], message=error["message"]) if error else None,
            metadata=data.get("metadata", {}),
            input=data.get("input"),
            created_at=_time(data.get("created_at")),
            ended_at=_time(data.get("ended_at")),
            replayed=replayed,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    id: str
    title: str
    vendor: str
    category: str
    outputs: tuple[str, ...]
    price_from: float
    expected_seconds: float
    deadline_seconds: float
    input_schema: Mapping[str, Any]

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Model":
        return cls(**{name: data[name] for name in cls.__slots__ if name != "outputs"}, outputs=tuple(data["outputs"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    model: str
    price: float
    available: float
    sufficient: bool  #: whether the balance covers the price
    expected_seconds: float
    assumed_seconds: float | None  #: the length that the price assumes for a file that was not measured

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Quote":
        return cls(**{name: data[name] for name in cls.__slots__})


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    available: float
    held: float  #: reserved for orders that have not ended
    debt: float
    spend_limit: float | None  #: what this key may spend per day (UTC)
    spent_today: float

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Balance":
        return cls(**{name: data[name] for name in cls.__slots__})


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    id: str  #: use it in the input of an order in place of an address
    kind: str
    content_type: str
    bytes: int
    seconds: float | None
    expires_at: datetime | None

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "File":
        return cls(
            id=data["id"],
            kind=data["kind"],
            content_type=data["content_type"],
            bytes=data["bytes"],
            seconds=data.get("seconds"),
            expires_at=_time(data.get("expires_at")),
        )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
