"""Everything that can go wrong, by who can do something about it.

GenlockError
├── Refusal                the caller's request cannot be done; nothing has changed
│   ├── InsufficientBalance
│   ├── IdempotencyKeyReused
│   ├── AccountNotFound
│   ├── JobNotFound
│   ├── ModelNotFound
│   ├── InvalidInput       what a person gave does not fit the model; says what is allowed
│   └── ActionNotAllowed
├── InvalidCatalog          a file that describes models is wrong; says where and what
├── StoreError
│   ├── StoreUnavailable   the database did not answer in time; what was asked may or may not have happened
│   ├── StoreInUse         another process has the SQLite file
│   ├── TaskIdConflict          a task id is another job's already
│   └── SchemaMismatch     the migrations applied are not the migrations shipped
├── ProviderError
│   ├── SubmitRefused      for good: nothing runs, nothing is billed
│   ├── ProviderBusy       provably not accepted: try again later
│   └── SubmitUnknown      the call may have been accepted: never repeat it blindly
└── ChannelError
    ├── LevelRefused       this way of showing the part cannot work: take the next level
    ├── PlaceholderGone    there is no message left to edit
    ├── ChannelBusy        provably not done: try again later
    ├── ChannelOutcomeUnknown     may have been done: repeat a put, never a send
    ├── AddressChanged          the chat has another address now, where nothing has been shown yet
    ├── InvalidResult       what the provider calls a result is none: a page, an empty file
    └── RecipientUnreachable         this person cannot be reached any more
"""

from collections.abc import Mapping


class GenlockError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Refusal(GenlockError):
    """This cannot be done; nothing has changed."""


class InsufficientBalance(Refusal):
    """The balance is too low for this order; nothing was held."""

    def __init__(self, *, price: int, available: int) -> None:
        super().__init__()
        self.price = price
        self.available = available


class IdempotencyKeyReused(Refusal):
    """This idempotency key already stands for another order."""


class AccountNotFound(Refusal):
    """Nobody is known under this id."""


class JobNotFound(Refusal):
    """There is no job with this id."""


class ModelNotFound(Refusal):
    """There is no model with this id."""


class InvalidInput(Refusal):
    """A value does not fit the model.

    The message says what is allowed; `problem` and `allowed` say the same as data, for other languages.
    """

    def __init__(self, field: str, message: str, *, problem: str = "type", allowed: Mapping[str, object] | None = None):
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message
        self.problem = problem
        self.allowed = dict(allowed or {})


class ActionNotAllowed(Refusal):
    """The job is not in a state that allows this."""


class InvalidCatalog(GenlockError):
    """The catalog of models cannot be read."""


class StoreError(GenlockError):
    """The store could not do its work."""


class StoreUnavailable(StoreError):
    """The database did not answer in time."""


class StoreInUse(StoreError):
    """Another process is using this SQLite file."""


class TaskIdConflict(StoreError):
    """The provider gave a task id that is another job's already."""


class SchemaMismatch(StoreError):
    """The database's schema does not belong to this version."""


class ProviderError(GenlockError):
    """The provider did not do what was asked."""


class SubmitRefused(ProviderError):
    """The provider refused the order for good."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.text = text


class ProviderBusy(ProviderError):
    """The provider asks to try again later."""

    def __init__(self, after: float, reason: str = "") -> None:
        super().__init__(reason or None)
        self.after = after


class SubmitUnknown(ProviderError):
    """The order may or may not have been accepted."""


class ChannelError(GenlockError):
    """The channel did not do what was asked."""


class LevelRefused(ChannelError):
    """The channel cannot show the part in this way."""


class PlaceholderGone(ChannelError):
    """The message to edit does not exist any more."""


class ChannelBusy(ChannelError):
    """The channel asks to try again later; nothing was shown."""

    def __init__(self, after: float, reason: str = "", *, failed: bool = False) -> None:
        super().__init__(reason or None)
        self.after = after
        #: it was not the channel that asked: this counts as a try that failed
        self.failed = failed


class ChannelOutcomeUnknown(ChannelError):
    """The channel's answer was lost."""


class AddressChanged(ChannelError):
    """The chat has another address now; nothing was shown at the old one."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address


class InvalidResult(ChannelError):
    """What the provider calls a result cannot be one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RecipientUnreachable(ChannelError):
    """The person cannot be reached: blocked, deactivated, kicked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
