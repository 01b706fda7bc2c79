"""The conversation with the API, without its input and output: both clients run the same steps.

A step is a request to send or a pause to make. The client answers a request with what came back.
"""

import json
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar
from urllib.parse import quote as escape

from genlock.client.errors import ConnectionLost, JobNotDelivered, api_error
from genlock.client.types import Balance, File, Job, Model, Quote

#: the longest wait that the service grants one request
WAIT_SECONDS_MAX = 60.0
#: how long an answer may take beyond the wait that was asked for
ANSWER_SECONDS = 30.0
FIRST_PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.5, 8.0
RETRY_AFTER_SECONDS_MAX = 120.0
#: the pause of a client whose wait was not granted, because too many wait already
NOT_GRANTED_SECONDS = 2.0
_REPEATED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_ERROR = 400

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Send:
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    #: seconds to wait for the answer
    patience: float = ANSWER_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError:
            return {"detail": self.content[:200].decode(errors="replace")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """The connection broke before the whole answer was there."""

    reason: str


Steps = Generator[Send | Pause, Received | Lost | None, Answer]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    #: how often a request is repeated after a lost answer, or one that says to try again
    retries: int = 4
    rng: Random = field(default_factory=Random)

    def order(
        self,
        model: str,
        values: Mapping[str, Any],
        *,
        key: str | None,
        metadata: Mapping[str, str] | None,
        max_price: float | None,
        wait: float,
    ) -> Steps[Job]:
        key = key or str(uuid.uuid4())
        body: dict[str, Any] = {"model": model, "input": dict(values), "metadata": dict(metadata or {})}
        if max_price is not None:
            body["max_price"] = max_price
        headers = {"Idempotency-Key": key, **_prefer(wait)}
        send = _with_json("POST", "/v1/jobs", body, headers, patience=min(wait, WAIT_SECONDS_MAX) + ANSWER_SECONDS)
        received = yield from self._exchange(send, key)
        return Job.parse(received.json(), replayed=received.headers.get("idempotent-replayed") == "true")

    def job(self, job_id: str, *, wait: float) -> Steps[Job]:
        path, wait = f"/v1/jobs/{escape(job_id, safe='')}", min(wait, WAIT_SECONDS_MAX)
        received = yield from self._exchange(
            Send(method="GET", path=path, headers=_prefer(wait), patience=wait + ANSWER_SECONDS)
        )
        job = Job.parse(received.json())
        if wait and not job.is_final and "preference-applied" not in received.headers:
            yield Pause(seconds=min(wait, NOT_GRANTED_SECONDS))
        return job

    def jobs(self, cursor: str | None, limit: int) -> Steps[tuple[list[Job], str | None]]:
        after = f"&cursor={escape(cursor, safe='')}" if cursor else ""
        page = yield from self._get(f"/v1/jobs?limit={limit}{after}")
        return [Job.parse(job) for job in page["data"]], page["next_cursor"]

    def cancel(self, job_id: str) -> Steps[Job]:
        send = Send(method="POST", path=f"/v1/jobs/{escape(job_id, safe='')}/cancel")
        return Job.parse((yield from self._exchange(send)).json())

    def upload(self, content: bytes) -> Steps[File]:
        headers = {"Content-Type": "application/octet-stream"}
        send = Send(method="POST", path="/v1/files", headers=headers, content=content, patience=150.0)
        return File.parse((yield from self._exchange(send)).json())

    def models(self) -> Steps[list[Model]]:
        return [Model.parse(model) for model in (yield from self._get("/v1/models"))["data"]]

    def model(self, model_id: str) -> Steps[Model]:
        return Model.parse((yield from self._get(f"/v1/models/{escape(model_id, safe='/')}")))

    def quote(self, model: str, values: Mapping[str, Any]) -> Steps[Quote]:
        send = _with_json("POST", "/v1/quote", {"model": model, "input": dict(values)}, {})
        return Quote.parse((yield from self._exchange(send)).json())

    def balance(self) -> Steps[Balance]:
        return Balance.parse((yield from self._get("/v1/balance")))

    def _get(self, path: str) -> Steps[Any]:
        return (yield from self._exchange(Send(method="GET", path=path))).json()

    def _exchange(self, send: Send, key: str | None = None) -> Steps[Received]:
        """Send a request until it is answered. Repeating it is safe: orders have a key, the others change nothing."""
        for attempt in range(self.retries + 1):
            received = yield send
            is_last = attempt == self.retries
            if isinstance(received, Lost):
                if is_last:
                    raise ConnectionLost(received.reason, key)
                yield Pause(seconds=self.pause(attempt))
                continue
            assert received is not None
            if received.status < _ERROR:
                return received
            pause = self.pause(attempt, received.headers.get("retry-after"))
            if is_last or received.status not in _REPEATED_STATUSES or pause > RETRY_AFTER_SECONDS_MAX:
                raise api_error(received.status, received.json(), key)
            yield Pause(seconds=pause)
        raise AssertionError("the last attempt has returned or raised")

    def pause(self, attempt: int, retry_after: str | None = None) -> float:
        """Return the seconds before the next attempt: as long as the service says, or longer from time to time."""
        if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
            return float(retry_after[:9]) + self.rng.uniform(0.0, FIRST_PAUSE_SECONDS)
        longest: float = min(FIRST_PAUSE_SECONDS * 2**attempt, PAUSE_SECONDS_MAX)
        return self.rng.uniform(longest / 2, longest)


def delivered(job: Job) -> Job:
    """Return a job that has its result. Raises JobNotDelivered."""
    if not job.is_delivered:
        raise JobNotDelivered(job)
    return job


def _prefer(wait: float) -> dict[str, str]:
    return {"Prefer": f"wait={min(int(wait), int(WAIT_SECONDS_MAX))}"} if wait >= 1 else {}


def _with_json(
    method: str, path: str, body: Any, headers: Mapping[str, str], *, patience: float = ANSWER_SECONDS
) -> Send:
    content = json.dumps(body, ensure_ascii=False).encode()
    return Send(
        method=method,
        path=path,
        headers={"Content-Type": "application/json", **headers},
        content=content,
        patience=patience,
    )


def id_of(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job
