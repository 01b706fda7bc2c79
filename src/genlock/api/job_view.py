"""A job as API clients see it."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from genlock.api.result_links import ResultLinks
from genlock.api.types import JobAnswer, JobError, JobUrls, Result, Status
from genlock.channels.api.address import ApiAddress
from genlock.channels.api.channel import NAME as CHANNEL
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.delivery import Part, Step
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import THOUSANDTHS, HoldState
from genlock.domain.public_number import PublicNumbers
from genlock.domain.result import PartKind
from genlock.domain.stored_file import StoredFile
from genlock.i18n.translator import Translator
from genlock.media.sniff import media_type_of

ID_PREFIX = "job_"
ID_LENGTH_MAX = 30
TEXT_TYPE = "text/plain;charset=utf-8"
PROGRESS_MAX = 0.95
_ENDS = {
    State.FAILED: Status.FAILED,
    State.CANCELLED: Status.CANCELED,
    State.EXPIRED: Status.EXPIRED,
}


def status_of(job: Job) -> Status:
    """Return the public state. A job has succeeded only when its result is there and settled."""
    if job.state in _ENDS:
        return _ENDS[job.state]
    if job.state is State.SUCCEEDED:
        if job.delivery is Delivery.DELIVERED:
            return Status.SUCCEEDED
        return Status.FAILED if job.delivery in (Delivery.UNDELIVERABLE, Delivery.UNKNOWN) else Status.RUNNING
    return Status.RUNNING if job.state is State.RUNNING else Status.QUEUED


def results_of(job: Job) -> list[Part]:
    """Return the parts that are there for the client. Nothing is given before the delivery is settled."""
    if job.delivery is not Delivery.DELIVERED or not job.has_result or job.channel != CHANNEL:
        return []
    return [part for part in job.parts if part.kind is not PartKind.MESSAGE and part.step is Step.DONE]


@dataclass(frozen=True, kw_only=True)
class JobView:
    numbers: PublicNumbers
    catalog: CurrentCatalog
    texts: Translator
    links: ResultLinks
    keep_days: int

    def id_of(self, job_id: int) -> str:
        return f"{ID_PREFIX}{_public_number(self.numbers, job_id)}"

    def job_id(self, text: str) -> int | None:
        """Return the id of a job from its public id; None if it is none."""
        number = text.removeprefix(ID_PREFIX)
        if number == text or len(text) > ID_LENGTH_MAX:
            return None
        job_id = _job_id(self.numbers, number)
        return job_id if job_id is not None and _public_number(self.numbers, job_id) == number else None

    def answer(self, job: Job, base_url: str) -> JobAnswer:
        job_id, status = self.id_of(job.id), status_of(job)
        url = f"{base_url}/v1/jobs/{job_id}"
        model = self.catalog.get().models.get(job.model)
        expected = model.expected_seconds if model else None
        return JobAnswer(
            id=job_id,
            status=status,
            model=job.model,
            input=_input(job),
            price=job.price / THOUSANDTHS,
            charged=job.hold_state is HoldState.CAPTURED,
            late=job.late,
            progress=_progress(job, status, expected),
            expected_seconds=expected,
            results=[self._result(job, part, index, url) for index, part in enumerate(results_of(job))],
            error=self._error(job, status),
            metadata=_metadata(job),
            created_at=job.created_at,
            ended_at=job.ended_at,
            urls=JobUrls(get=url, cancel=f"{url}/cancel", events=f"{url}/events"),
        )

    def _result(self, job: Job, part: Part, index: int, url: str) -> Result:
        result_url = f"{url}/results/{index}"
        link = f"{result_url}?{self.links.sign(job.id, index)}"
        if part.kind is PartKind.TEXT or part.file is None:
            content = part.value.encode()
            return Result(
                index=index,
                kind="text",
                content_type=TEXT_TYPE,
                bytes=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
                url=result_url,
                link=link,
                expires_at=None,
                text=part.value,
            )
        stored = StoredFile.parse(part.file)
        media = media_type_of(stored.content_type)
        return Result(
            index=index,
            kind=media.value if media else "file",
            content_type=stored.content_type,
            bytes=stored.size,
            sha256=stored.sha256,
            url=result_url,
            link=link,
            expires_at=stored.expires_at(self.keep_days),
        )

    def _error(self, job: Job, status: Status) -> JobError | None:
        if status not in (Status.FAILED, Status.EXPIRED):
            return None
        code = job.error_code or "undeliverable"
        key = f"failed.{job.told_reason}"
        message = self.texts.plain(key if key in self.texts else "failed.other")
        return JobError(code=code, message=message)


@lru_cache(maxsize=10_000)
def _public_number(numbers: PublicNumbers, job_id: int) -> str:
    """Clients ask for the same few jobs again and again, and making a number takes a tenth of a request."""
    return numbers.order(job_id)


@lru_cache(maxsize=10_000)
def _job_id(numbers: PublicNumbers, number: str) -> int | None:
    return numbers.order_id(number)


def _input(job: Job) -> dict[str, Any] | None:
    content = json.loads(job.input)
    return content if isinstance(content, dict) else None


def _metadata(job: Job) -> dict[str, str]:
    return dict(ApiAddress.parse(job.address).metadata) if job.channel == CHANNEL else {}


def _progress(job: Job, status: Status, expected: float | None) -> float | None:
    if status is Status.SUCCEEDED:
        return 1.0
    if status is not Status.RUNNING or not expected or job.submitted_at is None:
        return 0.0 if status is Status.QUEUED else None
    passed = (job.read_at - job.submitted_at).total_seconds() / expected
    return round(min(max(passed, 0.0), PROGRESS_MAX), 2)
