"""Providers: the port that runs tasks, and the bundle of everything one provider brings with it."""

from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from math import inf
from typing import Any, Protocol

from genlock.domain.errors import ProviderError
from genlock.domain.model_schema import ModelSchema
from genlock.domain.result import Report
from genlock.domain.task import CancelOutcome, Handle, TaskOrder

#: tells from the headers, the body and the time in seconds since 1970 whether the provider itself sent a callback;
#: may fetch the provider's keys. Raises ProviderError if it cannot tell now: the provider is asked to send it again
VerifyCallback = Callable[[Mapping[str, str], bytes, float], Awaitable[bool]]
#: returns body and headers of a callback for a task, as the provider sends it, or forged with a wrong key if True
SampleCallback = Callable[[str, bool], tuple[bytes, Mapping[str, str]]]
#: returns the URL and the body of the call that creates a task; raises SubmitRefused
CreateRequest = Callable[[TaskOrder], tuple[str, Mapping[str, Any]]]
#: stores content under a name in a folder, for the models to read, and returns its URL; raises ProviderError
UploadFile = Callable[[AsyncIterable[bytes], str, str], Awaitable[str]]
#: seconds for which providers are assumed to keep a stored file
UPLOAD_SECONDS = 3 * 86_400.0
#: returns what the provider publishes about each of its models, by its own id; None: it does not have the model.
#: Raises ProviderError
FetchSchemas = Callable[[Collection[str]], Awaitable[Mapping[str, ModelSchema | None]]]


class Provider(Protocol):
    """Runs tasks. An adapter that inherits from this class may leave out `cancel` and `find`.

    Error codes say why there is no result. The engine tries another provider only after a code of
    `ELSEWHERE`, and after a failed task only if its report says that it costs 0.
    """

    name: str

    async def create(self, order: TaskOrder) -> Handle:
        """Start a task. The engine calls this once; the adapter must not repeat the call that it makes.

        Raises SubmitRefused (nothing runs, nothing is billed), ProviderBusy (provably not accepted: to be tried again)
        or SubmitUnknown. The engine takes any other exception for SubmitUnknown.
        """

    async def status(self, handle: Handle, order: TaskOrder) -> Report:
        """Query the state of a task. Raises ProviderBusy or ProviderError."""

    def read_callback(self, body: bytes) -> Report:
        """Parse a callback. Raises ValueError if it names neither a task nor a state.

        A callback that does not hold the result itself is a report with `incomplete`: the task is queried at once.
        """

    async def cancel(self, handle: Handle, order: TaskOrder) -> CancelOutcome:
        """Ask the provider to end a task. May be repeated. Raises ProviderBusy or ProviderError."""
        return CancelOutcome.UNKNOWN

    async def find(self, order: TaskOrder, since: datetime) -> Sequence[Handle]:
        """Return every task that a create call with a lost answer may have started; `since` is when the call began.

        They agree with the order in all that the provider tells: model, whole input, time. The engine leaves out the
        tasks of other jobs and adopts the task that is left, if it is the only one. None at all proves nothing.
        Raises ProviderBusy or ProviderError.
        """
        return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """One permit every `interval` seconds; after a pause, up to `burst` at once."""

    #: seconds
    interval: float
    burst: int = 1
    #: a permit that is used this many seconds late would collide with the next ones; it is given up for a new one
    late: float = inf


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderHealth:
    """What a provider answers to a question that costs nothing."""

    #: whether it answered, and accepts the key
    ok: bool
    #: one sentence for the operator: what is wrong and what to do, or what was found
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderBundle:
    """One configured provider: the adapter and what the other parts of the service must know of it."""

    provider: Provider
    #: how many calls all instances together may make, by kind of call: "create" and "status"
    rate_limits: Mapping[str, RateLimit]
    #: how many tasks may run at the same time for all instances together; None: as many as wanted
    concurrency: int | None = None
    #: US dollars per credit of the provider; costs and the credit left are in thousandths of that credit
    credit_usd: Decimal
    close: Callable[[], Awaitable[None]]
    #: None: callbacks are not signed, so only the secret in their URL authenticates them
    verify_callback: VerifyCallback | None = None
    #: whether the provider signs the callbacks of all its customers with the same keys
    shared_signature: bool = False
    #: makes callbacks for the doctor's check of our endpoint; None: the check is left out
    sample_callback: SampleCallback | None = None
    #: None: the provider does not store files for its models
    upload: UploadFile | None = None
    #: seconds for which a stored file can be read
    upload_seconds: float = UPLOAD_SECONDS
    #: whether models of other providers can read a stored file, too; False: others are preferred for a new file
    upload_is_public: bool = True
    #: returns the credit left on the account, in thousandths; None: the provider does not report it
    credit: Callable[[], Awaitable[int]] | None = None
    #: for operators: what the provider does not tell about money, and where to see it
    credit_note: str = ""
    #: asks whether the provider answers and accepts the key; None: `credit` is asked instead
    health: Callable[[], Awaitable[ProviderHealth]] | None = None
    #: for operators: what `create` sends for an order; None: the provider does not tell
    create_request: CreateRequest | None = None
    #: for `genlock models sync`; None: the provider publishes no schemas
    fetch_schemas: FetchSchemas | None = None
    #: seconds between the first status queries; None: the installation's setting
    poll_seconds: float | None = None

    @property
    def name(self) -> str:
        return self.provider.name


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicLists:
    """What a provider publishes: lists of models and prices, or a schema of each model."""

    ids: frozenset[str] = frozenset()
    #: credits by the label of a price row, in the form that `normalise_label` returns
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    #: the families whose models are all in `ids`; the lists say nothing about models of other families
    families: frozenset[str] = frozenset()
    #: by the provider's id, for every model that the catalog orders there; None: the provider does not have it
    schemas: Mapping[str, ModelSchema | None] = field(default_factory=dict)


class ListsIncomplete(ProviderError):
    """A provider did not publish what it usually does, or does not answer."""

    def __init__(self, lists: Mapping[str, PublicLists], problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in problems.items()))
        #: what the other providers publish
        self.lists = lists
        #: why the lists of a provider cannot be read, by its name
        self.problems = problems
