"""What the chat product remembers of people beside their jobs and money."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A person, as the chat knows them."""

    account_id: int
    #: the id that the channel knows them by
    external_id: str
    language: str
    name: str
    #: in lower case, without the @
    username: str
    referred_by: int | None
    last_model: str
    banned_at: datetime | None
    ban_reason: str
    #: when they blocked the bot, if they did
    blocked_at: datetime | None
    created_at: datetime
    #: made by the look that found it
    fresh: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountSummary:
    """A person with their wallet, as an operator looks for them. Whoever has not written has no name."""

    account_id: int
    channel: str
    #: the id that the channel knows them by
    external_id: str
    name: str
    username: str
    available: int
    held: int
    since: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedDraft:
    """A draft's row; the body is the bot's own."""

    version: int
    message: int | None
    body: str
    #: addresses of the uploads that the draft uses; they are not pruned
    uploads: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """What a person has done of late, for the limits. Waits: until the oldest falls out of its window."""

    running: int
    minute: int
    minute_wait: float
    hour: int
    hour_wait: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A file that a person has sent, kept by the provider under an address for a few days."""

    address: str
    account_id: int
    #: the channel's own copy, which lasts
    file: str
    kind: str
    seconds: float | None
    age_seconds: float


class PaymentState(StrEnum):
    PAID = "paid"  #: credited → refunding by an operator
    REFUNDING = "refunding"  #: the credits are taken back, the refund may be on the wire → refunded, or paid if it is
    #: refused or the credits are not there
    REFUNDED = "refunded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Payment:
    charge: str
    account_id: int
    stars: int
    #: what was credited, in thousandths
    amount: int
    state: PaymentState
    #: refunds begun so far; each has a key of its own in the ledger
    refunds: int
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Promo:
    """A code that gives credits or free runs."""

    code: str
    amount: int
    runs: int
    #: how often it may be used by all together; None: as often as people like
    uses_max: int | None
    per_account: int
    until: datetime | None
    closed: bool = False
    uses: int = 0
    #: "" for a code that users of every bot may use
    bot: str = ""


class PromoVerdict(StrEnum):
    GIVEN = "given"
    UNKNOWN = "unknown"
    OVER = "over"
    USED = "used"


@dataclass(frozen=True, kw_only=True, slots=True)
class PromoUse:
    verdict: PromoVerdict
    #: which of the person's uses of this code it is
    number: int = 0
    amount: int = 0
    runs: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeRuns:
    """Free runs that a person has left."""

    today: int
    gifts: int

    @property
    def left(self) -> int:
        return self.today + self.gifts


class BroadcastState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"


@dataclass(frozen=True, kw_only=True, slots=True)
class Broadcast:
    id: int
    bot: str
    #: the words alone; with no content they are Telegram's HTML
    text: str
    #: the words with their looks and the file, as the bot writes it
    content: str
    author: str
    state: BroadcastState
    #: the last person it was given to
    reached: int
    sent: int
    failed: int
    total: int
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditLine:
    """Something an operator did."""

    id: int
    bot: str
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """A stretch of time in numbers; money in thousandths of a credit."""

    orders: int
    delivered: int
    failed: int
    users: int
    newcomers: int
    revenue: int
    topups: int
    stars: int
    #: what the provider billed and nobody paid for, in thousandths of its credit
    loss: int
