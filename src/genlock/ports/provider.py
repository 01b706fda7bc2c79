"""Providers: the port that runs tasks, and the bundle of everything one provider brings with it."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import inf
from typing import Any, Protocol

from genlock.domain.job import Job
from genlock.domain.result import Report

#: tells from the headers and the body whether the provider itself sent a callback
VerifyCallback = Callable[[Mapping[str, str], bytes], Awaitable[bool]]
#: returns body and headers of a callback for a task, as the provider sends it, or forged with a wrong key if True
SampleCallback = Callable[[str, bool], tuple[bytes, Mapping[str, str]]]
#: returns the URL and the body of the call that creates a job's task, with a callback URL; raises SubmitRefused
CreateRequest = Callable[[Job, str | None], tuple[str, Mapping[str, Any]]]
#: stores content under a name in a folder, for the models to read, and returns its URL; raises ProviderError
UploadFile = Callable[[AsyncIterable[bytes], str, str], Awaitable[str]]


class Provider(Protocol):
    """Runs tasks. `create` raises SubmitRefused, ProviderBusy or SubmitUnknown; `status` raises ProviderBusy."""

    name: str

    async def create(self, job: Job, callback_url: str | None) -> str:
        """Start a task for the job and return the task's id."""

    async def status(self, task_id: str, job: Job) -> Report:
        """Query the state of a task."""

    def read_callback(self, body: bytes) -> Report:
        """Parse a callback. Raises ValueError if it names neither a task nor a state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """One permit every `interval` seconds; after a pause, up to `burst` at once."""

    interval: float
    burst: int = 1
    #: a permit that is used this many seconds late would collide with the next ones; it is given up for a new one
    late: float = inf


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderBundle:
    """One configured provider: the adapter and what the other parts of the service must know of it."""

    provider: Provider
    #: how many calls all instances together may make, by kind of call: "create" and "status"
    rate_limits: Mapping[str, RateLimit]
    #: US dollars per credit of the provider
    credit_usd: Decimal
    close: Callable[[], Awaitable[None]]
    #: None: callbacks are not signed, so only the secret in their URL authenticates them
    verify_callback: VerifyCallback | None = None
    #: makes callbacks for the doctor's check of our endpoint; None: the check is left out
    sample_callback: SampleCallback | None = None
    #: None: the provider does not store files for its models
    upload: UploadFile | None = None
    #: returns the credit left on the account, in thousandths; None: the provider does not report it
    credit: Callable[[], Awaitable[int]] | None = None
    #: for operators: what `create` sends for a job; None: the provider does not tell
    create_request: CreateRequest | None = None
    #: seconds between the first status queries; None: the installation's setting
    poll_seconds: float | None = None

    @property
    def name(self) -> str:
        return self.provider.name


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicLists:
    """The model ids and prices that a provider publishes."""

    ids: frozenset[str]
    #: credits by the label of a price row, in the form that `normalise_label` returns
    prices: Mapping[str, Decimal]
    #: the families whose models are all in `ids`; the lists say nothing about models of other families
    families: frozenset[str]
