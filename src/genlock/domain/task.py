"""A provider's task: how it is found again, what is asked of the provider, and what cancelling it led to."""

import json
from collections.abc import Mapping
from enum import StrEnum

from genlock.domain.errors import SubmitRefused
from genlock.domain.job import Job
from genlock.domain.offer import Offer
from genlock.domain.value import value

#: every version of a job's row contains its handle
DETAILS_LENGTH_MAX = 2000
TASK_ID_LENGTH_MAX = 300


@value
class Handle:
    """How a provider finds a task again. Stored with the job; the engine reads only the task's id."""

    #: by which callbacks name the task
    task_id: str
    #: what else the provider needs, such as the task's addresses, in a form of its own
    details: str = ""

    def __post_init__(self) -> None:
        if not self.task_id or len(self.task_id) > TASK_ID_LENGTH_MAX or len(self.details) > DETAILS_LENGTH_MAX:
            raise ValueError("a handle needs a task id, and both have a limited length")
        if "\0" in self.task_id or "\0" in self.details:
            raise ValueError("a handle cannot contain a zero character")


def handle_of(job: Job) -> Handle:
    """Return the handle of a job's task. The job must have one."""
    assert job.task_id is not None, "the job has no task"
    return Handle(task_id=job.task_id, details=job.handle)


@value
class TaskOrder:
    """What a provider is asked to make: one attempt of a job."""

    job: Job
    #: the engine's own: `model` and `input` have what an adapter needs of it
    offer: Offer
    #: where the provider reports the end; None: it is only queried
    callback_url: str | None = None
    #: addresses of files in the job's input, each with the URL of the provider's own copy
    files: tuple[tuple[str, str], ...] = ()
    #: the input as it was sent, of an order that was recorded; None: it is made from the job's values
    sent_input: str | None = None

    @property
    def model(self) -> str:
        """The provider's own id of the model."""
        return self.offer.model

    def input(self) -> dict[str, object]:
        """Return the input under the provider's names. Raises SubmitRefused if the provider cannot be asked for it."""
        if self.sent_input is not None:
            sent: dict[str, object] = json.loads(self.sent_input)
            return sent
        try:
            values = json.loads(self.job.input)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise SubmitRefused("bad_input", "the input is not a JSON object")
        if not self.offer.accepts(values):
            raise SubmitRefused("model_unavailable", f"{self.offer.provider} does not take these values")
        return self.offer.input(_with_files(values, dict(self.files)) if self.files else values)

    def input_to_record(self) -> str | None:
        """Return the input for the record of the attempt; None if it is the job's own, or will be refused."""
        if self.offer.keeps_input and not self.files:
            return None
        try:
            return json.dumps(self.input())
        except SubmitRefused:
            return None


def _with_files(values: Mapping[str, object], urls: Mapping[str, str]) -> dict[str, object]:
    def replaced(input_value: object) -> object:
        if isinstance(input_value, list):
            return [replaced(item) for item in input_value]
        return urls.get(input_value, input_value) if isinstance(input_value, str) else input_value

    return {name: replaced(input_value) for name, input_value in values.items()}


class CancelOutcome(StrEnum):
    """How a provider answered the request to cancel a task. No outcome proves that nothing is billed."""

    CANCELLED = "cancelled"  #: the task will not run, or is being stopped
    TOO_LATE = "too_late"  #: the task has ended, or the provider does not know it any more
    UNKNOWN = "unknown"  #: the provider cannot cancel, or did not answer
