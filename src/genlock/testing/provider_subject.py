"""The subject of the provider suite: a provider and the service that it calls, real or simulated."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from genlock.domain.result import Outcome, Report
from genlock.domain.task import Handle, TaskOrder
from genlock.ports import ProviderBundle
from genlock.testing.jobs import make_order
from genlock.testing.running import NotShown


class Situation(StrEnum):
    """What a subject brings about when it is asked to."""

    # the next create call
    BAD_INPUT = "bad_input"  #: the input is refused, at once or by a task that fails
    NO_CREDIT = "no_credit"  #: the account has no credit
    UNKNOWN_MODEL = "unknown_model"  #: the model does not exist
    TOO_MANY = "too_many"  #: too many calls
    SERVER_ERROR = "server_error"  #: an error of the server; whether it accepted the order is not said
    ANSWER_LOST = "answer_lost"  #: accepted; the connection breaks before the answer
    ANSWER_GARBLED = "answer_garbled"  #: accepted; the answer cannot be read
    ANSWER_LATE = "answer_late"  #: accepted; the answer takes longer than the adapter waits
    # the next status query
    STATUS_TOO_MANY = "status_too_many"  #: too many calls
    STATUS_SERVER_ERROR = "status_server_error"  #: an error of the server
    STATUS_GARBLED = "status_garbled"  #: the answer cannot be read
    STATUS_WORD = "status_word"  #: a state that no document names
    # the next cancellation
    CANCEL_UNHEARD = "cancel_unheard"  #: nothing is cancelled, or the answer is lost
    # the next task
    TASK_SLOW = "task_slow"  #: does not end during the test
    TASK_FAILS = "task_fails"  #: fails by the provider's fault
    TASK_MODERATED = "task_moderated"  #: fails for its content
    TASK_EMPTY = "task_empty"  #: succeeds without a result


@dataclass(frozen=True, kw_only=True)
class SentCallback:
    """A callback as the provider sent it."""

    headers: Mapping[str, str]
    body: bytes
    #: when it was sent, in seconds since 1970
    at: float


class ProviderSubject(ABC):
    """A provider under test. `arrange` and the methods after it raise NotShown for what cannot be shown."""

    #: the provider's own id of a model
    model: str
    #: inputs that the model accepts, under the provider's own names
    values: Mapping[str, Any]
    #: what must never appear in an error or a report
    secrets: Sequence[str] = ()
    #: where callbacks are sent to; None: the provider is only queried
    callback_url: str | None = None
    #: how long a task that was cancelled may take to end
    patience_seconds: float = 10.0

    @abstractmethod
    def make(self) -> ProviderBundle:
        """Return a new bundle, as a new process makes it. The suite closes it."""

    @abstractmethod
    async def created(self) -> int:
        """Return how many tasks the service has accepted so far."""

    async def arrange(self, situation: Situation, handle: Handle | None = None) -> None:
        """Bring a situation about, once; for a status query, with the task of this handle."""
        raise NotShown(f"the subject does not show: {situation}")

    async def callback(self, handle: Handle) -> SentCallback:
        """Return the callback that the service has sent about the end of a task."""
        raise NotShown("the subject sends no callbacks")

    def make_with_wrong_key(self) -> ProviderBundle:
        """Return a bundle whose key the service refuses."""
        raise NotShown("the subject needs no key")

    def make_unreachable(self) -> ProviderBundle:
        """Return a bundle whose service is at an address where nothing listens."""
        raise NotShown("the subject has no address")

    def order(self, number: int = 1, values: Mapping[str, Any] | None = None) -> TaskOrder:
        given = self.values if values is None else values
        name = type(self).__name__
        return make_order(name, self.model, given, number=number, callback_url=self.callback_url)

    async def ended(self, bundle: ProviderBundle, handle: Handle, order: TaskOrder) -> Report:
        """Query a task until it has ended."""
        while True:
            report = await bundle.provider.status(handle, order)
            if report.outcome in (Outcome.SUCCESS, Outcome.FAILURE):
                return report
            await asyncio.sleep(0.02)
