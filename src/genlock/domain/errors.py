"""Every error, grouped by what the caller can do about it.

GenlockError
├── Refusal                the caller's request cannot be done; nothing has changed
│   ├── InsufficientBalance
│   ├── SpendLimitReached  the API key may not spend this much more today
│   ├── TooManyOpenJobs    the account may not have more jobs open through the API
│   ├── AllowanceExceeded  an operator may not move this much; says how much is left today
│   ├── IdempotencyKeyReused
│   ├── AccountNotFound
│   ├── JobNotFound
│   ├── ModelNotFound
│   ├── InvalidInput       a value does not fit the model; the message says what is allowed
│   ├── InvalidEdit        an operator's edit of a model is wrong; says which values and why
│   ├── StaleEdit          the model was changed since the state that the edit was made from
│   └── ActionNotAllowed
│       └── JobWasSubmitted  ending it now may cost the operator
├── InvalidCatalog         a file that describes models is wrong; says where and what
├── BackupFailed           the backup was not written; says why
├── BackupUnusable         the backup cannot be restored; the database is unchanged
├── StoreError
│   ├── StoreUnavailable   the database did not answer in time; the statement may have been committed
│   ├── StoreInUse         another process has the SQLite file
│   ├── TaskIdConflict     another job already has this task id
│   └── SchemaMismatch     the migrations applied are not the migrations shipped
├── ProviderError
│   ├── SubmitRefused      permanent: nothing runs, nothing is billed
│   ├── ProviderBusy       not accepted for now: retry later
│   └── SubmitUnknown      the task may have been accepted: never repeat the call
├── MediaStoreError        the store of media files does not answer: retry later
│   └── MediaNotFound      there is no such file, or not any more
└── ChannelError
    ├── LevelRefused       the channel cannot show the part at this level: try the next one
    ├── PlaceholderGone    the message to edit was deleted
    ├── ChannelBusy        nothing was done: retry later
    ├── ChannelOutcomeUnknown  the call may have taken effect: repeat a put, never a send
    ├── AddressChanged     the chat has a new address, where nothing has been shown yet
    ├── InvalidResult      the provider's result is an HTML page or an empty file
    └── RecipientUnreachable   the user cannot be reached any more
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class EditProblem:
    """What is wrong with one value of an edit."""

    message: str
    #: the kind of problem, for translated messages
    code: str = "invalid"


class GenlockError(Exception):
    """An error of genlock."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Refusal(GenlockError):
    """The request was refused; nothing has changed."""


class InsufficientBalance(Refusal):
    """The balance is too low for this order; nothing was held."""

    def __init__(self, *, price: int, available: int) -> None:
        super().__init__()
        self.price = price
        self.available = available


class SpendLimitReached(Refusal):
    """The order costs more than its API key may still spend today; nothing was held."""

    def __init__(self, *, price: int, spent: int, limit: int) -> None:
        super().__init__()
        self.price = price
        self.spent = spent
        self.limit = limit


class TooManyOpenJobs(Refusal):
    """The account has as many open jobs as it may have; nothing was held."""

    def __init__(self, *, open_jobs: int) -> None:
        super().__init__()
        self.open_jobs = open_jobs


class AllowanceExceeded(Refusal):
    """The amount is more than this operator may still move today; nothing was moved."""

    def __init__(self, *, amount: int, used: int, most: int) -> None:
        super().__init__()
        self.amount = amount
        self.used = used
        self.most = most


class IdempotencyKeyReused(Refusal):
    """This idempotency key was used for another order."""


class AccountNotFound(Refusal):
    """There is no account with this id."""


class JobNotFound(Refusal):
    """There is no job with this id."""


class ModelNotFound(Refusal):
    """There is no model with this id."""


class InvalidInput(Refusal):
    """A value does not fit the model.

    The message says what is allowed; `problem` and `allowed` hold the same as data, for translated messages.
    """

    def __init__(self, field: str, message: str, *, problem: str = "type", allowed: Mapping[str, object] | None = None):
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message
        self.problem = problem
        self.allowed = dict(allowed or {})


class InvalidEdit(Refusal):
    """The edit of the model has wrong values; nothing was changed."""

    def __init__(self, problems: "Mapping[str, EditProblem]") -> None:
        super().__init__("; ".join(problem.message for problem in problems.values()))
        #: by the key of the overlay table that is wrong
        self.problems = problems


class StaleEdit(Refusal):
    """The model was changed since the state that this edit was made from; nothing was changed."""


class ActionNotAllowed(Refusal):
    """The job is not in a state that allows this."""


class JobWasSubmitted(ActionNotAllowed):
    """The job was submitted to a provider since it was read, so that ending it now may cost the operator."""


class InvalidCatalog(GenlockError):
    """The catalog of models cannot be read. `key` names the wrong key of a model's table, where it is known."""

    def __init__(self, message: str | None = None, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class BackupFailed(GenlockError):
    """The backup could not be written."""


class BackupUnusable(GenlockError):
    """The backup cannot be restored."""


class StoreError(GenlockError):
    """The store failed."""


class StoreUnavailable(StoreError):
    """The database did not answer in time."""


class StoreInUse(StoreError):
    """Another process is using this SQLite file."""


class TaskIdConflict(StoreError):
    """The provider returned the task id of another job."""


class SchemaMismatch(StoreError):
    """The database's schema does not belong to this version."""


class ProviderError(GenlockError):
    """The provider failed."""


class SubmitRefused(ProviderError):
    """The provider refused the order permanently."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.text = text


class ProviderBusy(ProviderError):
    """The provider asks to try again later."""

    def __init__(self, after: float, reason: str = "", *, down: bool = False) -> None:
        super().__init__(reason or None)
        self.after = after
        #: the provider does not answer, or is closed for maintenance: this counts as its failure
        self.down = down


class SubmitUnknown(ProviderError):
    """The order may or may not have been accepted."""


class MediaStoreError(GenlockError):
    """The store of media files does not answer."""


class MediaNotFound(MediaStoreError):
    """There is no such file in the media store."""


class ChannelError(GenlockError):
    """The channel failed."""


class LevelRefused(ChannelError):
    """The channel cannot show the part at this level."""


class PlaceholderGone(ChannelError):
    """The message to edit was deleted."""


class ChannelBusy(ChannelError):
    """The channel asks to try again later; nothing was shown."""

    def __init__(self, after: float, reason: str = "", *, failed: bool = False) -> None:
        super().__init__(reason or None)
        self.after = after
        #: the channel did not ask for the pause, so this counts as a failed attempt
        self.failed = failed


class ChannelOutcomeUnknown(ChannelError):
    """The channel's answer was lost."""


class AddressChanged(ChannelError):
    """The chat has a new address; nothing was shown at the old one."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address


class InvalidResult(ChannelError):
    """The provider's result is not usable."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RecipientUnreachable(ChannelError):
    """The user cannot be reached: the bot was blocked or removed, or the user's account deleted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
